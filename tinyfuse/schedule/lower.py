"""A partition becomes groups of stages, arena buffers with lifetimes, and overlaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np

from tinyfuse.arena import Buffer, Overlap
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.base import Context, Kernel
from tinyfuse.plan import FEED_STATE, FEED_STATE_BYTES, STATE_ALIGN, Group, Stage, Storage
from tinyfuse.schedule.rows import Stream, height, row_bytes
from tinyfuse.schedule.select import row_kernel, whole_kernel

#: alignment of tensors and rings: word loads of DSP kernels; and of scratch: what kernels are told
TENSOR_ALIGN, SCRATCH_ALIGN = 4, 16


def lower(
    graph: Graph, partition: list[list[Op]], context: Context, fixed: frozenset[int] = frozenset()
) -> tuple[tuple[Group, ...], dict[Tensor, Storage], tuple[Buffer, ...], tuple[Overlap, ...]]:
    """Groups with kernels, the storage of every activation, buffers and their overlaps. In the groups
    whose numbers are `fixed`, no ring slides."""
    roots = alias_roots(graph, partition)
    groups, storage = [], {}
    buffers: list[Buffer] = []
    overlaps: list[Overlap] = []
    names = _BufferNames()

    whole = _whole_tensors(graph, partition, roots)
    lifetimes = _lifetimes(graph, partition, whole, roots)
    wanted = {roots.get(t, t) for t in graph.outputs}

    def survivors(index: int) -> set[Tensor]:
        """What somebody reads after group `index`: a later group, or the caller."""
        return {t for t, (_, last) in lifetimes.items() if last > index} | wanted

    for tensor, (first, last) in lifetimes.items():
        name = names.of(tensor)
        buffers.append(Buffer(name, tensor.bytes, first, last, TENSOR_ALIGN, owner=tensor.name))
        storage[tensor] = Storage(name, _whole_rows(tensor))
    whole_buffers = {buffer.name: number for number, buffer in enumerate(buffers)}

    for index, ops in enumerate(partition):
        stages = make_stages(ops, context)
        kept = frozenset(t for op in ops for t in op.outputs if roots.get(t, t) in whole)
        stream = stream_of(stages, kept, context, slide=index not in fixed)
        inner, scratch = _inner_buffers(index, stages, stream, names)
        for buffer, tensor in inner:
            buffers.append(buffer)
            if tensor is not None:
                storage[tensor] = Storage(buffer.name, stream.rings[tensor], tensor in stream.sliding)
        group = _group(index, stages, kept, scratch)
        if FAMILIES[ops[0].kind].source:
            group = replace(group, counters=f"counters{index}")
            buffers += _feed_buffers(group, len(partition) - 1)
        groups.append(group)
        overlaps += _overlaps(group, stream, storage, roots, survivors(index))
        if stream:
            overlaps += _inner_overlaps(group, stream, storage)
            overlaps += _input_overlaps(group, stream, storage, roots, survivors(index))
            for s, stage in enumerate(stages):
                if stage.op.output in kept:
                    number = whole_buffers[storage[stage.op.output].buffer]
                    alive = frozenset(m for m, (_, held) in enumerate(stream.moments) if s in held)
                    buffers[number] = replace(buffers[number], moments=alive)

    for alias, root in roots.items():
        storage[alias] = Storage(storage[root].buffer, _whole_rows(alias))
    return tuple(groups), storage, tuple(buffers), tuple(overlaps)


def place_states(graph: Graph) -> dict[Tensor, int]:
    """Byte offsets of the states from the start of the state's memory, in the order of first use."""
    offsets, end = {}, 0
    for tensor in graph.states:
        offsets[tensor] = -(-end // STATE_ALIGN) * STATE_ALIGN
        end = offsets[tensor] + tensor.bytes
    return offsets


def _whole_rows(tensor: Tensor) -> int:
    return height(tensor) if len(tensor.shape) == 4 else 1


def alias_roots(graph: Graph, partition: list[list[Op]]) -> dict[Tensor, Tensor]:
    """Outputs that are other names for the same bytes -> the tensor that owns them: those of the
    operators that the partition leaves out (RESHAPE; partition.py)."""
    scheduled = {op for ops in partition for op in ops}
    roots: dict[Tensor, Tensor] = {}
    for op in graph.ops:
        if op not in scheduled:
            roots[op.output] = roots.get(op.input, op.input)
    return roots


class _BufferNames:
    """Short unique buffer names: t<index in the file>, x<n> for tensors that a rewrite made."""

    def __init__(self) -> None:
        self._made = 0

    def of(self, tensor: Tensor) -> str:
        if tensor.index >= 0:
            return f"t{tensor.index}"
        self._made += 1
        return f"x{self._made}"


def _whole_tensors(graph, partition, roots) -> set[Tensor]:
    """Tensors that exist whole in the arena: what crosses a group's border, and the model's own."""
    whole = {roots.get(t, t) for t in graph.inputs + graph.outputs}
    home = {op: index for index, ops in enumerate(partition) for op in ops}
    for index, ops in enumerate(partition):
        for op in ops:
            for tensor in op.activations:
                tensor = roots.get(tensor, tensor)
                producer = graph.producer.get(tensor)
                if producer is None or home[producer] != index:
                    whole.add(tensor)
    for op in graph.ops:
        if op in home:
            # an output that nothing reads still has to be written somewhere
            whole |= {t for t in op.outputs if t not in graph.consumers and t not in roots}
    return whole


def _lifetimes(graph, partition, whole, roots) -> dict[Tensor, tuple[int, int]]:
    """First and last group in which each whole tensor must keep its bytes."""
    first: dict[Tensor, int] = {t: 0 for t in graph.inputs}
    last: dict[Tensor, int] = dict.fromkeys(graph.inputs, 0)
    for index, ops in enumerate(partition):
        for op in ops:
            for tensor in op.activations + op.outputs:
                tensor = roots.get(tensor, tensor)
                if tensor in whole:
                    first.setdefault(tensor, index)
                    last[tensor] = index
    for tensor in graph.outputs:
        last[roots.get(tensor, tensor)] = max(0, len(partition) - 1)
    return {tensor: (first[tensor], last[tensor]) for tensor in first}


def make_stages(ops: list[Op], context: Context, memo: dict | None = None) -> tuple[Stage, ...]:
    """The stages of a group of these operators, each with its kernel. `memo` keeps stages between
    calls with the same context (packing weights takes time)."""
    memo = {} if memo is None else memo
    if len(ops) == 1 and not ops[0].reads_ring:
        if (ops[0], None) not in memo:
            memo[ops[0], None] = _stage(ops[0], *whole_kernel(ops[0], context), context)
        return (memo[ops[0], None],)
    stages, inside = [], set()
    for op in ops:
        # what comes from outside the group is whole, unless it is a state
        rings = not inside.isdisjoint(op.activations) or op.reads_ring
        inside.update(op.outputs)
        if (op, rings) not in memo:
            kernel = row_kernel(op, context, rings)
            assert kernel is not None, f"{op} does not stream; the partition should know"
            memo[op, rings] = _stage(op, kernel, True, context)
        stages.append(memo[op, rings])
    return tuple(stages)


def stream_of(
    stages: tuple[Stage, ...], kept: frozenset[Tensor], context: Context, slide: bool = True
) -> Stream | None:
    """The group played through, None for a whole call. Rings may slide unless speed is all."""
    return Stream(stages, kept, slide and context.optimize != "speed") if stages[0].by_row else None


def _stage(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Stage:
    family = FAMILIES[op.kind]
    return Stage(
        op=op,
        kernel=kernel,
        by_row=by_row,
        windows=tuple(
            family.row_window(op, i) if by_row and t is not None and not t.is_constant else None
            for i, t in enumerate(op.inputs)
        ),
        constants=kernel.constants(op, context),
        scratch_bytes=kernel.scratch(op, context),
        macs=family.macs(op),
    )


def _inner_buffers(
    index: int, stages: tuple[Stage, ...], stream: Stream | None, names: _BufferNames
) -> tuple[list[tuple[Buffer, Tensor | None]], tuple[str | None, ...]]:
    """The buffers that live inside the group alone: (ring, its tensor) or (scratch, None), and the
    name of each stage's scratch. Of those, only what is alive at one moment needs separate bytes."""
    moments = stream.moments if stream else ((0, frozenset()),)
    found: list[tuple[Buffer, Tensor | None]] = []
    for s, stage in enumerate(stages):
        if stream and stage.op.output in stream.rings:
            tensor = stage.op.output
            size = stream.rings[tensor] * row_bytes(tensor)
            alive = frozenset(m for m, (_, rings) in enumerate(moments) if s in rings)
            owner = f"ring of {tensor.name}"
            found.append((Buffer(names.of(tensor), size, index, index, TENSOR_ALIGN, owner, alive), tensor))
    scratch: list[str | None] = []
    for s, stage in enumerate(stages):
        name = None
        if stage.scratch_bytes:
            name = f"scratch{index}" if len(stages) == 1 else f"scratch{index}_{s}"
            alive = frozenset(m for m, (running, _) in enumerate(moments) if running == s)
            owner = f"scratch of {stage.kernel.name}"
            found.append((Buffer(name, stage.scratch_bytes, index, index, SCRATCH_ALIGN, owner, alive), None))
        scratch.append(name)
    return found, tuple(scratch)


def _group(index: int, stages: tuple[Stage, ...], kept, scratch: tuple[str | None, ...]) -> Group:
    made = {tensor for stage in stages for tensor in stage.op.outputs}
    inputs: dict[Tensor, None] = {}
    for stage in stages:
        for tensor in stage.op.activations:
            if tensor not in made:
                inputs[tensor] = None
    outputs = tuple(t for stage in stages for t in stage.op.outputs if t in kept or len(stages) == 1)
    return Group(index, stages, tuple(inputs), outputs, scratch)


def _feed_buffers(group: Group, last: int) -> list[Buffer]:
    """What a group that is fed rows keeps between calls: its counters; and the state of the inference,
    which has to tell a call out of order until the end."""
    count, size = len(group.stages) - 1, group.counter_bytes
    return [
        Buffer(FEED_STATE, FEED_STATE_BYTES, group.index, last, 4, "rows fed"),
        Buffer(group.counters, count * size, group.index, group.index, size, "rows made by each stage"),
    ]


def _overlaps(
    group: Group, stream: Stream | None, storage, roots, survivors: set[Tensor]
) -> list[Overlap]:
    """Which outputs may start how far below which inputs, if those are not among the `survivors`."""
    found = []
    for output in group.outputs:
        for source in group.inputs:
            if roots.get(source, source) in survivors:
                continue
            distance = overlap_distance(group.stages, stream, source, output)
            if distance < output.bytes:
                below, above = storage[output].buffer, storage[roots.get(source, source)].buffer
                found.append(Overlap(below, above, distance))
    return found


def _held_bytes(group: Group, storage, moments: np.ndarray) -> dict[str, np.ndarray]:
    """Of each ring, scratch and output the bytes that it holds, moment by moment (Stream.extents)."""
    held = {}
    for s, stage in enumerate(group.stages):
        held[storage[stage.op.output].buffer] = moments[:, 1 + s] * row_bytes(stage.op.output)
    for s, name in enumerate(group.scratch):
        if name:
            held[name] = np.where(moments[:, 0] == s, group.stages[s].scratch_bytes, 0)
    return held


def _inner_overlaps(group: Group, stream: Stream, storage) -> list[Overlap]:
    """How near rings, scratch and outputs may lie above each other: each of them holds bytes from its
    start, but seldom all of them, and at some moments none."""
    held = _held_bytes(group, storage, stream.extents)
    lasting = {storage[tensor].buffer for tensor in group.outputs}  # they meet in later groups too
    found = []
    for below, above in permutations(held, 2):
        distance = int(held[below][held[above] > 0].max(initial=0))
        if distance < held[below].max() and not {below, above} <= lasting:
            found.append(Overlap(below, above, distance))
    return found


def _input_overlaps(group: Group, stream: Stream, storage, roots, survivors: set[Tensor]) -> list[Overlap]:
    """How near rings and scratch may lie below an input whose rows are used up, and which of them come
    when it is used up for good. (Outputs: `_overlaps`.)"""
    found = []
    lasting = {storage[tensor].buffer for tensor in group.outputs}
    origins = [roots.get(tensor, tensor) for tensor in group.inputs]
    for source, root in zip(group.inputs, origins, strict=True):
        if root in survivors or origins.count(root) > 1:
            continue
        moments, rows = stream.played_with(source)
        dead, whole = rows * row_bytes(source), storage[root].buffer
        for name, held in _held_bytes(group, storage, moments).items():
            together = (held > 0) & (dead < source.bytes)
            below = int((held - dead)[together].max(initial=0))
            if name not in lasting and below < held.max():
                found.append(Overlap(name, whole, below))
            if name not in lasting and not together.any():
                found.append(Overlap(whole, name, 0))
    return found


def overlap_distance(
    stages: tuple[Stage, ...], stream: Stream | None, source: Tensor, output: Tensor
) -> int:
    """How far `output` must start below `source`: by rows from the stream; a whole call (`stream` is
    None) allows 0 where its kernel may work in place over every use of `source`, else no overlap."""
    if stream is not None:
        return stream.overlap_distance(source, output)
    (stage,) = stages
    uses = [i for i, tensor in enumerate(stage.op.inputs) if tensor is source]
    return 0 if uses and all(i in stage.kernel.overwrites(stage.op) for i in uses) else output.bytes
