"""Cost table of a target (targets/costs/NAME.toml), and its predictions."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any

from tinyfuse.board_timing import BoardTiming
from tinyfuse.cost.slowest import slowest_times
from tinyfuse.errors import ToolMissing
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context, ObjectiveAsked, without_objective
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.counts.common import RINGED, Counts, count_calls, memoized
from tinyfuse.plan import Stage
from tinyfuse.plan.rows import Stream
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target

#: bounds on the factor by which a single call may differ from the table; depthwise columns of nine taps take 0.44
LEAST_SHARE, MOST_SHARE = 0.4, 1.6

#: suffix of entries of kernels that compute floats in a library
_SOFT = "without FPU"


@dataclass(frozen=True)
class Alone:
    """Cost of a kernel that a module calls in only one place, where compilers know the call's constants.

    share  factor on the entry's instructions
    more   instructions added per count of some features; may be negative
    """

    share: float = 1.0
    more: Mapping[str, float] = field(default_factory=dict)

    def in_cycles(self, rate: float) -> Alone:
        """Correction of a table in cycles, from that of a table in instructions and cycles per instruction."""
        return replace(self, more={feature: factor * rate for feature, factor in self.more.items()})


@dataclass(frozen=True, eq=False)
class CostTable:
    """Factors of every kernel that was measured.

    about    date, compiler, flags and emulator of the measurement
    loop     factors of a group's own code (see loop_features)
    kernels  entry_name of a kernel -> factors of `Kernel.counts`
    alone    correction if a module calls the kernel in only one place: by `Kernel.single_calls_as` (mostly its
             costs_with, as its C function differs from that of the kernel whose costs it shares), else by entry_name
    sole     correction if, besides, the module has no other call of the code that gathers its windows
             (`Kernel.windows_by`); without an entry, as `alone`
    flash    entry_name of a kernel -> bytes that it loads from flash, by count; "": of the group's own code
    """

    about: dict[str, str]
    loop: dict[str, float]
    kernels: dict[str, dict[str, float]]
    alone: dict[str, Alone] = field(default_factory=dict)
    sole: dict[str, Alone] = field(default_factory=dict)
    flash: dict[str, dict[str, float]] = field(default_factory=dict)

    @memoized
    def kernel(
        self, op: Op, kernel: Kernel, by_row: bool, context: Context, slowest: bool = False
    ) -> float | None:  # fmt: skip
        """Instructions of all calls of a kernel in one inference; None if the table lacks the kernel.

        The input is assumed to lie in a ring; `_in_ring` tells what to subtract otherwise. `slowest`: for the slowest
        input values; otherwise the mean.
        """
        try:
            return self._kernel(op, kernel, by_row, without_objective(context), slowest)
        except ObjectiveAsked:
            return self._kernel(op, kernel, by_row, context, slowest)

    @memoized
    def _kernel(self, op: Op, kernel: Kernel, by_row: bool, context: Context, slowest: bool) -> float | None:
        factors = self.kernels.get(entry_name(op, kernel, by_row, context))
        more = self.kernels.get(kernel.costs_with) if kernel.costs_with else {}
        if factors is None or more is None:
            return None
        counts = kernel.slowest_counts(op, by_row) if slowest else kernel.counts(op, by_row)
        total = _sum(factors, counts) + _sum(more, counts)
        if slowest:
            total *= slowest_times(op, kernel.computes_floats, context.target.fpu)
        for inner, part, times in kernel.work(op, context):
            cost = self.kernel(part, inner, True, context, slowest)
            if cost is None:
                return None
            total += times * cost
        return total

    def stages(
        self, stages: tuple[Stage, ...], stream: Stream | None, context: Context, once: Collection[str] = (),
        slowest: bool = False,
    ) -> list[float | None]:  # fmt: skip
        """Instructions of each stage of a group, with its share of the row loop; None for a kernel that was not
        measured.

        `once` has the code of kernels that the module calls in only one place (predict.called_once). `slowest`: see
        `kernel`.
        """
        found: list[float | None] = []
        for number, (stage, counts) in enumerate(zip(stages, loop_features(stages, stream), strict=True)):
            loop = _sum(self.loop, counts)
            kernel = self.kernel(stage.op, stage.kernel, stage.by_row, context, slowest)
            spared = 0.0 if reads_ring(stages, number, counts) else self._in_ring(stage, context)
            taken = self.share(stage, context, once) * rows_made(stage, counts)
            found.append(None if kernel is None else taken * (kernel - spared) + loop)
        return found

    def _in_ring(self, stage: Stage, context: Context) -> float:
        """Extra instructions of a stage whose input lies in a ring."""
        factors = self.kernels.get(entry_name(stage.op, stage.kernel, stage.by_row, context), {})
        ringed = {name: factor for name, factor in factors.items() if name.startswith(RINGED)}
        return _sum(ringed, stage.kernel.counts(stage.op, stage.by_row)) if ringed else 0.0

    def share(self, stage: Stage, context: Context, once: Collection[str]) -> float:
        """Factor on a stage's instructions for single calls; 1 for other calls. `once`: see `stages`."""
        entry = stage.kernel.single_calls_as(stage.op) or entry_name(stage.op, stage.kernel, stage.by_row, context)
        alone = self.sole.get(entry) if is_sole(stage, context, once) else None
        alone = alone or self.alone.get(entry)
        if alone is None or not is_once(stage, context, once):
            return 1.0
        whole = self.kernel(stage.op, stage.kernel, stage.by_row, context)
        more = _sum(alone.more, stage.kernel.counts(stage.op, stage.by_row))
        return min(max(alone.share + (more / whole if whole else 0.0), LEAST_SHARE), MOST_SHARE)

    def copying(self, stage: Stage, context: Context) -> float:
        """Instructions that a call saves if its output lies over its input (`Kernel.copied`)."""
        copied = stage.kernel.copied(stage.op)
        name = entry_name(stage.op, stage.kernel, stage.by_row, context) if copied else ""
        return _sum(self.kernels.get(name, {}), copied)

    def loops(self, stages: tuple[Stage, ...], stream: Stream | None) -> list[float]:
        """Instructions of the row loop, by stage."""
        return [_sum(self.loop, counts) for counts in loop_features(stages, stream)]


