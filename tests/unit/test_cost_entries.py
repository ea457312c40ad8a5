"""Every kernel of ours that the registry may choose was measured on the cores that it serves, by counts that it still
gives. Of CMSIS-NN's functions those were that every tree has; without an entry, `--kernels mixed` takes none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import layer_cases
import pytest
from cases import NAMED
from compiler_modules import convolutions, layers_for_helium, layers_of_int4, layers_of_int16, modules, winograd_layers

from tinyfuse.board_timing import BoardTiming
from tinyfuse.cost import cost_table
from tinyfuse.cost.table import cycle_rates, entry_name, instructions_table
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context, with_objective
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.registry import KERNELS, kernels_for
from tinyfuse.plan import Plan
from tinyfuse.targets import all_targets, load_target


@cache
def operators(target: str) -> tuple[Op, ...]:
    """Operators that cover every kernel: the cases of all kinds, and results of rewrites on models."""
    named = [op for cases in (NAMED, layer_cases.NAMED) for ops in cases.values() for op in ops.values()]
    layers = [*convolutions(), *winograd_layers(), *layers_for_helium(), *layers_of_int4(), *layers_of_int16()]
    return tuple(dict.fromkeys([*named, *layers, *(op for plan in modules(target) for op in run_by(plan))]))


def run_by(plan: Plan) -> Iterator[Op]:
    for each in (plan, *plan.subplans.values()):
        yield from (stage.op for group in each.groups for stage in group.stages)


def entries(op: Op, kernel: Kernel, context: Context) -> Iterator[tuple[str, Counts]]:
    """Entries that predict the operator, with their counts."""
    streams = kernel.by_row and all(len(tensor.shape) == 4 for tensor in op.outputs)
    for by_row in [False] * kernel.whole + [True] * streams:
        counts = kernel.counts(op, by_row)
        yield entry_name(op, kernel, by_row, context), counts
        if kernel.costs_with is not None:
            yield kernel.costs_with, counts


#: a target -> others whose plans choose among the same kernels
_ALIKE = {
    "cortex-m0plus": ("cortex-m3", "cortex-m33+nodsp", "cortex-m33+nofp+nodsp"),
    "cortex-m4": ("cortex-m4+nofp", "cortex-m33+nofp", "cortex-m7+nofp"),
    "cortex-m55": ("cortex-m55+nofp", "cortex-m85"),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", _ALIKE)
def test_every_kernel_was_measured(target: str) -> None:
    balanced = Context(load_target(target))
    contexts = [
        balanced,
        with_objective(balanced, optimize="ram"),
        with_objective(balanced, optimize="speed", at_once=8),
    ]
    contexts += [with_objective(balanced, optimize="ram", min_scratch=True)]
    contexts += [replace(with_objective(balanced, optimize="speed"), cycles=BoardTiming())]
    contexts += [replace(balanced, weights=weights) for weights in ("unpacked", "winograd", "compressed")]
    alike = [replace(balanced, target=load_target(each)) for each in _ALIKE[target]]
    reached: dict[str, str] = {}
    floats: dict[str, set[str]] = {each.target.name: set() for each in alike}
    counted: dict[str, set[str]] = {}
    compressed: dict[tuple[str, str], set[str]] = {}
    for op in operators(target):
        for kernel in (kernel for kernel in kernels_for(op) if kernel.library == "tinyfuse"):
            for context in contexts:
                if kernel.accepts(op, context):
                    for entry, counts in entries(op, kernel, context) if not kernel.unpredictable else ():
                        reached[entry] = f"{kernel.name}: {op}"
                        counted.setdefault(entry, set()).update(counts)
                        if kernel.costs_with not in (None, entry):
                            compressed.setdefault((entry, kernel.name), set()).update(counts)
            if kernel.computes_floats and not kernel.unpredictable:
                for other in (other for other in alike if kernel.accepts(op, other)):
                    floats[other.target.name].update(entry for entry, _ in entries(op, kernel, other))
    table = instructions_table(balanced.target)
    assert table is not None
    assert not {entry: what for entry, what in reached.items() if entry not in table.kernels}
    unknown = {entry: table.kernels[entry].keys() - names for entry, names in counted.items()}
    assert not {entry: names for entry, names in unknown.items() if names}
    # what costs as a kernel with packed weights has all of its counts
    lacking = {key: table.kernels[key[0]].keys() - names for key, names in compressed.items()}
    assert not {key: names for key, names in lacking.items() if names}
    integers = reached.keys() - {entry for entry in reached if entry.removesuffix(" without FPU") in _float_entries()}
    for other in alike:
        known = instructions_table(other.target)
        assert known is not None
        assert not (integers | floats[other.target.name]) - known.kernels.keys(), other.target.name


@cache
def _float_entries() -> frozenset[str]:
    """Names of entries for kernels that compute floats with an FPU."""
    every = [kernel for of_kind in KERNELS.values() for kernel in of_kind]
    return frozenset(kernel.costs_as or kernel.name for kernel in every if kernel.computes_floats)


def test_every_entry_is_a_kernels() -> None:
    kernels = [kernel for of_kind in KERNELS.values() for kernel in of_kind]
    known = {kernel.costs_as or kernel.name for kernel in kernels} | {kernel.costs_with for kernel in kernels}
    for target in all_targets().values():
        table, cycles = cost_table(target.cost_table), cycle_rates(target.cycle_table)
        for each in (table, cycles):
            assert each is None or {entry.partition(" ")[0] for entry in each.kernels} <= known, target.name


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m4+nofp"])
def test_blocks_of_any_number_of_pixels_count(target: str) -> None:
    """Rows of one pixel had no factor in an entry, and a single pixel at the end of a row cost nothing."""
    table = instructions_table(load_target(target))
    assert table is not None
    blocks = {entry: factors for entry, factors in table.kernels.items() if "_4x2_" in entry}
    assert blocks
    lacking = [
        (entry, f"by_4_{block}")
        for entry, factors in blocks.items()
        for block in ("ones", "twos", "threes", "fours")
        if not any(count.startswith(f"by_4_{block}") for count in factors)
    ]
    assert not lacking
