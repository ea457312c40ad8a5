"""Chooses the kernel of an operator: the first in its family's list that accepts the operator and that the options
allow, or another one that the cost table predicts to be faster by a safe margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from tinyfuse.cost.table import counted_table
from tinyfuse.errors import InternalFault
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context, ObjectiveAsked, intern_context, without_objective
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops import FAMILIES
from tinyfuse.schedule.kernel_choice.alike import first_alike

#: another kernel must be predicted to take less than this share of the preferred one, because predictions err by a few
#: percent
_SURELY_FASTER = 0.9
#: the same share with --optimize speed: predictions err by 1 or 2 % on average, and the preferred kernel takes less RAM
_LIKELY_FASTER = 0.97

#: largest factor on the preferred kernel's instructions that a kernel of less scratch may take
_FAR_SLOWER = 2.0

#: estimates skip multi-row variants when CMSIS-NN's one-row cost exceeds ours by this factor (changed 0 of 2,320
#: choices)
_FAR_OFF = 1.15

#: a CMSIS-NN variant with more rows per call is chosen if it is predicted to take less than this share of the other
_WORTH_ROWS = 0.97

#: minimum instructions saved by switching between CMSIS-NN and ours: a module that calls no library is easier to build
_WORTH_A_LIBRARY = 5000


@lru_cache(maxsize=8192)
def candidates(op: Op, context: Context) -> tuple[Kernel, ...]:
    """Kernels that compute `op` exactly on the target, in order of preference.

    "auto" and "tinyfuse" allow only ours, "mixed" prefers ours, "cmsis-nn" prefers CMSIS-NN's.
    """
    kernels = _accepting(op, _offered(op, without_objective(context), of_several=False), context)
    # where a call may make only one row, multi-row functions are no candidates
    if context.at_once > 1 and not _is_far_off(op, kernels, context):
        kernels += _accepting(op, _offered(op, without_objective(context), of_several=True), context)
    halved = any(k.int4_weights and k.library == "tinyfuse" for k in kernels)
    if halved and context.kernels != "cmsis-nn" and context.weights in ("packed", "auto", "compressed"):
        # int4 weights are meant to halve the flash, which is worth a tenth more instructions
        kernels = [k for k in kernels if k.int4_weights]
    kernels = _spared(op, kernels, context)
    if context.weights == "auto":  # _best decides whether larger weights are worth their flash
        kernels = sorted(kernels, key=lambda k: k.weights != "packed")
    first = "cmsis-nn" if context.kernels == "cmsis-nn" else "tinyfuse"
    return (*[k for k in kernels if k.library == first], *[k for k in kernels if k.library != first])


def _accepting(op: Op, offered: Sequence[tuple[Kernel, bool]], context: Context) -> list[Kernel]:
    return [kernel for kernel, is_sure in offered if is_sure or kernel.accepts(op, context)]


def _is_far_off(op: Op, kernels: Sequence[Kernel], context: Context) -> bool:
    """Tells whether CMSIS-NN's one-row function is so much slower than ours that estimates skip its multi-row
    variants."""
    if not op.estimate_mark or context.kernels != "mixed":
        return False
    by_row, table = [kernel for kernel in kernels if kernel.by_row], counted_table(context)
    ours = next((kernel for kernel in by_row if kernel.library == "tinyfuse"), None)
    theirs = next((kernel for kernel in by_row if kernel.library == "cmsis-nn"), None)
    if ours is None or theirs is None or table is None:
        return False
    least, cost = table.kernel(op, ours, True, context), table.kernel(op, theirs, True, context)
    return least is not None and cost is not None and cost > _FAR_OFF * least


@lru_cache(maxsize=8192)
def _offered(op: Op, context: Context, of_several: bool) -> list[tuple[Kernel, bool]]:
    """Kernels that accept an operator, each with True, or with False if it depends on the objective. With `of_several`,
    only CMSIS-NN's multi-row variants; otherwise all other kernels."""
    found = []
    for kernel in kernels_for(op):
        if (kernel.library == "cmsis-nn" and kernel.rows_a_call > 1) != of_several:
            continue
        if kernel.name not in context.lacks and (context.calls_cmsis_nn or kernel.library == "tinyfuse"):
            try:
                if kernel.accepts(op, context):
                    found.append((kernel, True))
            except ObjectiveAsked:
                found.append((kernel, False))
    return found


