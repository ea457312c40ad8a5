"""Variables of the public header and the API functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tinyfuse import __version__
from tinyfuse.emit.arena import arena_c
from tinyfuse.emit.identifiers import c_string, comment, unique_identifiers
from tinyfuse.emit.memory import memory_context
from tinyfuse.emit.weights import scalar
from tinyfuse.ir import Op, Tensor, quoted
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by
from tinyfuse.plan import FEED_STATE, Group, Plan, states_align, subplans

#: dtypes whose elements C compares correctly
COMPARABLE = frozenset({"int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32"})
#: Stack bytes of an inference for the API functions and a group's locals; the kernel with the deepest stack is added.
#: `verify` measures the stack and fails if it is larger than this bound.
API_STACK_BYTES = 256
#: Without optimization nothing is inlined and each local has its own place: a factor for the kernels' stack, and bytes
#: of locals for each of a group's operators.
UNOPTIMIZED_KERNEL, UNOPTIMIZED_STAGE_BYTES = 2, 64


@dataclass(frozen=True)
class Port:
    """A model input or output as the header declares it.

    index   place in the model's order
    offset  bytes from the start of the arena; None for an input that is fed by rows, or frame by frame
    range   smallest and largest stored integer, for dtypes that may be quantized real numbers; else None
    labels  names of its classes, as C string literals
    """

    index: int
    symbol: str
    macro: str
    label: str
    ctype: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    bytes: int
    offset: int | None
    scale: str | None
    zero_point: int | None
    range: tuple[int, int] | None
    labels: tuple[str, ...] = ()

    @property
    def quantized(self) -> bool:
        """Tells whether it has real numbers, quantized to integers of 8 or 16 bits."""
        return self.scale is not None and self.range is not None


def header_context(plan: Plan) -> dict[str, Any]:
    """Variables of templates/module.h.j2."""
    inputs, outputs = ports(plan)
    return {
        "name": plan.options.name,
        "macro": plan.options.name.upper(),
        "version": __version__,
        "sha256": plan.graph.sha256,
        "runtime": plan.source.runtime,
        "target": plan.context.target,
        "cmsis_nn": plan.context.cmsis_nn if plan.uses_cmsis_nn else None,
        "options": plan.options,
        "inputs": inputs,
        "outputs": outputs,
        "fed": _feed(plan, inputs),
        "slid": _slide(plan, inputs),
        "ethos_u": any(not FAMILIES[op.kind].runs_here for group in plan.all_groups for op in group.ops),
        "arena": arena_c(plan),
        "arena_bytes": plan.arena_bytes,
        "arena_align": plan.arena_align,
        "state_bytes": plan.state_bytes,
        "state_align": states_align(plan.states),
        "memory": memory_context(plan),
        "awaits": plan.awaits,
        "rounds": rounds_by_mode(plan),
        "cursor_rows": cursor_rows(plan) if plan.options.step else 0,
        "comparable": COMPARABLE,
        "stack_bytes": stack_bound(plan, optimized=True),
        "unoptimized_stack_bytes": stack_bound(plan, optimized=False),
    }


def rounds_by_mode(plan: Plan) -> bool:
    """Tells whether kernels compute floats with a rounding mode that can be changed: on an FPU or any machine."""
    target = plan.context.target
    stages = [stage for group in plan.all_groups for stage in group.stages]
    if target.fpu and any(rounds_by(op, FLOAT_HALF_EVEN) for stage in stages for op in _parts(stage.op)):
        return True
    return (target.fpu or target.cpu is None) and any(stage.kernel.computes_floats for stage in stages)


def _parts(op: Op) -> Iterator[Op]:
    """Yield the operator, then the operators of which it is made, if it combines several or wraps a layer."""
    yield op
    yield from (getattr(part, "op", part) for part in getattr(op.attributes, "parts", ()))
    layer = getattr(op.attributes, "layer", None)
    if layer is not None:  # an operator, or the attributes of one
        yield layer if isinstance(layer, Op) else replace(op, attributes=layer)


def stack_bound(plan: Plan, optimized: bool) -> int:
    """Stack bytes that an inference may take, compiled at -O0 or with optimization. `verify` checks this bound; it is
    not derived from the C."""
    deepest: dict[Plan, int] = {}
    for each in (*plan.subplans.values(), plan):  # callees come first
        deepest[each] = max((_group_stack(group, optimized, deepest) for group in each.groups), default=0)
    return API_STACK_BYTES + deepest[plan] + (4 * (2 + cursor_rows(plan)) if plan.options.step else 0)


def cursor_rows(plan: Plan) -> int:
    """Number of integers in the caller's cursor, enough for every group that runs in steps; at least 1."""
    return max([1, *(plan.cursor_rows(group) for group in plan.groups)])


