"""Faults that are seeded into plans, to see whether verify_plan finds them.

    for fault in faults(plan): fault.kind, fault.what, fault.plan

Each is a mistake that the scheduler or the planner could make. Where a mistake would have changed the
placement (a lifetime that ends too early), the arena is planned again with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tinyfuse.arena import plan_arena
from tinyfuse.ir import Tensor
from tinyfuse.plan import FEED_STATE, Group, Plan, Storage
from tinyfuse.plan.rows import readers, row_bytes


@dataclass(frozen=True)
class Fault:
    kind: str
    what: str
    plan: Plan


def faults(plan: Plan) -> Iterator[Fault]:
    """All faults with an effect: plans that differ in what is printed or promised."""
    for kind, make in KINDS.items():
        for what, wrong in make(plan):
            yield Fault(kind, what, wrong)


#: of the search for a placement (plan_arena): hundreds are made
WORK = 50_000

Found = Iterator[tuple[str, Plan]]


def _placed_again(plan: Plan, **fields) -> Plan:
    wrong = replace(plan, **fields)
    return replace(wrong, placement=plan_arena(wrong.buffers, wrong.overlaps, WORK))


def _with_buffer(plan: Plan, name: str, **fields) -> tuple:
    return tuple(replace(b, **fields) if b.name == name else b for b in plan.buffers)


def _moved(plan: Plan, name: str, offset: int) -> Plan:
    offsets = plan.placement.offsets | {name: offset}
    return replace(plan, placement=replace(plan.placement, offsets=offsets))


def _with_stage(plan: Plan, group: Group, s: int, **fields) -> Plan:
    stages = tuple(replace(stage, **fields) if i == s else stage for i, stage in enumerate(group.stages))
    return replace(plan, groups=tuple(replace(g, stages=stages) if g is group else g for g in plan.groups))


# --- placement ---------------------------------------------------------------------------------


def _offsets(plan: Plan) -> Found:
    for buffer in plan.buffers:
        at = plan.placement.offsets[buffer.name]
        for step in (-buffer.align, buffer.align):
            if at + step >= 0:
                yield f"{buffer.name} moved by {step}", _moved(plan, buffer.name, at + step)
        for other in plan.buffers:
            there = plan.placement.offsets[other.name]
            if other is not buffer and there != at and there % buffer.align == 0 and buffer.bytes:
                yield f"{buffer.name} moved onto {other.name}", _moved(plan, buffer.name, there)


def _sizes(plan: Plan) -> Found:
    for buffer in plan.buffers:
        if buffer.bytes and not buffer.name.startswith("scratch"):
            less = max(1, buffer.bytes // 8)
            yield f"{buffer.name} {less} bytes short", _short(plan, buffer.name, less)


def _short(plan: Plan, name: str, less: int) -> Plan:
    return _placed_again(plan, **_shorter(plan, name, less))


def _shorter(plan: Plan, name: str, less: int) -> dict:
    """Plans in which one buffer, and its overlaps, has `less` bytes less."""
    size = next(b.bytes for b in plan.buffers if b.name == name)
    overlaps = tuple(o._replace(distance=max(0, o.distance - less)) if o.below == name else o for o in plan.overlaps)
    return {"buffers": _with_buffer(plan, name, bytes=max(0, size - less)), "overlaps": overlaps}


def _lifetimes(plan: Plan) -> Found:
    for buffer in plan.buffers:
        for field, step in (("last_step", buffer.last_step - 1), ("first_step", buffer.first_step + 1)):
            if buffer.first_step < buffer.last_step:
                again = _placed_again(plan, buffers=_with_buffer(plan, buffer.name, **{field: step}))
                if again.placement.offsets != plan.placement.offsets:
                    yield f"{field} of {buffer.name}", again


def _live_sets(plan: Plan) -> Found:
    for buffer in plan.buffers:
        for live_set in sorted(buffer.live_sets or ()):
            fewer = buffer.live_sets - {live_set}
            again = _placed_again(plan, buffers=_with_buffer(plan, buffer.name, live_sets=fewer))
            if again.placement.offsets != plan.placement.offsets:
                yield f"{buffer.name} without live set {live_set}", again


def _overlaps(plan: Plan) -> Found:
    """Plans in which an output, a ring or scratch may begin one row too near."""
    for number, overlap in enumerate(plan.overlaps):
        # of planes a line
        rows = [
            row_bytes(t) // t.planes for t, s in plan.storage.items() if s.buffer == overlap.below and len(t.shape) == 4
        ]
        less = min(rows, default=4)
        if overlap.distance >= less:
            near = overlap._replace(distance=overlap.distance - less)
            again = _placed_again(plan, overlaps=(*plan.overlaps[:number], near, *plan.overlaps[number + 1 :]))
            if again.placement.offsets != plan.placement.offsets:
                yield f"{overlap.below} below {overlap.above}", again


# --- rings, windows, scratch -------------------------------------------------------------------


def _rings(plan: Plan) -> Found:
    for tensor, storage in plan.storage.items():
        ring = next(b for b in plan.buffers if b.name == storage.buffer)
        if len(tensor.shape) == 4 and storage.ring_rows > 1 and ring.bytes == storage.ring_rows * row_bytes(tensor):
            fewer = replace(storage, ring_rows=storage.ring_rows - 1)
            changed = _shorter(plan, ring.name, row_bytes(tensor))
            yield f"{tensor}: a row less", _placed_again(plan, storage=plan.storage | {tensor: fewer}, **changed)


def _slides(plan: Plan) -> Found:
    for tensor, storage in plan.storage.items():
        if len(tensor.shape) == 4 and 1 < storage.ring_rows < tensor.shape[1]:
            other = replace(storage, slides=not storage.slides)
            yield f"{tensor}: slides {other.slides}", replace(plan, storage=plan.storage | {tensor: other})


def _with_group(plan: Plan, group: Group, **fields) -> Plan:
    return replace(plan, groups=tuple(replace(g, **fields) if g is group else g for g in plan.groups))


def _stacks(plan: Plan) -> Found:
    """Plans in which more of a ring's first row is overwritten than calls allow, or rings are reordered or left out."""
    for group in plan.groups:
        for i, ring in enumerate(group.stack):
            others = group.stack[:i], group.stack[i + 1 :]
            more = replace(ring, taken=ring.taken + 4 if ring.taken else row_bytes(ring.tensor))
            if i:
                yield (
                    f"{ring.tensor}: {more.taken} bytes taken",
                    _with_group(plan, group, stack=(*others[0], more, *others[1])),
                )
            yield f"{ring.tensor}: not in its stack", _with_group(plan, group, stack=(*others[0], *others[1]))


