"""Lowers a partition to groups of stages, arena buffers with lifetimes, and overlaps."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from tinyfuse.arena import Buffer, Overlap
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import FEED_STATE, FEED_STATE_BYTES, STACK_ALIGN, Group, Stage, Storage, tensor_align
from tinyfuse.plan.liveness import Liveness
from tinyfuse.plan.places import Places
from tinyfuse.plan.rows import USUAL_RINGS, RingModes, Stream, height, row_bytes
from tinyfuse.plan.stack import may_be_stacked
from tinyfuse.schedule.groups.in_place import has_planes_on_both_sides, share_places
from tinyfuse.schedule.groups.overlaps import Border, stack_name
from tinyfuse.schedule.kernel_choice.stages import StageMemo, make_stages


@dataclass(frozen=True)
class Lowered:
    """A lowered partition, before placement.

    groups    groups with a kernel for every operator
    storage   buffer, and place in it, of every activation
    buffers   arena buffers with lifetimes
    overlaps  overlaps allowed between buffers that are alive together
    """

    groups: tuple[Group, ...]
    storage: dict[Tensor, Storage]
    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]


def lower(
    graph: Graph,
    partition: Sequence[Sequence[Op]],
    context: Context,
    rings: RingModes = USUAL_RINGS,
    memo: StageMemo | None = None,
) -> Lowered:
    """Lowers a partition; `rings` is the layout of each group's rings. `memo`: see make_stages."""
    scheduled = {op for ops in partition for op in ops}
    places = Places(op for op in graph.ops if op not in scheduled)
    share_places(graph, partition, places, _between_planes(graph, partition, context, places, rings, memo))
    groups = []
    buffers: list[Buffer] = []
    overlaps: list[Overlap] = []
    names = _BufferNames()

    lifetimes = _lifetimes(Liveness(graph, partition, places))
    for tensor, (first, last) in lifetimes.items():
        buffers.append(Buffer(names.of(tensor), tensor.bytes, first, last, tensor_align(tensor), owner=tensor.name))
    storage = _whole_storage(graph, places, dict(zip(lifetimes, buffers, strict=True)))
    whole_buffers = {buffer.name: number for number, buffer in enumerate(buffers)}
    # the caller writes these before the first group
    brought = {storage[tensor].buffer for tensor in graph.inputs}
    wanted = {storage[tensor].buffer for tensor in graph.outputs}
    sizes = {buffer.name: buffer.bytes for buffer in buffers}

    for index, ops in enumerate(partition):
        stages = make_stages(ops, context, memo)
        kept = frozenset(t for op in ops for t in op.outputs if places.root(t) in lifetimes)
        resident_output = None
        if index in rings.resident_output:
            own = {t: buffers[whole_buffers[storage[t].buffer]] for t in kept if places.root(t) is t}
            resident_output = growing_output(stages, {t for t, buffer in own.items() if buffer.first_step == index})
        stream = stream_of(stages, kept, context, index not in rings.fixed, index in rings.stacked, resident_output)
        inner, scratch = _inner_buffers(index, stages, stream, names)
        for buffer, ring in inner:
            buffers.append(buffer)
            sizes[buffer.name] = buffer.bytes
            if stream and ring:
                storage[ring] = Storage(buffer.name, stream.rings[ring], ring in stream.sliding)
        group = _group(index, stages, kept, scratch, stream)
        for stacked in group.stack:
            if stream and stacked.tensor is not stream.resident_output:
                storage[stacked.tensor] = Storage(stack_name(index), stream.rings[stacked.tensor], True)
        if group.counters:
            buffers += _feed_buffers(group, group.counters, len(partition) - 1)
        groups.append(group)
        crossing = [buffers[whole_buffers[storage[t].buffer]] for t in (*group.inputs, *group.outputs)]
        border = Border(
            group, stream, storage, sizes,
            frozenset(b.name for b in crossing if b.first_step == index and b.name not in brought),
            frozenset(b.name for b in crossing if b.last_step > index or b.name in wanted),
        )  # fmt: skip
        overlaps += border.overlaps()
        if stream:
            overlaps += border.inner_overlaps(stream) + border.input_overlaps(stream)
            for name, alive in border.live_sets(stream).items():
                number = whole_buffers[name]
                buffers[number] = replace(buffers[number], live_sets=alive)
    return Lowered(tuple(groups), storage, tuple(buffers), tuple(overlaps))


def _between_planes(
    graph: Graph, partition: Sequence[Sequence[Op]], context: Context, places: Places, rings: RingModes,
    memo: StageMemo | None,
) -> Iterator[tuple[int, Stream]]:  # fmt: skip
    """Yields (number, loop) of the groups that read tensors with channels first and also write some."""
    found = [index for index, ops in enumerate(partition) if has_planes_on_both_sides(ops)]
    inner = Liveness(graph, partition, places).inner if found else frozenset()
    for index in found:
        ops = partition[index]
        kept = frozenset(t for op in ops for t in op.outputs if places.root(t) not in inner)
        stages = make_stages(ops, context, memo)
        stream = stream_of(stages, kept, context, index not in rings.fixed, index in rings.stacked)
        if stream is not None:
            yield index, stream