def _spared(op: Op, kernels: list[Kernel], context: Context) -> list[Kernel]:
    """Kernels of compressed weights if there are any and their bytes saved are cheap enough; else the others."""
    compressed = [k for k in kernels if k.weights == "compressed"]
    if not compressed:
        return kernels
    others = [k for k in kernels if k.weights != "compressed"]
    if context.kernels == "cmsis-nn":
        return others
    price = context.flash_price
    return compressed if price is None or _price(op, compressed[0], context) <= price else others


def _price(op: Op, kernel: Kernel, context: Context) -> float:
    return compression(op, kernel, context, not kernel.whole).price


def whole_kernel(op: Op, context: Context) -> tuple[Kernel, bool]:
    """Chooses the kernel for an operator that stands alone; True if it runs in a loop over rows."""
    found = kernel_for(op, context, None)
    if found is None:
        raise InternalFault("the choice of kernels", f"no kernel for {op}; a rule should have refused it")
    return found


def operand_needed_whole(op: Op) -> Tensor | None:
    """First computed operand that has no row window, so that output rows need all of it; None without one. If no
    operand is computed (a copy of a constant), constants are looked at instead."""
    computed = [i for i, tensor in enumerate(op.inputs) if tensor is not None and not tensor.is_constant]
    whole = (i for i in computed or range(len(op.inputs)) if FAMILIES[op.kind].row_window(op, i) is None)
    return next((op.inputs[i] for i in whole), None)


def _usable_alone(op: Op, context: Context) -> list[tuple[Kernel, bool]]:
    """Kernels for an operator that stands alone, each with True if it runs in a loop over rows."""
    streamable = operand_needed_whole(op) is None
    usable = [(k, not k.whole) for k in candidates(op, context) if k.whole or (k.by_row and streamable)]
    if context.step and context.kernels != "cmsis-nn":
        usable = [(k, True) for k, _ in usable if k.by_row and streamable] or usable
    return usable


def _usable_by_rows(op: Op, context: Context, rings: bool) -> list[tuple[Kernel, bool]]:
    """Kernels for rows of an operator inside a group; `rings`: an input is a ring of rows."""
    # a state that is a ring wraps around, so kernels that need contiguous rows cannot read it
    in_order = not op.reads_ring
    return [
        (k, True)
        for k in candidates(op, context)
        if k.by_row and (k.takes_rings(op) or (k.in_order and in_order) or not rings)
    ]


def row_kernel(op: Op, context: Context, rings: bool) -> Kernel | None:
    """Chooses the kernel for rows of `op` inside a group; `rings`: an input is a ring of rows. None without one."""
    found = kernel_for(op, context, rings)
    return None if found is None else found[0]


@lru_cache(maxsize=8192)
def kernel_for(op: Op, context: Context, rings: bool | None) -> tuple[Kernel, bool] | None:
    """Chooses the kernel of `op` alone (`rings` None) or for rows inside a group, with True if it computes rows. None
    without one.

    An estimated operator gets the kernel of the first similar one, if that accepts it.
    """
    # the size of compressed weights depends on their values
    first = first_alike(op) if context.weights != "compressed" else op
    if first is not op:
        found = kernel_for(first, context, rings)
        if found is not None and found[0].accepts(op, context):
            return found
    usable = _usable_alone(op, context) if rings is None else _usable_by_rows(op, context, False)
    if rings:
        of_rings = _usable_by_rows(op, context, True)
        if len(of_rings) == len(usable):  # the common case
            return kernel_for(op, context, False)
        usable = of_rings
    return _best(op, usable, context) if usable else None


def loses_cmsis_nn(op: Op, context: Context, rings: bool) -> bool:
    """Tells whether CMSIS-NN, if the user asks for it, would compute `op` alone but not by rows inside a group."""
    if context.kernels != "cmsis-nn" or FAMILIES[op.kind].partial:
        return False
    by_row = row_kernel(op, context, rings)
    return whole_kernel(op, context)[0].library == "cmsis-nn" and (by_row is None or by_row.library != "cmsis-nn")


