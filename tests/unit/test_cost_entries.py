"""Every kernel that the registry may choose was measured on the cores that it serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import layer_cases
import pytest
from cases import NAMED
from compiler_modules import convolutions, layers_by_two, layers_for_helium, layers_of_int4, modules, narrow_layers

from tinyfuse.cost import cost_table
from tinyfuse.cost.table import cycle_table, entry_name
from tinyfuse.ir import Op
from tinyfuse.kernels.base import Context, Kernel
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target


@cache
def operators(target: str) -> tuple[Op, ...]:
    """The cases of all kinds, and what rewrites make of models: every kernel serves one of them."""
    named = [op for cases in (NAMED, layer_cases.NAMED) for ops in cases.values() for op in ops.values()]
    layers = [*convolutions(), *layers_by_two(), *layers_for_helium(), *layers_of_int4(), *narrow_layers()]
    return tuple(dict.fromkeys([*named, *layers, *(op for plan in modules(target) for op in run_by(plan))]))


def run_by(plan: Plan) -> Iterator[Op]:
    for each in (plan, *plan.subplans.values()):
        yield from (stage.op for group in each.groups for stage in group.stages)


def entries(op: Op, kernel: Kernel, context: Context) -> set[str]:
    """Those that predict it."""
    forms = [False] * kernel.whole + [True] * kernel.by_row
    found = {entry_name(op, kernel, by_row, context) for by_row in forms}
    return found if kernel.costs_with is None else found | {kernel.costs_with}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_every_kernel_was_measured(target: str) -> None:
    balanced = Context(load_target(target))
    contexts = [balanced, replace(balanced, optimize="ram"), replace(balanced, optimize="speed", at_once=8)]
    contexts += [replace(balanced, weights=weights) for weights in ("unpacked", "winograd", "compressed")]
    table, cycles = cost_table(balanced.target.cost_table), cycle_table(balanced.target.cycle_table)
    assert table is not None
    reached = {
        (kernel.name, entry): str(op)
        for op in operators(target)
        for kernel in kernels_for(op)
        if kernel.predictable
        for context in contexts
        if kernel.accepts(op, context)
        for entry in entries(op, kernel, context)
    }
    lacking = {(name, entry): op for (name, entry), op in reached.items() if entry not in table.kernels}
    assert not lacking
    assert cycles is None or table.kernels.keys() <= cycles.cycles.kernels.keys()
