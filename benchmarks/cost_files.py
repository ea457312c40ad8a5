"""The files of cost tables, targets/costs and targets/cycles, and their entries: for measure_costs.py."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cost_fits import Figures, Fits, Sample, Singles, called_once_fits

from tinyfuse.cost.fit import MAX_SHARE, MIN_SHARE, Fit
from tinyfuse.cost.table import cost_table
from tinyfuse.profile.cycles import core as core_of
from tinyfuse.targets import Target
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.verify.emulation.qemu import Qemu


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
        "# where nothing else calls what gathers its windows; flash: bytes loaded from flash a count.",
        *_head(about),
        f"factors = {_inline(found.loop['instructions'].factors)}",
        f"flash = {_inline(found.loop['flash'].factors)}",
    ]
    for entry, fits in found.kernels.items():
        lines += _entry(entry, found.shapes[entry], fits["instructions"], found.singles(entry))
        lines.append(f"flash = {_inline(fits['flash'].factors)}")
    return "\n".join(lines) + "\n"


def rates_toml(about: dict[str, str], found: Fits, target: Target) -> str:
    """Cycles per instruction of a core, by entry of its cost table."""
    core = core_of(target.cpu)
    if core is None:
        raise SystemExit(f"{target.name} names a table of cycles, and profile/cycles.py has no pipeline of it")
    lines = [
        "# Estimated cycles per instruction of every kernel, without any wait state; made by",
        "# benchmarks/measure_costs.py, not by hand. loop: of a group's own code; mean: of kernels without an entry.",
        *_head(about | {"pipeline": core.source})[:-1],
        "[rates]",
        f"loop = {_rate(found.own)}",
        f"mean = {_rate(found.took[''])}",
        "",
        "[rates.kernels]",
        *(
            f'"{entry}" = {_rate(found.took[entry])}'
            for entry in sorted(found.kernels)
            if found.took[entry].instructions > 0
        ),
    ]
    return "\n".join(lines) + "\n"


def _rate(took: Figures) -> float:
    return float(f"{took.cycles / took.instructions:.4g}")


def _head(about: dict[str, str]) -> list[str]:
    return ["[about]", *(f'{key} = "{value}"' for key, value in about.items()), "", "[loop]"]


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
        if self.instructions:
            return set(entries_of(self._costs(target).read_text())[1])
        return set(tomllib.loads(self._cycles(target).read_text())["rates"]["kernels"])

    def write(self, target: Target, head: dict[str, str], found: Fits) -> None:
        """Anew."""
        for path, text in self._texts(target, head, found):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def update(self, target: Target, head: dict[str, str], found: Fits, loop: bool = False) -> None:
        """These entries alone; `loop`: and the row loop."""
        for path, text in self._texts(target, head, found):
            if found.kernels or loop:
                change = updated_rates if path == self._cycles(target) else updated
                path.write_text(change(path.read_text(), text, loop))

    def update_alone(self, target: Target, samples: list[Sample]) -> None:
        """Of the entries that samples tell of, what a kernel takes that is called once, and nothing else."""
        by_entry: dict[str, list[Sample]] = {}
        for sample in samples:
            by_entry.setdefault(sample.entry, []).append(sample)
        costs, path = cost_table(target.cost_table), self._costs(target)
        if costs is None:
            return
        alone, sole = called_once_fits(by_entry, costs.kernels, costs.loop)
        known = (costs.alone.keys() | costs.sole.keys()) & by_entry.keys()
        head, entries = entries_of(path.read_text())
        for entry in entries.keys() & (alone.keys() | sole.keys() | known):
            singles = alone.get(entry), sole.get(entry)
            if singles[0] is not None and not MIN_SHARE <= singles[0].share <= MAX_SHARE:
                singles = None, singles[1]
            entries[entry] = _with_alone(entries[entry], singles)
        path.write_text("\n".join([head, *(text for _, text in sorted(entries.items()))]))

    def _texts(self, target: Target, head: dict[str, str], found: Fits) -> Iterator[tuple[Path, str]]:
        if self.instructions:
            yield self._costs(target), toml(head, found)
        if target.cycle_table is not None:
            yield self._cycles(target), rates_toml(head, found, target)


def updated_rates(table: str, measured: str, loop: bool = False) -> str:
    """A table's rates, with the measured ones in the place of its own; `loop`: and that of the row loop."""
    head, _, ours = table.partition("[rates.kernels]\n")
    new_head, _, theirs = measured.partition("[rates.kernels]\n")
    if loop:
        head = re.sub("^loop = .*$", re.search("^loop = .*$", new_head, re.M)[0], head, flags=re.M)
    rates = {line.rpartition(" = ")[0]: line for line in (*ours.splitlines(), *theirs.splitlines())}
    return head + "[rates.kernels]\n" + "\n".join(rates[name] for name in sorted(rates)) + "\n"


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