def _group_stack(group: Group, optimized: bool, deepest: Mapping[Plan, int]) -> int:
    """Stack bytes of a group, including the graphs that its operators run."""
    kernel = max(stage.kernel.stack_bytes for stage in group.stages)
    if not optimized:
        kernel = UNOPTIMIZED_KERNEL * kernel + UNOPTIMIZED_STAGE_BYTES * len(group.stages)
    return kernel + max((deepest[inner] for op in group.ops for inner in subplans(op).values()), default=0)


def ports(plan: Plan) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs with distinct C names, whatever the model calls them."""

    def of(tensors: tuple[Tensor, ...]) -> list[Port]:
        return [_port(plan, i, t, s) for i, (t, s) in enumerate(zip(tensors, tensor_symbols(tensors), strict=True))]

    outputs, labels = of(plan.source.outputs), plan.options.labels
    named = [replace(port, labels=tuple(map(c_string, labels[port.index]))) for port in outputs] if labels else outputs
    return of(plan.source.inputs), named


def tensor_symbols(tensors: tuple[Tensor, ...]) -> list[str]:
    """C identifiers for inputs or outputs, made from their names: valid, short and distinct."""
    # "bytes" and "count" are taken: NAME_input_bytes() is a function of the API
    return [
        f"{symbol}_" if symbol in ("bytes", "count") else symbol
        for symbol in unique_identifiers((t.name for t in tensors), "tensor")
    ]


@dataclass(frozen=True)
class Feed:
    """Values for the functions of an input that is fed by rows. Offsets are bytes from the arena's start.

    index     place of the input in the model's order
    group     number of the group that takes the rows
    state     offset of the feed's progress
    counters  offset of the group's counters, `counter_bytes` bytes in all
    """

    index: int
    symbol: str
    macro: str
    ctype: str
    rows: int
    group: int
    state: int
    counters: int
    counter_bytes: int


def _feed(plan: Plan, inputs: list[Port]) -> Feed | None:
    group, offsets = plan.fed_group, plan.placement.offsets
    if group is None or group.counters is None:
        return None
    port = inputs[plan.source.inputs.index(plan.fed)]
    return Feed(
        index=port.index,
        symbol=port.symbol,
        macro=port.macro,
        ctype=port.ctype,
        rows=port.shape[1],
        group=group.index,
        state=offsets[FEED_STATE],
        counters=offsets[group.counters],
        counter_bytes=(len(group.stages) - 1) * group.counter_bytes,
    )


@dataclass(frozen=True)
class Slide:
    """Variables for the API of a sliding window.

    index          place of the input in the model's order.
    frames         frames of the window.
    step           new frames per step: `bytes` of `ctype` at `offset` in the arena.
    steps_to_fill  steps up to the first one with a result.
    own            the model itself keeps a window, of frames that it computes from a step's input.
    rows           with --feed-rows, rows of `row_bytes` bytes per step; else None.
    left           offset in the state of the number of rows still to come; None if a step has a single row.
    """

    index: int
    symbol: str
    macro: str
    ctype: str
    frames: int
    step: int
    steps_to_fill: int
    bytes: int
    offset: int
    own: bool
    rows: int | None
    row_bytes: int
    left: int | None


def _slide(plan: Plan, inputs: list[Port]) -> Slide | None:
    window, tensor = plan.source.window, plan.new_frames
    if window is None or tensor is None:
        return None
    port, border = inputs[window.input], plan.row_border
    left = None if border is None else plan.states[border.states[0]]
    return Slide(
        port.index, port.symbol, port.macro, port.ctype, window.frames, window.step, window.steps_to_fill, port.bytes,
        plan.offset(tensor), window.own is not None, window.rows, tensor.bytes, left,
    )  # fmt: skip


def _port(plan: Plan, index: int, tensor: Tensor, symbol: str) -> Port:
    per_tensor = tensor.quant is not None and not tensor.quant.per_channel
    return Port(
        index=index,
        symbol=symbol,
        macro=symbol.upper(),
        label=comment(quoted(tensor.name)),
        ctype=CTYPE[tensor.dtype],
        dtype=tensor.dtype,
        shape=tensor.shape,
        elements=tensor.elements,
        bytes=tensor.bytes,
        offset=None if tensor in (plan.fed, plan.slid) else plan.offset(tensor),
        scale=scalar(float(tensor.scale)) if per_tensor else None,
        zero_point=tensor.zero_point if per_tensor else None,
        range=RANGE.get(tensor.dtype),
    )