def reads_ring(stages: tuple[Stage, ...], number: int, loop: Counts) -> bool:
    """Tells whether stage `number` of a group reads rows of an earlier stage from a ring that wraps around (one that
    slides does not). `loop`: the stage's `loop_features`."""
    if loop.get("slides"):
        return False
    made = {tensor for stage in stages[:number] for tensor in stage.op.outputs}
    return not made.isdisjoint(stages[number].op.activations)


def is_once(stage: Stage, context: Context, once: Collection[str]) -> bool:
    """Tells whether the stage is the module's only call of its kernel's code. `once`: see `CostTable.stages`."""
    return stage.kernel.copy_of_code(stage.op, context) in once


def is_sole(stage: Stage, context: Context, once: Collection[str]) -> bool:
    """Tells whether the stage is the module's only caller of the code that gathers its windows. `once`: see
    `CostTable.stages`."""
    return stage.kernel.windows_by(stage.op, context) in once


def _sum(factors: Mapping[str, float], counts: Counts) -> float:
    total = 0.0
    for name, factor in factors.items():
        if name in counts:
            total += factor * counts[name]
    return total


@memoized
def entry_name(op: Op, kernel: Kernel, by_row: bool, context: Context) -> str:
    """Name of a kernel's entry in a cost table. Each of a kernel's code paths has an entry of its own, and float
    kernels have another one without an FPU."""
    name, path = kernel.costs_as or kernel.name, kernel.path(op, by_row, context)
    name = f"{name} {path}" if path else name
    return f"{name} {_SOFT}" if kernel.computes_floats and not context.target.fpu else name


def rows_made(stage: Stage, loop: Counts) -> float:
    """Share of its output's rows that a stage makes, from its `loop_features`; below 1 if its group does not read
    all."""
    return min(1.0, loop["rows"] * stage.kernel.rows_a_call / stage.op.output.shape[1]) if stage.by_row else 1.0


def loop_features(stages: tuple[Stage, ...], stream: Stream | None) -> list[Counts]:
    """Counts of the row loop, by stage.

    groups      1 for a group's first stage.
    rows        calls in the loop.
    checks      times that the loop asks whether the stage can run, from the last stage to the one that can.
    slides      times that a sliding ring is checked after its rows.
    slid_bytes  bytes moved in sliding rings.

    A single stage needs no stream.
    """
    if len(stages) == 1:
        (stage,) = stages
        return [{"groups": 1, "rows": count_calls(stage.op, stage.by_row, stage.kernel.rows_a_call) * stage.by_row}]
    assert stream is not None, "several stages make rows in turns"
    rows, slides = stream.loop.calls.tolist(), stream.slides
    found: list[Counts] = []
    for s, checks in enumerate(accumulate(rows)):
        looks, moved = slides.get(s, (0, 0))
        found.append({"groups": int(s == 0), "rows": rows[s], "checks": checks, "slides": looks, "slid_bytes": moved})
    return found


@cache
def cost_table(name: str | None) -> CostTable | None:
    """Table of that name (Target.cost_table), None for None. ToolMissing if the file is missing, because without it the
    same model would get another plan."""
    return None if name is None else read_table(table_text("costs", name))


