"""Predicted bytes of code: before anything is compiled, from tables measured on compiled modules.

A call of a kernel is inlined, so that every operator has bytes of its own; what is large in a kernel is a C function
that a module has once, whoever calls it (TINYFUSE_SHARED). `targets/code/NAME.toml` (benchmarks/measure_code.py) has
both, of -O2. What was not measured, functions of CMSIS-NN and kernels of plugins, is estimated by a rule of thumb.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from tinyfuse.cost.predict import group_stream
from tinyfuse.cost.table import loop_features, table_text
from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Context, Kernel
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.plan import Group, Plan

#: the rule of thumb, of a core without a table and of kernels that were not measured: bytes of the API, of an inlined
#: call, of each different kernel
_UNKNOWN_MODULE, _UNKNOWN_CALL, _UNKNOWN_KERNEL = 600, 250, 1200


class CodeBytes(NamedTuple):
    """Linked bytes of code and its constants. `module`: of the module, and of what it calls of CMSIS-NN; `helpers`: of
    functions of the compiler's and the C library that the linker adds for it (soft floats, memcpy, expf)."""

    module: int
    helpers: int

    @property
    def total(self) -> int:
        return self.module + self.helpers


@dataclass(frozen=True)
class KernelCode:
    """factors: bytes a count of `Kernel.code_counts`, of one call; shared: names of the C functions that it calls;
    alone: bytes that a call takes less, where a module has no other of this entry: compilers then put its constants
    into these functions."""

    factors: dict[str, float]
    shared: tuple[str, ...]
    alone: float = 0.0

    def bytes(self, counts: Counts, alone: bool) -> float:
        return sum(factor * counts.get(name, 0) for name, factor in self.factors.items()) - alone * self.alone


@dataclass(frozen=True)
class CodeTable:
    """about    compiler and flags of the measurement
    module     what is no kernel's: name of `module_parts` or `loop_parts` -> its code
    kernels    code_entry of a kernel -> its code
    functions  name of a shared function -> its bytes, and those where one operator alone calls it: compilers then know
               its constants
    """

    about: dict[str, str]
    module: dict[str, KernelCode]
    kernels: dict[str, KernelCode]
    functions: dict[str, tuple[int, int]]

    def kernel(self, entry: str) -> KernelCode | None:
        """That of an entry; of a path that was not measured, the most like it of its kernel's that were; else None."""
        if entry in self.kernels:
            return self.kernels[entry]
        name = entry.partition(" ")[0]
        paths = [known for known in self.kernels if known.partition(" ")[0] == name]
        alike = max(paths, key=lambda known: len({*known.split()} & {*entry.split()}), default=None)
        return None if alike is None else self.kernels[alike]


def code_entry(op: Op, kernel: Kernel, by_row: bool, context: Context) -> str:
    """The kernel's name in a table of code; each of its paths has an entry of its own."""
    return " ".join(filter(None, (kernel.name, kernel.code_path(op, by_row, context))))