def place_states(graph: Graph) -> dict[Tensor, int]:
    """Byte offsets of the states from the start of the state's memory, in the order of first use."""
    offsets, end = {}, 0
    for tensor in graph.states:
        align = tensor_align(tensor)
        offsets[tensor] = -(-end // align) * align
        end = offsets[tensor] + tensor.bytes
    return offsets


def _whole_rows(tensor: Tensor) -> int:
    return height(tensor) if len(tensor.shape) == 4 else 1


class _BufferNames:
    """Short unique buffer names: t<index in the file>, x<n> for tensors that a rewrite made."""

    def __init__(self) -> None:
        self._made = 0

    def of(self, tensor: Tensor) -> str:
        if tensor.index >= 0:
            return f"t{tensor.index}"
        self._made += 1
        return f"x{self._made}"


def _lifetimes(live: Liveness) -> dict[Tensor, tuple[int, int]]:
    """First and last group in which each root that exists whole in the arena must keep its bytes."""
    last = max(0, live.after - 1)
    return {
        root: (max(0, live.first(root)), min(max(0, live.last(root)), last))
        for root in live.uses
        if root not in live.inner
    }


def _whole_storage(graph: Graph, places: Places, buffers: dict[Tensor, Buffer]) -> dict[Tensor, Storage]:
    """Storage of the roots that have `buffers`, and of all tensors in them."""
    storage = {tensor: Storage(buffer.name, _whole_rows(tensor)) for tensor, buffer in buffers.items()}
    for op in graph.ops:
        for tensor in op.activations + op.outputs:
            place = places.of(tensor)
            if place.root in buffers:
                storage[tensor] = Storage(buffers[place.root].name, _whole_rows(tensor), offset=place.offset)
    return storage


def stream_of(
    stages: tuple[Stage, ...], kept: frozenset[Tensor], context: Context, slide: bool = True, stack: bool = False,
    resident_output: Tensor | None = None,
) -> Stream | None:  # fmt: skip
    """Simulated loop of a group; None for a whole call. Rings may slide unless only speed counts."""
    return (
        Stream(stages, kept, slide and context.optimize != "speed", stack, resident_output)
        if stages[0].by_row
        else None
    )


def may_stack(stages: tuple[Stage, ...], context: Context) -> bool:
    """Tells whether the rings of a group may lie in a stack: with --optimize ram's kernels, and if no calls are
    divided."""
    return context.min_scratch and not context.divided and len(stages) > 1


def growing_output(stages: tuple[Stage, ...], begun: Container[Tensor]) -> Tensor | None:
    """Largest output that may lie at the bottom of a group's stack of rings; None without one. Only outputs in `begun`
    qualify: each has its own buffer, which holds nothing before the group."""
    found = [stage.op.output for stage in stages if stage.op.output in begun and may_be_stacked(stage)]
    return max(found, key=lambda tensor: tensor.bytes, default=None)


def _inner_buffers(
    index: int, stages: tuple[Stage, ...], stream: Stream | None, names: _BufferNames
) -> tuple[list[tuple[Buffer, Tensor | None]], tuple[str | None, ...]]:
    """Buffers that live only inside the group, as (ring, its tensor) or (scratch, None), and the name of each stage's
    scratch. Buffers that are not alive at the same time may share bytes."""
    live_sets = stream.live_sets if stream else ((0, frozenset()),)
    found: list[tuple[Buffer, Tensor | None]] = []
    stacked: frozenset[int] = frozenset()
    if stream and stream.stack:
        stacked, size = stream.stack.members, int(stream.stack.bytes.max(initial=0))
        alive = frozenset(range(len(live_sets)))
        found.append((Buffer(stack_name(index), size, index, index, STACK_ALIGN, "stack of rings", alive), None))
    for s, stage in enumerate(stages):
        if stream and stage.op.output in stream.rings and s not in stacked:
            tensor = stage.op.output
            size = stream.rings[tensor] * row_bytes(tensor)
            alive = frozenset(m for m, (_, rings) in enumerate(live_sets) if s in rings)
            owner = f"ring of {tensor.name}"
            found.append((Buffer(names.of(tensor), size, index, index, tensor_align(tensor), owner, alive), tensor))
    scratch: list[str | None] = []
    for s, stage in enumerate(stages):
        name = None
        if stage.scratch_bytes and stream and stream.stack:
            name = stack_name(index)
        elif stage.scratch_bytes:
            name = f"scratch{index}" if len(stages) == 1 else f"scratch{index}_{s}"
            alive = frozenset(m for m, (running, _) in enumerate(live_sets) if running == s)
            owner = f"scratch of {stage.kernel.name}"
            found.append((Buffer(name, stage.scratch_bytes, index, index, STACK_ALIGN, owner, alive), None))
        scratch.append(name)
    return found, tuple(scratch)


def _group(
    index: int, stages: tuple[Stage, ...], kept: frozenset[Tensor], scratch: tuple[str | None, ...],
    stream: Stream | None,
) -> Group:  # fmt: skip
    made = {tensor for stage in stages for tensor in stage.op.outputs}
    inputs: dict[Tensor, None] = {}
    for stage in stages:
        for tensor in stage.op.activations:
            if tensor not in made:
                inputs[tensor] = None
    outputs = tuple(t for stage in stages for t in stage.op.outputs if t in kept or len(stages) == 1)
    counters = f"counters{index}" if FAMILIES[stages[0].op.kind].source else None
    group = Group(index, stages, tuple(inputs), outputs, scratch, counters)
    return replace(group, stack=stream.stack.rings, eager=stream.eager) if stream and stream.stack else group


def _feed_buffers(group: Group, counters: str, last: int) -> list[Buffer]:
    """Buffers that a fed group keeps between calls: its counters, and the state of the inference, which detects calls
    out of order until the end."""
    count, size = len(group.stages) - 1, group.counter_bytes
    return [
        Buffer(FEED_STATE, FEED_STATE_BYTES, group.index, last, 4, "rows fed"),
        Buffer(counters, count * size, group.index, group.index, size, "rows made by each stage"),
    ]
