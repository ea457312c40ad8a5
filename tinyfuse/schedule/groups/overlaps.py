"""Finds the overlaps that a group allows between buffers that are alive together: of buffers that it starts,
overwrites, or uses up row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Protocol

import numpy as np

from tinyfuse.arena import Overlap
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.kernel import AccessOrder
from tinyfuse.plan import Group, Stage, Storage
from tinyfuse.plan.rows import Stream, free_bytes, held_bytes


def stack_name(group: int) -> str:
    """Name of the buffer with the stack of rings of a group."""
    return f"stack{group}"


@dataclass(frozen=True)
class Border:
    """Effect of a group on the buffers of whole tensors.

    sizes     bytes of every buffer
    begun     buffers of its inputs and outputs that hold nothing before the group
    survives  buffers of its inputs and outputs that a later group, or the caller, reads
    """

    group: Group
    stream: Stream | None
    storage: dict[Tensor, Storage]
    sizes: dict[str, int]
    begun: frozenset[str]
    survives: frozenset[str]

    @cached_property
    def resident_output(self) -> str | None:
        """Buffer to which the output at the bottom of the stack moves when the group ends."""
        return self.storage[self.group.resident_output].buffer if self.group.resident_output else None

    @cached_property
    def lasting(self) -> set[str]:
        """Buffers of its outputs."""
        return {self.storage[tensor].buffer for tensor in self.group.outputs}

    def live_sets(self, stream: Stream) -> dict[str, frozenset[int]]:
        """Buffers of outputs that start here, by name, with the live sets (numbers of points in time) in which they
        hold data. The last live set is the time after all rows."""
        end = frozenset({len(stream.live_sets)})
        found: dict[str, frozenset[int]] = {self.resident_output: end} if self.resident_output else {}
        for s, stage in enumerate(self.group.stages):
            name = self.storage[stage.op.output].buffer
            if stage.op.output in self.group.outputs and name in self.begun and name != self.resident_output:
                alive = frozenset(m for m, (_, held) in enumerate(stream.live_sets) if s in held)
                found[name] = found.get(name, end if self.resident_output else frozenset()) | alive
        return found

    def overlaps(self) -> list[Overlap]:
        """Overlaps of outputs with inputs that no operator reads afterwards.

        The buffer of a resident output may lie anywhere over the stack, which it leaves at the end, and over those
        inputs.
        """
        sources, outputs = self._parts(self.group.inputs), self._parts(self.group.outputs)
        found = []
        if self.resident_output:
            dead = {stack_name(self.group.index), *sources} - self.survives - self.lasting
            pairs = (pair for name in sorted(dead) for pair in permutations((self.resident_output, name)))
            found += [Overlap(below, above, 0) for below, above in pairs]
        for below in outputs:
            for above in sources:
                if below in self.begun and below != self.resident_output and above not in self.survives:
                    distance = buffer_distance(self.group.stages, self.stream, sources[above], outputs[below])
                    if distance < self.sizes[below]:
                        found.append(Overlap(below, above, distance))
        return found

    def _parts(self, tensors: Iterable[Tensor]) -> dict[str, list[tuple[Tensor, int]]]:
        """Tensors in each buffer, with their offsets."""
        found: dict[str, list[tuple[Tensor, int]]] = {}
        for tensor in tensors:
            storage = self.storage[tensor]
            found.setdefault(storage.buffer, []).append((tensor, storage.offset))
        return found

    def _held_bytes(self, live_sets: np.ndarray) -> dict[str, np.ndarray]:
        """End of the data in each ring, scratch and output buffer, in bytes from the buffer's start, per live set; for
        a stack of rings, per event."""
        held: dict[str, np.ndarray] = {}
        for s, stage in enumerate(self.group.stages):
            storage, rows = self.storage[stage.op.output], live_sets[:, 1 + s]
            name = storage.buffer
            if self.stream and self.stream.stack and s in self.stream.stack.members:
                held[stack_name(self.group.index)] = self.stream.stack.bytes
                continue
            if name in self.lasting - self.begun:
                held[name] = np.full(len(live_sets), self.sizes[name])
            else:
                end = np.where(rows > 0, storage.offset + held_bytes(stage.op.output, rows), 0)
                held[name] = np.maximum(held[name], end) if name in held else end
        for s, scratch in enumerate(self.group.scratch):
            if scratch and scratch not in held:
                held[scratch] = np.where(live_sets[:, 0] == s, self.group.stages[s].scratch_bytes, 0)
        return held

    def inner_overlaps(self, stream: Stream) -> list[Overlap]:
        """Overlaps between rings, scratch and outputs, possible because these buffers are seldom full and are empty in
        some live sets. A single stage has none: all its buffers are full all the time."""
        if len(self.group.stages) == 1:
            return []
        found = self._held_bytes(stream.played if stream.stack else stream.live_rows)
        names, held = list(found), np.array(list(found.values()))
        there, most = held > 0, held.max(axis=1, initial=0).tolist()
        overlaps = []
        for i, below in enumerate(names):
            distances = (held[i] * there).max(axis=1, initial=0).tolist()
            for j, above in enumerate(names):
                # outputs meet in later groups too
                if i != j and distances[j] < most[i] and not {below, above} <= self.lasting:
                    overlaps.append(Overlap(below, above, distances[j]))
        return overlaps

    def input_overlaps(self, stream: Stream) -> list[Overlap]:
        """Overlaps of rings and scratch with an input whose rows are used up one by one. They may start below it, or
        lie anywhere over it if they are never alive together. `overlaps` has the overlaps of outputs."""
        overlaps = []
        for whole, sources in self._parts(self.group.inputs).items():
            if whole in self.survives or len(sources) > 1:
                continue
            ((source, offset),) = sources
            if len(self.group.stages) == 1 and offset == stream.first_row(source) == 0:
                continue  # scratch is there before any byte is used up
            live_sets, rows = stream.played_with(source)
            dead = offset + free_bytes(source, rows)
            found = {n: held for n, held in self._held_bytes(live_sets).items() if n not in self.lasting}
            if not found:
                continue
            held: np.ndarray = np.array(list(found.values()))
            together: np.ndarray = (held > 0) & (dead < offset + source.bytes)
            distances = ((held - dead) * together).max(axis=1, initial=0).tolist()
            most: list[int] = held.max(axis=1, initial=0).tolist()
            meets: list[bool] = np.any(together, axis=1).tolist()
            for i, name in enumerate(found):
                if distances[i] < most[i]:
                    overlaps.append(Overlap(name, whole, distances[i]))
                if not meets[i]:
                    overlaps.append(Overlap(whole, name, 0))
        return overlaps


class Streamed(Protocol):
    """Row group that computes how far its outputs must start below its inputs."""

    def overlap_distance(self, source: Tensor, output: Tensor) -> int:
        """Bytes by which `output` must start below `source`; see rows.Stream."""
        ...

    def in_place(self, source: Tensor, output: Tensor) -> bool:
        """Tells whether `output` may lie at the start of `source`; see rows.Stream."""
        ...


def buffer_distance(
    stages: tuple[Stage, ...],
    stream: Streamed | None,
    sources: Iterable[tuple[Tensor, int]],
    outputs: Iterable[tuple[Tensor, int]],
) -> int:
    """Bytes that a buffer with `outputs` must start below one with `sources` (tensors with their offsets), so that no
    output overwrites source bytes that are still read."""
    return max(
        0,
        *(
            overlap_distance(stages, stream, source, output) + begin - offset
            for source, offset in sources
            for output, begin in outputs
        ),
    )


def overlap_distance(stages: tuple[Stage, ...], stream: Streamed | None, source: Tensor, output: Tensor) -> int:
    """Bytes that `output` must start below `source`.

    For a row group, its stream computes them. For a whole call (`stream` None), they follow from the kernel's access
    order, if it has one for every use of `source`; otherwise no overlap is allowed.
    """
    if stream is not None:
        return stream.overlap_distance(source, output)
    (stage,) = stages
    return whole_call_distance(stage.op, stage.kernel.access_orders(stage.op), source, output)


def whole_call_distance(op: Op, access_orders: Mapping[int, AccessOrder], source: Tensor, output: Tensor) -> int:
    """Bytes that `output` must start below `source` in a whole call that reads its inputs in these orders."""
    uses = [i for i, tensor in enumerate(op.inputs) if tensor is source]
    if not all(i in access_orders for i in uses):
        return output.bytes
    return max(access_orders[i].distance(source.bytes, output.bytes) for i in uses)
