"""Parts of the site that are made when it is built: `targets`, a table of targets/*.toml."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from tinyfuse.targets import Target, all_targets

_COLUMNS = ("target", "flags", "plans rely on", "costs of", "emulated as", "flash, RAM")


class TargetsTable(Directive):
    """One row a target and variant, in the order of `tinyfuse targets`."""

    def run(self) -> list[nodes.Node]:
        rows = [_row([nodes.Text(title) for title in _COLUMNS])]
        rows += [_row(_cells(target)) for target in all_targets().values()]
        group = nodes.tgroup("", cols=len(_COLUMNS))
        group += [nodes.colspec(colwidth=1) for _ in _COLUMNS]
        group += [nodes.thead("", rows[0]), nodes.tbody("", *rows[1:])]
        return [nodes.table("", group)]


def _cells(target: Target) -> list[nodes.Node]:
    emulators = [f"QEMU {target.qemu_machine}"] * bool(target.qemu_machine)
    emulators += [f"Renode {target.renode_cpu}"] * bool(target.renode_cpu)
    instructions = [name for name, has in (("DSP", target.dsp), ("MVE", target.mve)) if has]
    memories = [f"{memory[1] // 1024:,} KB" for memory in (target.flash, target.ram) if memory]
    return [
        nodes.literal("", target.name),
        nodes.literal("", " ".join(target.flags)),
        nodes.Text(", ".join(instructions)),
        nodes.Text(target.cost_table or ""),
        nodes.Text(", ".join(emulators)),
        nodes.Text(", ".join(memories)),
    ]


def _row(cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls it."""
    app.add_directive("targets", TargetsTable)
    return {"parallel_read_safe": True}
