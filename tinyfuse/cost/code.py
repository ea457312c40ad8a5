"""Predicted bytes of code: before anything is compiled, from tables measured on compiled modules.

A call of a kernel is inlined, so that every operator has bytes of its own; what is large in a kernel is a C function
that a module has once, whoever calls it (TINYFUSE_SHARED). `targets/code/NAME.toml` (benchmarks/measure_code.py) has
both, of -O2. What was not measured, functions of CMSIS-NN and kernels of plugins, is estimated by a rule of thumb.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyfuse.cost.predict import group_stream
from tinyfuse.cost.table import loop_features, table_text
from tinyfuse.ir import Op
from tinyfuse.kernels.base import Context, Kernel
from tinyfuse.kernels.counts import Counts
from tinyfuse.plan import Group, Plan, Stage

#: the rule of thumb, of a core without a table and of kernels that were not measured: bytes of the API, of an inlined
#: call, of each different kernel
_UNKNOWN_MODULE, _UNKNOWN_CALL, _UNKNOWN_KERNEL = 600, 250, 1200


@dataclass(frozen=True)
class KernelCode:
    """factors: bytes a count of `Kernel.code_counts`, of one call; shared: names of the C functions that it calls."""

    factors: dict[str, float]
    shared: tuple[str, ...]


@dataclass(frozen=True)
class CodeTable:
    """about    compiler and flags of the measurement
    module     bytes a count of `api_counts` and `loop_counts`
    kernels    code_entry of a kernel -> its code
    functions  name of a shared function -> its bytes, and those where one operator alone calls it: compilers then know
               its constants
    """

    about: dict[str, str]
    module: dict[str, float]
    kernels: dict[str, KernelCode]
    functions: dict[str, tuple[int, int]]

    def kernel(self, entry: str) -> KernelCode | None:
        """That of an entry; of a path that was not measured, the first of its kernel's that was; else None."""
        name = entry.partition(" ")[0]
        other = (code for known, code in self.kernels.items() if known.partition(" ")[0] == name)
        return self.kernels.get(entry) or next(other, None)

    def call(self, op: Op, kernel: Kernel, by_row: bool, context: Context) -> float | None:
        """Bytes of one call, without the functions that it shares with others; None where it was not measured."""
        found = [
            (self.kernel(code_entry(part, each, row, context)), each.code_counts(part, row))
            for each, part, row in calls_in(op, kernel, by_row, context)
        ]
        if any(code is None for code, _ in found):
            return None
        return sum(_sum(code.factors, counts) for code, counts in found if code is not None)


def _sum(factors: Mapping[str, float], counts: Counts) -> float:
    return sum(factor * counts.get(name, 0) for name, factor in factors.items())


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
    return CodeTable(fields["about"], fields["module"]["factors"], kernels, functions)


def _kernel_code(fields: dict[str, Any]) -> KernelCode:
    return KernelCode(fields["factors"], tuple(fields["shared"]))


def every_group(plan: Plan) -> Iterator[tuple[Plan, Group]]:
    """Those of the graphs that its operators run too, each with its plan."""
    for each in (plan, *plan.subplans.values()):
        yield from ((each, group) for group in each.groups)


def api_counts(plan: Plan) -> Counts:
    """What the bytes of a module's functions for firmware depend on: inputs and outputs, states."""
    return {"modules": 1, "tensors": len(plan.source.inputs) + len(plan.source.outputs), "states": len(plan.states)}


def loop_counts(plan: Plan, group: Group) -> Counts:
    """What the bytes of a group's loop over rows depend on: stages that take turns in it, and of these the ones whose
    rings slide."""
    if len(group.stages) == 1:
        return {}
    loops = loop_features(group.stages, group_stream(plan, group))
    return {"turns": len(loops), "slides": sum(loop.get("slides", 0) > 0 for loop in loops)}


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
    found = tuple(tuple(_stage_code(table, stage, each) for stage in group.stages) for each, group in every_group(plan))
    called = Counter(name for group in found for stage in group for name in stage.shared)
    functions = {name: table.functions[name][count == 1] for name, count in sorted(called.items())} if table else {}
    loops = [loop_counts(each, group) for each, group in every_group(plan)]
    module = sum(_sum(table.module, counts) for counts in [api_counts(plan), *loops]) if table else _UNKNOWN_MODULE
    return PlanCode(round(module), found, functions, _guess(plan, found))


def _stage_code(table: CodeTable | None, stage: Stage, plan: Plan) -> StageCode:
    call = table.call(stage.op, stage.kernel, stage.by_row, plan.context) if table else None
    if table is None or call is None:
        return StageCode(None, ())
    parts = calls_in(stage.op, stage.kernel, stage.by_row, plan.context)
    codes = (table.kernel(code_entry(op, kernel, by_row, plan.context)) for kernel, op, by_row in parts)
    shared = dict.fromkeys(name for code in codes if code is not None for name in code.shared)
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


def call_code_bytes(op: Op, kernel: Kernel, by_row: bool, context: Context) -> float | None:
    """Bytes of one call of a kernel, without the functions that it shares with others: what it grows a module by that
    has these. None where that was not measured."""
    table = code_table(context.target.cost_table)
    return None if table is None else table.call(op, kernel, by_row, context)