def _eager(plan: Plan) -> Found:
    """Plans in which eager stages run with too little room."""
    for group in plan.groups:
        for s in range(len(group.stages) if group.stack else 0):
            reads = group.stages[s].op.activations
            inside = any(stage.op.output is reads[0] for stage in group.stages)
            if inside and len(reads) == 1 and len(readers(group.stages, reads[0])) > 1:
                yield f"{group.stages[s].op}: eager", _with_group(plan, group, eager=group.eager ^ {s})


def _windows(change: Callable) -> Callable[[Plan], Found]:
    def make(plan: Plan) -> Found:
        for group in plan.groups:
            for s, stage in enumerate(group.stages if len(group.stages) > 1 else ()):
                for i, window in enumerate(stage.windows):
                    wrong = change(window) if window is not None else None
                    if wrong is not None and stage.op.inputs[i] in {other.op.output for other in group.stages}:
                        windows = (*stage.windows[:i], wrong, *stage.windows[i + 1 :])
                        yield f"{stage.op}: {wrong}", _with_stage(plan, group, s, windows=windows)

    return make


def _scratch(less: int) -> Callable[[Plan], Found]:
    def make(plan: Plan) -> Found:
        for group in plan.groups:
            for s, name in enumerate(group.scratch):
                if name:
                    size = max(0, group.stages[s].scratch_bytes - less)
                    wrong = _with_stage(plan, group, s, scratch_bytes=size)
                    yield f"{name} {less} bytes short", _short(wrong, name, less)

    return make


# --- order, views, what lasts ------------------------------------------------------------------