@cache
def instructions_table(target: Target) -> CostTable | None:
    """Table that predicts a target's instructions; None if it has none."""
    table, others = cost_table(target.cost_table), cost_table(target.float_costs)
    if table is None or others is None:
        return table
    floats = _floats(table, others)
    flash = {entry: factors for entry, factors in others.flash.items() if entry in floats}
    return replace(table, kernels={**floats, **table.kernels}, flash={**flash, **table.flash})


def _floats(table: CostTable, others: CostTable) -> dict[str, dict[str, float]]:
    """Entries of `others` for kernels that compute floats, with and without an FPU. The latter may be in either
    table."""
    soft = {entry for entry in (*table.kernels, *others.kernels) if entry.endswith(_SOFT)}
    floats = soft | {entry.removesuffix(_SOFT).rstrip() for entry in soft}
    return {entry: factors for entry, factors in others.kernels.items() if entry in floats}


def table_text(folder: str, name: str) -> str:
    """Text of a table's file in targets/. ToolMissing if it is missing."""
    path = resource_dir("targets") / folder / f"{name}.toml"
    if not path.is_file():
        raise ToolMissing(f"targets/{folder}/{name}.toml", "this installation of tinyfuse lacks it; install it again")
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class CycleRates:
    """Estimated cycles per instruction of a core that never waits for memory.

    loop     of a group's own code.
    mean     of kernels without an entry.
    kernels  by entry_name.
    """

    loop: float
    mean: float
    kernels: dict[str, float]


@cache
def cycle_rates(name: str | None) -> CycleRates | None:
    """Cycle rates in the file of that name (Target.cycle_table); None for None. ToolMissing if the file is missing."""
    return None if name is None else CycleRates(**_fields(table_text("cycles", name))["rates"])


@cache
def board_table(target: Target, timing: BoardTiming) -> CostTable | None:
    """Estimated cycles of a target on a board; None without rates of its core."""
    table, rates = instructions_table(target), cycle_rates(target.cycle_table)
    if table is None or rates is None:
        return None

    def on_board(entry: str, factors: dict[str, float], rate: float) -> dict[str, float]:
        flash = table.flash.get(entry, {})
        return {key: timing.cycles(rate * factors.get(key, 0.0), flash.get(key, 0.0)) for key in {**factors, **flash}}

    def in_cycles(corrections: dict[str, Alone]) -> dict[str, Alone]:
        return {entry: each.in_cycles(rate_of(entry)) for entry, each in corrections.items()}

    def rate_of(entry: str) -> float:
        return rates.kernels.get(entry, rates.mean)

    kernels = {entry: on_board(entry, factors, rate_of(entry)) for entry, factors in table.kernels.items()}
    loop = on_board("", table.loop, rates.loop)
    return CostTable(table.about, loop, kernels, in_cycles(table.alone), in_cycles(table.sole))


def flash_table(target: Target) -> CostTable | None:
    """Bytes that a target loads from flash; None without a cost table."""
    table = instructions_table(target)
    return table and CostTable(table.about, table.flash.get("", {}), table.flash)


def counted_table(context: Context) -> CostTable | None:
    """Table by which plans are chosen: instructions, or estimated cycles if the context has a board."""
    target = context.target
    return instructions_table(target) if context.cycles is None else board_table(target, context.cycles)


def read_table(text: str) -> CostTable:
    """Parses a table's file. ValueError if it is not one."""
    return _table(_fields(text))


def _fields(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _table(fields: dict[str, Any]) -> CostTable:
    """Table of a file's fields. ValueError if an entry has no factors."""
    try:
        about = {str(key): str(value) for key, value in fields["about"].items()}
        kernels = {name: _factors(entry["factors"]) for name, entry in fields["kernels"].items()}
        alone, sole = (
            {name: _alone(entry[form]) for name, entry in fields["kernels"].items() if form in entry}
            for form in ("alone", "sole")
        )
        flash = {
            name: _factors(entry.get("flash", {})) for name, entry in [("", fields["loop"]), *fields["kernels"].items()]
        }
        return CostTable(about, _factors(fields["loop"]["factors"]), kernels, alone, sole, flash)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _alone(found: dict[str, float]) -> Alone:
    """Correction for a single call from a table's file: a share, and factors that may be negative."""
    _factors({name: abs(factor) for name, factor in found.items()})
    share = found["share"]
    return Alone(_factors({"share": share})["share"], {name: each for name, each in found.items() if name != "share"})


def _factors(factors: dict[str, float]) -> dict[str, float]:
    for name, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor < 1e12:
            raise ValueError(f"the factor {name} is {factor!a}")
    return factors
