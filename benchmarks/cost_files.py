"""The files of cost tables, targets/costs and targets/cycles, and their entries: for measure_costs.py."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cost_fits import Figures, Fits, Sample, Singles, added, called_once_fits, function_of

from tinyfuse.cost.fit import MAX_SHARE, MIN_SHARE, Fit
from tinyfuse.cost.table import CostTable, cost_table
from tinyfuse.profile.cycles import core
from tinyfuse.targets import Target
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.verify.emulation.qemu import Qemu

#: with fewer samples, cycles are those of instructions, times a factor: free factors would tell of these samples alone
ENOUGH = 10

#: of an entry without samples: a cycle an instruction
_EVEN = Figures(1, 1)


def about(tree: cmsis_nn.Tree | None, compiler: str) -> dict[str, str]:
    return {
        "date": datetime.date.today().isoformat(),
        "compiler": f"{compiler}, -O2",
        "emulator": Qemu().version,
        "cmsis_nn": ".".join(map(str, tree.version)) if tree else "not measured",
    }


def toml(about: dict[str, str], found: Fits) -> str:
    lines = [
        "# Instructions of every kernel, measured; made by benchmarks/measure_costs.py, not by hand.",
        "# factors: instructions a count of each feature (tinyfuse/kernels/counts/common.py); shapes: how many",
        "# operators were measured; mean_error, worst_error: relative, of the fit on them; alone: where a module",
        "# calls the kernel in one place, the share of that which it takes, and what it takes beside; sole: the same",
        "# where nothing else calls what gathers its windows.",
        *_head(about),
        f"factors = {_inline(found.loop['instructions'].factors)}",
    ]
    for entry, fits in found.kernels.items():
        lines += _entry(entry, found.shapes[entry], fits["instructions"], found.singles(entry))
    return "\n".join(lines) + "\n"


def cycles_toml(about: dict[str, str], found: Fits, target: Target, known: CostTable | None) -> str:
    """`known`: the table of instructions, of whose entries none is to be left out."""
    core = timing(target.cpu)
    if core is None:
        raise SystemExit(f"{target.name} names a table of cycles, and profile/cycles.py has no timing of it")
    lines = [
        "# Estimated cycles of every kernel, and the bytes that it loads from flash; made by",
        "# benchmarks/measure_costs.py, not by hand. factors: cycles a count of each feature, without any wait state;",
        "# flash: bytes a count; shapes: how many operators were measured; mean_error, worst_error: relative, of the",
        f"# cycles' fit on them. With fewer than {ENOUGH} shapes: the factors of its instructions, times what each of",
        "# them takes in these shapes; for none, in the same function's other entries, or in all there are.",
        *_head(about | {"timing": core.source}),
        f"factors = {_inline(found.loop['cycles'].factors)}",
        f"flash = {_inline(found.loop['flash'].factors)}",
    ]
    instructions = known.kernels if known else {}
    for entry in sorted(instructions.keys() | found.kernels.keys()):
        shapes, fits = found.shapes.get(entry, 0), found.kernels.get(entry)
        if fits is None or (shapes < ENOUGH and entry in instructions):
            took = next(found.took[name] for name in (entry, function_of(entry), "") if name in found.took)
            lines += _alike(entry, shapes, instructions[entry], took)
        else:
            lines += _entry(entry, shapes, fits["cycles"], _in_cycles(found.singles(entry), found.took[entry]))
            lines.append(f"flash = {_inline(fits['flash'].factors)}")
    return "\n".join(lines) + "\n"


def _alike(entry: str, shapes: int, factors: dict[str, float], took: Figures) -> list[str]:
    """An entry of the table of instructions, in what others took an instruction."""
    cycles, flash = (
        _inline({name: factor * each / took.instructions for name, factor in factors.items()} if each else {})
        for each in (took.cycles, took.flash)
    )
    return ["", f'[kernels."{entry}"]', f"shapes = {shapes}", f"factors = {cycles}", f"flash = {flash}"]


def _head(about: dict[str, str]) -> list[str]:
    return ["[about]", *(f'{key} = "{value}"' for key, value in about.items()), "", "[loop]"]


def _in_cycles(singles: Singles, took: Figures) -> Singles:
    """What is saved of features, in the cycles that the kernel took an instruction."""
    rate = took.cycles / max(1, took.instructions)
    alone, sole = (
        each and replace(each, more={name: factor * rate for name, factor in each.more.items()}) for each in singles
    )
    return alone, sole


def _with_alone(entry: str, singles: Singles) -> str:
    """The text of an entry with that in the place of what it says."""
    lines = [line for line in entry.splitlines() if not line.startswith(("alone = ", "sole = "))]
    at = 1 + next(number for number, line in enumerate(lines) if line.startswith("factors = "))
    return "\n".join([*lines[:at], *_alone_lines(singles), *lines[at:]]) + "\n"


def _alone_lines(singles: Singles) -> list[str]:
    return [
        f"{name} = " + _inline({"share": found.share, **found.more})
        for name, found in zip(("alone", "sole"), singles, strict=True)
        if found is not None
    ]


def _entry(name: str, shapes: int, found: Fit, singles: Singles) -> list[str]:
    return [
        "", f'[kernels."{name}"]', f"shapes = {shapes}", f"mean_error = {found.mean:.4f}",
        f"worst_error = {found.worst:.4f}", f"factors = {_inline(found.factors)}", *_alone_lines(singles),
    ]  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """Those of targets, in a folder; `instructions`: of them too, not of cycles alone."""

    folder: Path
    instructions: bool

    def _costs(self, target: Target) -> Path:
        return self.folder / "costs" / f"{target.cost_table}.toml"

    def _cycles(self, target: Target) -> Path:
        return self.folder / "cycles" / f"{target.cycle_table}.toml"

    def entries(self, target: Target) -> set[str]:
        """What the table of instructions has or, without it, that of cycles."""
        path = self._costs(target) if self.instructions else self._cycles(target)
        return set(entries_of(path.read_text())[1])

    def write(self, target: Target, head: dict[str, str], found: Fits) -> None:
        """Anew."""
        for path, text in self._texts(target, head, found, cost_table(target.cost_table)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def update(self, target: Target, head: dict[str, str], found: Fits, loop: bool = False) -> None:
        """These entries alone; `loop`: and the row loop."""
        if found.kernels or loop:
            for path, text in self._texts(target, head, found, None):
                path.write_text(updated(path.read_text(), text, loop))

    def update_alone(self, target: Target, samples: list[Sample]) -> None:
        """Of the entries that samples tell of, what a kernel takes that is called once, and nothing else."""
        by_entry: dict[str, list[Sample]] = {}
        for sample in samples:
            by_entry.setdefault(sample.entry, []).append(sample)
        costs = cost_table(target.cost_table)
        if costs is None:
            return
        alone, sole = called_once_fits(by_entry, costs.kernels, costs.loop)
        known = (costs.alone.keys() | costs.sole.keys()) & by_entry.keys()
        took = {entry: added(sample.took for sample in each) for entry, each in by_entry.items()}
        for path, alike in ((self._costs(target), False), (self._cycles(target), True)):
            if path.is_file():
                head, entries = entries_of(path.read_text())
                for entry in entries.keys() & (alone.keys() | sole.keys() | known):
                    singles = alone.get(entry), sole.get(entry)
                    if singles[0] is not None and not MIN_SHARE <= singles[0].share <= MAX_SHARE:
                        singles = None, singles[1]
                    singles = _in_cycles(singles, took.get(entry, _EVEN)) if alike else singles
                    entries[entry] = _with_alone(entries[entry], singles)
                path.write_text("\n".join([head, *(text for _, text in sorted(entries.items()))]))

    def _texts(
        self, target: Target, head: dict[str, str], found: Fits, known: CostTable | None
    ) -> Iterator[tuple[Path, str]]:
        if self.instructions:
            yield self._costs(target), toml(head, found)
        if target.cycle_table is not None:
            if known is None:
                factors = {entry: fits["instructions"].factors for entry, fits in found.kernels.items()}
                known = CostTable({}, {}, factors)
            yield self._cycles(target), cycles_toml(head, found, target, known)


def updated(table: str, measured: str, loop: bool = False) -> str:
    """A table's text with the entries of another one in the place of its own, which was measured with the same tools;
    `loop`: and with what that says of the row loop, else it stays."""
    ours, theirs = tomllib.loads(table)["about"], tomllib.loads(measured)["about"]
    tools = ["compiler", "emulator", *(["cmsis_nn"] if '"arm_' in measured else [])]
    if any(ours[tool] != theirs[tool] for tool in tools):
        raise SystemExit(f"measured with {theirs}, the table with {ours}: measure all of it")
    head, entries = entries_of(table)
    if loop:
        head = head.partition("[loop]")[0] + "".join(entries_of(measured)[0].partition("[loop]")[1:])
    return "\n".join([head, *(text for _, text in sorted((entries | entries_of(measured)[1]).items()))])


def entries_of(table: str) -> tuple[str, dict[str, str]]:
    """What stands before the kernels' entries, and their texts by name."""
    head, *texts = table.split('[kernels."')
    return head.rstrip("\n") + "\n", {text[: text.index('"')]: f'[kernels."{text.rstrip()}\n' for text in texts}


def _inline(factors: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name} = {factor:.4g}" for name, factor in factors.items()) + "}"
