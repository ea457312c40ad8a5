"""Fuses elementwise operators into one loop, where that is predicted to take fewer instructions.

before   %a = LOGISTIC(%gate);  %b = MUL(%x, %a);  %c = ADD(%b, %residual)
after    %c = FUSED_LOOP(%gate, %x, %residual)

This is no rewrite, because the cost of a loop depends on the target's kernels. A region of operators qualifies if it
has one output, one dtype, and no reader outside of the tensors between its operators. Each operator must compute
elements of the output's shape from elements at the same place, of the same channel, or from single values
(`Kernel.element`). Regions grow from their last operator backwards, and the size that saves most is taken. An operator
is not moved to a later position if that keeps alive an input larger than the operator's output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.predict import kernel_instructions
from tinyfuse.ir import Graph, Op, Saving, Tensor
from tinyfuse.kernels.core.context import Context, with_objective
from tinyfuse.kernels.registry import element_of
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.ops.elementwise.merged import merged, reach
from tinyfuse.schedule.kernel_choice.stages import make_stages

#: largest share of its operators' cost that a loop may be predicted to take. It exceeds 1 because loops are predicted a
#: few percent too high and need no memory between operators, which counts most for the least RAM; for other dtypes than
#: int8, predictions err by twice as much
_OF_INT8, _OF_OTHERS, _FOR_RAM = 1.06, 0.95, 1.15


def merge_elementwise(graph: Graph, context: Context, for_ram: bool = False) -> Graph:
    """Graph with fused loops; the same object if there is nothing to fuse. CMSIS-NN's kernels stay if the user asks for
    them.

    With `for_ram`, loops are chosen for the least RAM. All other objectives share one graph, made without it.
    """
    if context.kernels == "cmsis-nn":
        return graph
    common = with_objective(replace(context, step=False), optimize="balanced")
    position, instead = {op: place for place, op in enumerate(graph.ops)}, dict[Op, Op | None]()
    reached = Reached()
    for last in reversed(graph.ops):
        if last in instead or not _joins(last, last):
            continue
        best, saved = tuple[Op, ...](), 0.0
        for region in _regions(graph, last, position, instead, reached):
            found = _saving(region, common, for_ram)
            if found > saved:
                best, saved = region, found
        if best:
            instead |= dict.fromkeys(best)
            instead[last] = merged(best)
    if not instead:
        return graph
    ops = tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None)
    saving = Saving(merge_elementwise.__name__, tuple(op for op in graph.ops if op in instead), 0, 0)
    return replace(graph, ops=ops, savings=(*graph.savings, saving), limits=merge_limits(graph.limits, reached.found))


def _joins(op: Op, last: Op) -> bool:
    """Tells whether an operator may be computed in one loop with `last`, element by element."""
    if op.view or op.states or not op.activations or len(op.outputs) != 1 or op.output.shape != last.output.shape:
        return False
    element = element_of(op)
    return element is not None and all(reach(last, tensor) for tensor in element.values_of(op))


def _regions(
    graph: Graph, last: Op, position: Mapping[Op, int], taken: Mapping[Op, Op | None], reached: Reached
) -> Iterator[tuple[Op, ...]]:
    """Yields the regions of several operators that end with `last`, each with one more than the one before."""
    inside = {last}
    while True:
        if len(inside) > 1:
            yield tuple(sorted(inside, key=position.__getitem__))
        front = (graph.producer.get(tensor) for op in inside for tensor in op.activations)
        more = [op for op in front if op is not None and op not in inside and op not in taken]
        more = [op for op in more if _may_enter(graph, op, last, inside, position)]
        if not more:
            return
        if len(inside) == limits.LOOP.most:
            reached.note(limits.LOOP)
            return
        inside.add(max(more, key=position.__getitem__))


def _may_enter(graph: Graph, op: Op, last: Op, inside: set[Op], position: Mapping[Op, int]) -> bool:
    if not _joins(op, last) or op.output in graph.outputs or not inside.issuperset(graph.consumers[op.output]):
        return False
    if len(_dtypes(op, *inside)) > 1:
        return False
    if all(between in inside for between in graph.ops[position[op] + 1 : position[last]]):
        return True
    kept = (t for t in op.activations if _ends_with(graph, t, op, position))
    return sum(tensor.bytes for tensor in kept) <= op.output.bytes


def _dtypes(*ops: Op) -> set[str]:
    """Dtypes of all values except bool conditions; a fused loop has only one."""
    return {tensor.dtype for op in ops for tensor in (*op.activations, *op.outputs)} - {"bool"}


def _ends_with(graph: Graph, tensor: Tensor, op: Op, position: Mapping[Op, int]) -> bool:
    """Tells whether nobody needs a tensor after an operator."""
    readers = graph.consumers[tensor]
    return tensor not in graph.outputs and max(readers, key=position.__getitem__) is op


def _saving(region: tuple[Op, ...], context: Context, for_ram: bool) -> float:
    """Instructions by which one loop is predicted to undercut its share of its operators' cost; 0 if it takes more."""
    loop = merged(region)
    apart = sum(_instructions(op, context) for op in region)
    together = _instructions(loop, context)
    share = _FOR_RAM if for_ram else _OF_INT8 if loop.output.dtype == "int8" else _OF_OTHERS
    return max(0.0, share * apart - together)


def instructions_of_region(ops: tuple[Op, ...], context: Context) -> float:
    """Predicted instructions of a region of elementwise operators: of one loop if that takes fewer than they do
    apart."""
    apart = sum(_instructions(op, context) for op in ops)
    joins = all(_joins(op, ops[-1]) for op in ops) and len(_dtypes(*ops)) == 1
    if not 1 < len(ops) <= limits.LOOP.most or not joins:
        return apart
    return min(apart, _instructions(merged(ops), context))


def _instructions(op: Op, context: Context) -> float:
    """Predicted instructions of an operator that stands alone."""
    (stage,) = make_stages([op], context)
    return kernel_instructions(stage, context)