def calls_in(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Iterator[tuple[Kernel, Op, bool]]:
    """A stage's kernel, and those that its calls call, each with its operator and whether it is called by rows."""
    yield kernel, op, by_row
    yield from ((inner, part, True) for inner, part in kernel.parts(op, context))


@cache
def code_table(name: str | None) -> CodeTable | None:
    """The table of that name (Target.cost_table), None for none. ToolMissing where the file is not there."""
    if name is None:
        return None
    fields = tomllib.loads(table_text("code", name))
    kernels = {entry: _kernel_code(each) for entry, each in fields["kernels"].items()}
    functions = {function: (several, alone) for function, (several, alone) in fields["functions"].items()}
    module = {part: _kernel_code(each) for part, each in fields["module"].items()}
    return CodeTable(fields["about"], module, kernels, functions)


def _kernel_code(fields: dict[str, Any]) -> KernelCode:
    return KernelCode(fields["factors"], tuple(fields["shared"]), fields.get("alone", 0.0))


def every_group(plan: Plan) -> Iterator[tuple[Plan, Group]]:
    """Those of the graphs that its operators run too, each with its plan."""
    for each in (plan, *plan.subplans.values()):
        yield from ((each, group) for group in each.groups)


def module_parts(plan: Plan) -> dict[str, Counts]:
    """What a module has beside its groups: the functions that firmware calls."""
    tensors = len(plan.source.inputs) + len(plan.source.outputs)
    return {"api": {"calls": 1, "tensors": tensors, "states": len(plan.states)}}


def loop_parts(plan: Plan, group: Group) -> dict[str, Counts]:
    """What a group has beside its kernels' calls: stages that take turns in a loop over rows, and of these the ones
    whose rings slide."""
    if len(group.stages) == 1:
        return {}
    loops = loop_features(group.stages, group_stream(plan, group))
    slides = sum(loop.get("slides", 0) > 0 for loop in loops)
    return {"row_loops": {"calls": len(loops)}, **({"slides": {"calls": slides}} if slides else {})}


@dataclass(frozen=True)
class StageCode:
    """call: bytes of a stage's call, None where its kernel was not measured; shared: C functions that it calls."""

    call: int | None
    shared: tuple[str, ...]


@dataclass(frozen=True)
class PlanCode:
    """What a module's code is predicted to take, at -O2.

    module     bytes of its API and of the loops over rows
    stages     of each group, its stages' code; groups of graphs that operators run stand behind the others
    functions  name of a shared function -> its bytes, each once
    guessed    bytes of kernels that were not measured, by a rule of thumb
    """

    module: int
    stages: tuple[tuple[StageCode, ...], ...]
    functions: dict[str, int]
    guessed: int

    @property
    def total(self) -> int:
        calls = sum(stage.call or 0 for group in self.stages for stage in group)
        return self.module + calls + sum(self.functions.values()) + self.guessed


def plan_code(plan: Plan) -> PlanCode:
    """The predicted code of a plan's module, and of what it calls of CMSIS-NN."""
    table = code_table(plan.context.target.cost_table)
    groups = list(every_group(plan))
    if table is None:
        unknown = tuple(tuple(StageCode(None, ()) for _ in group.stages) for _, group in groups)
        return PlanCode(_UNKNOWN_MODULE, unknown, {}, _guess(plan, unknown))
    calls = [
        [list(_calls(stage.op, stage.kernel, stage.by_row, each.context)) for stage in group.stages]
        for each, group in groups
    ]
    entries = Counter(entry for group_calls in calls for stage_calls in group_calls for entry, _ in stage_calls)
    found = tuple(tuple(_call_code(table, of_stage, entries) for of_stage in of_group) for of_group in calls)
    users = Counter(name for group in found for stage in group for name in stage.shared)
    module = 0.0
    for parts in (module_parts(plan), *(loop_parts(each, group) for each, group in groups)):
        for part, counts in parts.items():
            module += table.module[part].bytes(counts, alone=False)
            users.update(table.module[part].shared)
    functions = {name: table.functions[name][count == 1] for name, count in sorted(users.items())}
    return PlanCode(round(module), found, functions, _guess(plan, found))


def _calls(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Iterator[tuple[str, Counts]]:
    """The entries of what a kernel's call takes, each with its counts."""
    for each, part, row in calls_in(op, kernel, by_row, context):
        yield code_entry(part, each, row, context), each.code_counts(part, row)


def _call_code(table: CodeTable, calls: Iterable[tuple[str, Counts]], entries: Mapping[str, int]) -> StageCode:
    """`entries`: how many calls the module has of each."""
    call, shared = 0.0, dict[str, None]()
    for entry, counts in calls:
        code = table.kernel(entry)
        if code is None:
            return StageCode(None, ())
        call += code.bytes(counts, alone=entries[entry] == 1)
        shared |= dict.fromkeys(code.shared)
    return StageCode(round(call), tuple(shared))


def _guess(plan: Plan, found: tuple[tuple[StageCode, ...], ...]) -> int:
    """Averages over the MLPerf Tiny models of what was not measured."""
    unknown = [
        stage.kernel.name
        for (_, group), codes in zip(every_group(plan), found, strict=True)
        for stage, code in zip(group.stages, codes, strict=True)
        if code.call is None
    ]
    return _UNKNOWN_CALL * len(unknown) + _UNKNOWN_KERNEL * len(set(unknown))


def estimated_code_bytes(plan: Plan) -> int:
    """Code size without a compiler: always called an estimate."""
    return plan_code(plan).total
