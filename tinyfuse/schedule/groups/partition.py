"""Partitions by rule into fusion groups.

A partition is a list of lists of operators, in an order of execution. `--fusion none` gives every operator its own
group. `basic` adds elementwise operators to their producer's group (what converters turn a batch normalization into,
activations that no clamp can express). `rows` also adds pointwise convolutions after a depthwise one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import SAME_ROW
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.variants.variants import Variant


def partition(graph: Graph, context: Context, fusion: str) -> list[list[Op]]:
    """Groups of a graph, every operator once. Aliases (RESHAPE, views) run nothing and are left out, except under
    "none", where they copy unless their input ends there."""
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
    """Partitions each variant for each level of fusion.

    Variants that cannot be computed are left out, because some rewrites do not allow --feed-rows. CompileError if none
    can.
    """
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
    """Shortest group from `source` on that takes its rows as they come. CompileError if there is none, because the rows
    would have to be kept."""
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
    """The only reader of `op`'s only output, if nothing else needs that tensor; else None."""
    if len(op.outputs) != 1 or op.output in graph.outputs:
        return None
    consumers = graph.consumers.get(op.output, ())
    return consumers[0] if len(consumers) == 1 else None


def _wanted(group: list[Op], follower: Op, fusion: str) -> bool:
    """Tells whether the fusion level lets the group take the operator after it."""
    last = group[-1]
    if is_pointwise_function(follower) or FAMILIES[last.kind].partial:
        return True
    if fusion != "rows":
        return False
    depthwise = FAMILIES[last.kind].depthwise or (len(group) > 1 and FAMILIES[group[0].kind].depthwise)
    return depthwise and is_pointwise_convolution(follower)


def is_pointwise_function(op: Op) -> bool:
    """Tells whether an operator computes each element of its output from the same element of its one activation."""
    return (
        len(op.activations) == len(op.outputs) == 1
        and op.first_activation.shape == op.output.shape
        and not FAMILIES[op.kind].macs(op)
        and FAMILIES[op.kind].row_window(op, op.inputs.index(op.first_activation)) == SAME_ROW
    )


def is_pointwise_convolution(op: Op) -> bool:
    """Tells whether an operator is a convolution whose windows are single pixels, one per output pixel."""
    family = FAMILIES[op.kind]
    mixes = family.convolution and not family.depthwise
    return mixes and family.row_window(op, 0) == SAME_ROW and op.operand(1).shape[1:3] == (1, 1)