def _order(plan: Plan) -> Found:
    for n in range(len(plan.groups) - 1):
        first, second = plan.groups[n : n + 2]
        swapped = (*plan.groups[:n], replace(second, index=n), replace(first, index=n + 1), *plan.groups[n + 2 :])
        yield f"groups {n} and {n + 1} swapped", replace(plan, groups=swapped)


def _views(plan: Plan) -> Found:
    for tensor, storage in plan.storage.items():
        shared = [t for t, other in plan.storage.items() if other.buffer == storage.buffer]
        for step in (-4, 4, tensor.bytes) if len(shared) > 1 else ():
            if storage.offset + step >= 0:
                wrong = replace(storage, offset=storage.offset + step)
                yield f"{tensor}: offset {wrong.offset}", replace(plan, storage=plan.storage | {tensor: wrong})


def _planes(plan: Plan) -> Found:
    """Plans in which planes overlap, are off by a line or a plane, or are declared to be a ring."""
    for tensor, storage in plan.storage.items():
        if tensor.planes > 1:
            line = row_bytes(tensor) // tensor.planes
            for step in (line, line * tensor.shape[1]):
                wrong = replace(storage, offset=storage.offset + step)
                yield f"{tensor}: {step} bytes on", replace(plan, storage=plan.storage | {tensor: wrong})
            ring = replace(storage, ring_rows=storage.ring_rows - 1)
            yield f"{tensor}: a ring", replace(plan, storage=plan.storage | {tensor: ring})


def _over_planes(plan: Plan) -> Found:
    """Plans in which an output lies over planes that are read, whether their rows are still needed or not."""
    for group in plan.groups:
        for source in (tensor for tensor in group.inputs if tensor.planes > 1):
            for output in group.outputs:
                there, storage = plan.storage[source], plan.storage[output]
                if storage.buffer != there.buffer and output.bytes <= source.bytes:
                    for step in (0, row_bytes(source) // source.planes):
                        wrong = replace(storage, buffer=there.buffer, offset=there.offset + step)
                        if wrong.offset + output.bytes <= source.bytes:
                            yield f"{output} over {source} + {step}", _stored(plan, storage.buffer, output, wrong)


def _stored(plan: Plan, buffer: str, output: Tensor, wrong: Storage) -> Plan:
    """A plan in which an output, and everything in its buffer, is stored elsewhere."""
    moved = {t: replace(wrong, ring_rows=s.ring_rows) for t, s in plan.storage.items() if s.buffer == buffer}
    return replace(plan, storage=plan.storage | moved)


def _states(plan: Plan) -> Found:
    for tensor, offset in plan.states.items():
        for wrong in (offset - 4, offset - 1, offset + 1):
            if wrong >= 0 and len(plan.states) > 1:
                yield f"{tensor} at {wrong}", replace(plan, states=plan.states | {tensor: wrong})


def _counters(plan: Plan) -> Found:
    names = (FEED_STATE, plan.fed_group.counters) if plan.fed_group else ()
    for name in names:
        less = 4 if name == FEED_STATE else plan.fed_group.counter_bytes
        yield f"{name} {less} bytes short", _short(plan, name, less)


KINDS: dict[str, Callable[[Plan], Found]] = {
    "a buffer elsewhere": _offsets,
    "a buffer too small": _sizes,
    "a lifetime shortened": _lifetimes,
    "a live set forgotten": _live_sets,
    "an overlap a row too near": _overlaps,
    "a ring of one row less": _rings,
    "a ring that slides, or doesn't": _slides,
    "a stack laid out otherwise": _stacks,
    "a stage that is eager, or isn't": _eager,
    "a window of one row less": _windows(lambda w: replace(w, kernel=w.kernel - 1) if w.kernel > 1 else None),
    "a padding of one more": _windows(lambda w: replace(w, pad_top=w.pad_top + 1)),
    "a stride of one more": _windows(lambda w: replace(w, stride=w.stride + 1)),
    "a spread forgotten": _windows(lambda w: replace(w, spread=1) if w.spread > 1 else None),
    "scratch 4 bytes short": _scratch(4),
    "scratch 16 bytes short": _scratch(16),
    "two groups swapped": _order,
    "a view at a wrong offset": _views,
    "planes elsewhere": _planes,
    "an output over planes": _over_planes,
    "a state elsewhere": _states,
    "counters of a fed group short": _counters,
}
