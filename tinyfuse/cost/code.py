"""Bytes of code predicted before anything is compiled, from tables measured on compiled modules.

A kernel's call is inlined, so each operator has its own bytes; the large parts of a kernel are C functions that a
module has once (TINYFUSE_SHARED). `targets/code/NAME.toml` (benchmarks/measure_code.py) has both, at -O2. Functions of
CMSIS-NN and kernels of plugins, which were not measured, are estimated by a rule of thumb.
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

#: rule of thumb for cores without a table and kernels that were not measured: bytes of the API, of each inlined call,
#: and of each distinct kernel
_UNKNOWN_MODULE, _UNKNOWN_CALL, _UNKNOWN_KERNEL = 600, 250, 1200


class CodeBytes(NamedTuple):
    """Linked bytes of code with its constants.

    module   the module, and what it calls of CMSIS-NN
    helpers  functions of the compiler and the C library that the linker adds for it (soft floats, memcpy, expf)
    """

    module: int
    helpers: int

    @property
    def total(self) -> int:
        return self.module + self.helpers


@dataclass(frozen=True)
class KernelCode:
    """Code size of a kernel.

    factors  bytes per count of `Kernel.code_counts`, of one call
    shared   names of the C functions that it calls
    alone    bytes saved if the module has only one call of this entry: compilers then move constants into the functions
    """

    factors: dict[str, float]
    shared: tuple[str, ...]
    alone: float = 0.0

    def bytes(self, counts: Counts, alone: bool) -> float:
        return sum(factor * counts.get(name, 0) for name, factor in self.factors.items()) - alone * self.alone


@dataclass(frozen=True)
class CodeTable:
    """Measured code sizes of a target.

    about      compiler and flags of the measurement.
    module     name from `module_parts` or `loop_parts` -> code besides kernels.
    kernels    code_entry of a kernel -> its code.
    functions  name of a shared function -> (bytes, bytes if only one operator calls it, whose constants are known).
    """

    about: dict[str, str]
    module: dict[str, KernelCode]
    kernels: dict[str, KernelCode]
    functions: dict[str, tuple[int, int]]

    def kernel(self, entry: str) -> KernelCode | None:
        """Code of an entry; if its path was not measured, of the kernel's most similar path; else None."""
        if entry in self.kernels:
            return self.kernels[entry]
        name = entry.partition(" ")[0]
        paths = [known for known in self.kernels if known.partition(" ")[0] == name]
        alike = max(paths, key=lambda known: len({*known.split()} & {*entry.split()}), default=None)
        return None if alike is None else self.kernels[alike]


def code_entry(op: Op, kernel: Kernel, by_row: bool, context: Context) -> str:
    """Kernel's name in a code table; each of its paths has its own entry."""
    return " ".join(filter(None, (kernel.name, kernel.code_path(op, by_row, context))))


def calls_in(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Iterator[tuple[Kernel, Op, bool]]:
    """Yields a stage's kernel and the kernels that it calls: (kernel, operator, called by rows)."""
    yield kernel, op, by_row
    yield from ((inner, part, True) for inner, part in kernel.parts(op, context))


@cache
def code_table(name: str | None) -> CodeTable | None:
    """Table of that name (Target.cost_table), None for None. ToolMissing if the file is missing."""
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
    """Yields all groups with their plans, those of called graphs included."""
    for each in (plan, *plan.subplans.values()):
        yield from ((each, group) for group in each.groups)


def module_parts(plan: Plan) -> dict[str, Counts]:
    """Code of a module besides its groups: the functions that firmware calls."""
    tensors = len(plan.source.inputs) + len(plan.source.outputs)
    return {"api": {"calls": 1, "tensors": tensors, "states": len(plan.states)}}


def loop_parts(plan: Plan, group: Group) -> dict[str, Counts]:
    """Code of a group besides its kernels' calls: the row loop of several stages, and those of its stages whose rings
    slide."""
    if len(group.stages) == 1:
        return {}
    loops = loop_features(group.stages, group_stream(plan, group))
    slides = sum(loop.get("slides", 0) > 0 for loop in loops)
    return {"row_loops": {"calls": len(loops)}, **({"slides": {"calls": slides}} if slides else {})}


@dataclass(frozen=True)
class StageCode:
    """Code of a stage: bytes of its call (None if its kernel was not measured), and the C functions that it calls."""

    call: int | None
    shared: tuple[str, ...]


@dataclass(frozen=True)
class PlanCode:
    """Predicted code size of a module, at -O2.

    module     bytes of its API and of the loops over rows
    stages     code of each group's stages; groups of called graphs come last
    functions  name of a shared function -> its bytes, counted once
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
    """Predicts the code size of a plan's module, with what it calls of CMSIS-NN."""
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
    """Yields (entry, counts) of a kernel and of those that it calls."""
    for each, part, row in calls_in(op, kernel, by_row, context):
        yield code_entry(part, each, row, context), each.code_counts(part, row)


def _call_code(table: CodeTable, calls: Iterable[tuple[str, Counts]], entries: Mapping[str, int]) -> StageCode:
    """Predicts the code of a stage from its calls; `entries` counts the module's calls of each entry."""
    call, shared = 0.0, dict[str, None]()
    for entry, counts in calls:
        code = table.kernel(entry)
        if code is None:
            return StageCode(None, ())
        call += code.bytes(counts, alone=entries[entry] == 1)
        shared |= dict.fromkeys(code.shared)
    return StageCode(round(call), tuple(shared))


def _guess(plan: Plan, found: tuple[tuple[StageCode, ...], ...]) -> int:
    """Estimates the bytes of kernels that were not measured, by averages over the MLPerf Tiny models."""
    unknown = [
        stage.kernel.name
        for (_, group), codes in zip(every_group(plan), found, strict=True)
        for stage, code in zip(group.stages, codes, strict=True)
        if code.call is None
    ]
    return _UNKNOWN_CALL * len(unknown) + _UNKNOWN_KERNEL * len(set(unknown))


def estimated_code_bytes(plan: Plan) -> int:
    """Code size without a compiler, in bytes: always called an estimate."""
    return plan_code(plan).total
