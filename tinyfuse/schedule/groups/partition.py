"""Which operators become one fusion group.

A partition is a list of lists of operators, in an order of execution. `--fusion none` gives every
operator its own group; `basic` lets a producer take the elementwise operators after it (what a
converter leaves of a batch normalization, activations that no clamp can hold); `rows` adds the
depthwise convolution and the pointwise convolution after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.kernel import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import SAME_ROW
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.variants.variants import Variant


def partition(graph: Graph, context: Context, fusion: str) -> list[list[Op]]:
    """The groups of a graph: every operator once; aliases (RESHAPE, views) are left out, for they have
    nothing to run, except under "none", where they copy unless their input ends there."""
    legality = Legality(graph, context)
    groups: list[list[Op]] = []
    taken: set[Op] = set()
    for op in graph.ops:
        if op in taken or (fusion != "none" and is_alias(op)):
            continue
        group = _fed_group(graph, op, legality) if FAMILIES[op.kind].source else [op]
        while fusion != "none":
            follower = _only_consumer(graph, group[-1])
            if follower is None or not _wanted(group, follower, fusion) or legality.refusal([*group, follower]):
                break
            group.append(follower)
        taken.update(group)
        groups.append(group)
    return groups


def partition_each(variants: Iterable[Variant], *fusions: str) -> list[tuple[Variant, list[list[list[Op]]]]]:
    """Each variant with its partition for each level of fusion. Those that can't be computed are left out: what
    another objective makes of a model may take --feed-rows. CompileError where none can."""
    found: list[tuple[Variant, list[list[list[Op]]]]] = []
    refused: CompileError | None = None
    for variant in variants:
        try:
            found.append((variant, [partition(*variant, fusion) for fusion in fusions]))
        except CompileError as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return found


def _fed_group(graph: Graph, source: Op, legality: Legality) -> list[Op]:
    """The shortest group from `source` on that takes its rows as they come. CompileError where there is
    none: the rows would have to be kept."""
    group = [source]
    refusal = legality.refusal(group)
    for op in graph.ops[graph.ops.index(source) + 1 :]:
        if refusal is None or refusal.final:
            break
        if not is_alias(op):
            group.append(op)
            refusal = legality.refusal(group)
    if refusal is None:
        return group
    hint = "leave --feed-rows out"
    raise CompileError(graph.path, Problem(f"--feed-rows: {refusal.reason}", operator=str(refusal.op), hint=hint))


def _only_consumer(graph: Graph, op: Op) -> Op | None:
    """The operator that alone reads `op`'s only output, where nothing else needs that tensor."""
    if len(op.outputs) != 1 or op.output in graph.outputs:
        return None
    consumers = graph.consumers.get(op.output, ())
    return consumers[0] if len(consumers) == 1 else None


def _wanted(group: list[Op], follower: Op, fusion: str) -> bool:
    """Whether the fusion level lets the group take the operator after it."""
    last = group[-1]
    if is_pointwise_function(follower) or FAMILIES[last.kind].partial:
        return True
    if fusion != "rows":
        return False
    depthwise = FAMILIES[last.kind].depthwise or (len(group) > 1 and FAMILIES[group[0].kind].depthwise)
    return depthwise and is_pointwise_convolution(follower)


def is_pointwise_function(op: Op) -> bool:
    """One activation in, one out of the same shape, each element from the same element."""
    return (
        len(op.activations) == len(op.outputs) == 1
        and op.first_activation.shape == op.output.shape
        and not FAMILIES[op.kind].macs(op)
        and FAMILIES[op.kind].row_window(op, op.inputs.index(op.first_activation)) == SAME_ROW
    )


def is_pointwise_convolution(op: Op) -> bool:
    """A convolution whose windows are single pixels, one for each pixel of its output."""
    family = FAMILIES[op.kind]
    mixes = family.convolution and not family.depthwise
    return mixes and family.row_window(op, 0) == SAME_ROW and op.operand(1).shape[1:3] == (1, 1)