class Compression(NamedTuple):
    """Effect of compressing an operator's weights: flash bytes saved, and predicted instructions added (None if not in
    the cost table)."""

    bytes_spared: int
    instructions_added: float | None

    @property
    def price(self) -> float:
        """Predicted instructions added per byte saved; infinite if unknown."""
        if self.instructions_added is None or self.bytes_spared <= 0:
            return math.inf
        return self.instructions_added / self.bytes_spared


@lru_cache(maxsize=8192)
def compression(op: Op, kernel: Kernel, context: Context, by_row: bool) -> Compression:
    """Effect of a kernel of compressed weights, compared with its counterpart of packed weights."""
    plain = intern_context(replace(context, weights="packed"))
    others = candidates(op, plain)
    other = next((k for k in others if k.name == kernel.costs_as), others[0])
    spared, table = _flash(op, other, plain) - _flash(op, kernel, context), counted_table(context)
    if table is None:
        return Compression(spared, None)
    after = table.kernel(op, kernel, by_row, context)
    before = table.kernel(op, other, by_row or not other.whole, plain)
    return Compression(spared, None if after is None or before is None else after - before)


def compressible(op: Op, context: Context) -> tuple[Kernel, Compression] | None:
    """First kernel that takes `op`'s weights compressed, and its effect if `op` stands alone; None without one."""
    wanted = intern_context(replace(context, weights="compressed"))
    for kernel in kernels_for(op):
        if kernel.weights == "compressed" and kernel.accepts(op, wanted):
            return kernel, compression(op, kernel, wanted, not kernel.whole)
    return None


def _best(op: Op, usable: Sequence[tuple[Kernel, bool]], context: Context) -> tuple[Kernel, bool]:
    """Chooses among kernels, each with True if called by rows: the first, unless the cost table has a surely faster
    one.

    Faster ones take more scratch, so they are not chosen if only RAM counts, nor in place of CMSIS-NN's if the user
    asked for these.
    """
    best, table = usable[0], counted_table(context)
    if context.wants_least_scratch(op) and context.kernels != "cmsis-nn":
        return _least_scratch(op, usable, context)
    if table is None or context.optimize == "ram":
        return best
    if context.kernels == "cmsis-nn":  # only among variants of the same function
        usable = [choice for choice in usable if choice[0].name == best[0].name]
    least = table.kernel(op, *best, context)
    for other in usable[1:]:
        cost = table.kernel(op, *other, context)
        if least is None or cost is None or cost >= _surely(other[0], best[0], context) * least:
            continue
        needed: float = _WORTH_A_LIBRARY if other[0].library != usable[0][0].library else 0
        if context.weights == "auto" and context.flash_price:
            needed += context.flash_price * (_flash(op, other[0], context) - _flash(op, best[0], context))
        if cost < least - needed:
            best, least = other, cost
    return best


def _least_scratch(op: Op, usable: Sequence[tuple[Kernel, bool]], context: Context) -> tuple[Kernel, bool]:
    """First of the kernels with the least scratch, without those that are far slower than the first of all."""
    table = counted_table(context)
    if table is None:
        return usable[0]
    preferred = table.kernel(op, *usable[0], context)

    def near(choice: tuple[Kernel, bool]) -> bool:
        cost = table.kernel(op, *choice, context)
        return preferred is not None and cost is not None and cost <= preferred * _FAR_SLOWER

    first = usable[0][0]
    like = [choice for choice in usable[1:] if (choice[0].library, choice[0].weights) == (first.library, first.weights)]
    return min([usable[0], *filter(near, like)], key=lambda choice: choice[0].scratch(op, context))


def _surely(other: Kernel, best: Kernel, context: Context) -> float:
    """Largest share of the cost of `best` at which `other` is chosen. It is closer to 1 for two variants of one kernel,
    because their predictions have similar errors; and lowest for loops in plain C, whose predictions are off by up to a
    tenth."""
    if (other.form_of or other.name) == (best.form_of or best.name):
        return _WORTH_ROWS if other.library == "cmsis-nn" and other.rows_a_call > best.rows_a_call else 1.0
    return _LIKELY_FASTER if context.speed_alone and not other.no_inline else _SURELY_FASTER


def _flash(op: Op, kernel: Kernel, context: Context) -> int:
    """Bytes of a kernel's constants."""
    return sum(constant.data.nbytes for constant in kernel.constants(op, context))
