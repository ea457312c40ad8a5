"""Channels that hold a constant, or that no reader needs, are cut out of their layers.

before   %a[1,H,W,8] = CONV_2D(%in, %w[8,..]);  %b = CONV_2D(%a, %v[4,1,1,8], %bias)
after    %a[1,H,W,5] = CONV_2D(%in, %w'[5,..]);  %b = CONV_2D(%a, %v'[4,1,1,5], %bias')

A channel of %a can go if each reader can do without it:
- a convolution or fully connected layer, if its weights for the channel are all zero; or if the
  channel is constant and what it contributes is the same everywhere: nothing, if its value is the
  zero point, else a number that goes into the bias, provided that no tap falls outside the image;
- a depthwise convolution, a pool or a mean over rows and columns, if its own output channels of that channel go.

Which channels are constant is proven by intervals.py. Every remaining output keeps every bit. Found in
networks whose training switched filters off: 1,715 of the 2,736 channels of MLPerf Tiny's
vww_96.

Kernels that read four channels as a word may take fewer instructions for 24 channels than for 23. `pruning` returns a
pass that then leaves a few dead channels, so that words are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import compress

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Quant, Tensor
from tinyfuse.ir.fixedpoint import INT32_MAX
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import bias_values, geometry
from tinyfuse.rewrite.intervals import channel_intervals, is_padded

#: marks a channel that isn't constant: no int8 value
_NO_CONSTANT = 1 << 20

#: number of a layer's filters to look at first for nonzero weights
_FEW = 8

#: channels that kernels read as one word
_WORD = 4

#: share of the instructions that whole words must stay below, because dead channels take RAM and flash
_SURELY_FEWER = 0.99

#: tensor -> array with one element per channel
PerChannel = dict[Tensor, Array]


def pruning(instructions: Callable[[Collection[Op]], float]) -> Callable[[Graph], Graph]:
    """Return a pass `prune_channels` that keeps the number of channels a multiple of four if that takes fewer
    `instructions`, the predicted cost of some operators."""

    def prune_channels(graph: Graph) -> Graph:
        single, words = _pruned(graph, 1), _pruned(graph, _WORD)
        if single is graph:
            return graph
        shared = set(single.ops) & set(words.ops)
        by_one, by_word = ([op for op in found.ops if op not in shared] for found in (single, words))
        return words if instructions(by_word) < _SURELY_FEWER * instructions(by_one) else single

    return prune_channels


def prune_channels(graph: Graph) -> Graph:
    """Return the graph without channels that no output depends on."""
    return _pruned(graph, 1)


def _pruned(graph: Graph, multiple: int) -> Graph:
    """Return the graph without dead channels, except those that make a tensor's number of channels a `multiple`."""
    constants = _constants(graph)
    if not _any_may_go(graph, constants):
        return graph
    kept = {tensor: _fill_up(keep, multiple) for tensor, keep in _kept_channels(graph, constants).items()}
    if all(keep.all() for keep in kept.values()):
        return graph
    changed: dict[Tensor, Tensor] = {}
    ops = []
    for op in graph.ops:
        op = _without_inputs(op, kept, constants) if FAMILIES[op.kind].sums_channels(op) else op
        op = _without_outputs(op, kept, changed)
        ops.append(replace(op, inputs=op.reading(changed).inputs))
    return replace(graph, ops=tuple(ops))


def _constants(graph: Graph) -> PerChannel:
    """Return for each tensor, as an array [C], the stored value of each constant channel; other channels get a value
    that no int8 has."""
    intervals = channel_intervals(graph)
    return {tensor: np.where(low == high, low, _NO_CONSTANT) for tensor, (low, high) in intervals.items()}


def _any_may_go(graph: Graph, constants: PerChannel) -> bool:
    """Tell whether any channel is constant or has only zero weights in a layer: a quick exit for most networks."""
    if any((value != _NO_CONSTANT).any() for value in constants.values()):
        return True
    weights = (op.operand(1) for op in graph.ops if FAMILIES[op.kind].sums_channels(op))
    return any(_unread(tensor.values).any() for tensor in weights if tensor.is_constant)


def _kept_channels(graph: Graph, constants: PerChannel) -> PerChannel:
    """Return which channels stay, bool [C], for each tensor made by a layer with channels."""
    kept: PerChannel = {}
    for op in reversed(graph.ops):
        if not op.outputs:
            continue
        tensor, family = op.output, FAMILIES[op.kind]
        mixes = family.channel_axis is not None and not family.depthwise
        if not (mixes or family.passes_channels(op)) or len(op.outputs) != 1 or tensor.dtype != "int8":
            continue
        consumers = graph.consumers.get(tensor, ())
        go = np.full(tensor.shape[-1], bool(consumers) and tensor not in graph.outputs)
        if family.convolution and mixes and geometry(op).groups > 1:
            go[:] = False
        for reader in consumers:
            go &= _does_without(reader, tensor, constants, kept)
        if go.all() and go.size:
            go[0] = False  # at least one channel must remain
        kept[tensor] = ~go
    # an operator that passes channels through keeps all channels that the input's maker can't drop
    for op in graph.ops:
        if FAMILIES[op.kind].passes_channels(op) and op.output in kept:
            kept[op.output] |= kept.get(op.input, np.ones(op.output.shape[-1], bool))
            if op.input in kept:
                kept[op.input] |= kept[op.output]
    return _settled(graph, kept)


def _fill_up(keep: Array, multiple: int) -> Array:
    """Return bool [C] with the first dead channels kept, too, until their number is a `multiple` or all are kept."""
    dead = np.flatnonzero(~keep)
    filled = keep.copy()
    filled[dead[: -int(keep.sum()) % multiple]] = True
    return filled


def _settled(graph: Graph, kept: PerChannel) -> PerChannel:
    """Return `kept`, changed in place: both sides of each operator that passes channels through keep the same channels,
    along whole chains of such operators."""
    while True:
        before = sum(int(keep.sum()) for keep in kept.values())
        for op in graph.ops:
            if not FAMILIES[op.kind].passes_channels(op):
                continue
            sides = [t for t in (op.input, op.output) if t in kept]
            both = np.zeros(op.output.shape[-1], bool)
            for tensor in sides:
                both |= kept[tensor]
            if len(sides) < 2:
                both[:] = True
            for tensor in sides:
                kept[tensor] = both.copy()
        if sum(int(keep.sum()) for keep in kept.values()) == before:
            return kept


def _does_without(reader: Op, tensor: Tensor, constants: PerChannel, kept: PerChannel) -> Array:
    """Return which channels of `tensor` the reader can do without, bool [C]."""
    never = np.zeros(tensor.shape[-1], bool)
    if sum(t is tensor for t in reader.inputs) != 1 or reader.input is not tensor:
        return never
    if FAMILIES[reader.kind].passes_channels(reader):
        return ~kept[reader.output] if reader.output in kept else never
    if not FAMILIES[reader.kind].sums_channels(reader):
        return never
    unread = _unread(reader.operand(1).values)
    if any(reader.operand(1).quantization.zero_point):
        return never
    value = constants.get(tensor, np.full(tensor.shape[-1], _NO_CONSTANT))
    constant = value != _NO_CONSTANT
    silent = constant & (value == tensor.zero_point)
    can_go: Array = unread | silent
    if constant.any() and not (FAMILIES[reader.kind].convolution and is_padded(reader)):
        can_go |= constant & _fits_bias(reader, tensor, value, constant)
    return can_go


def _unread(weights: Array) -> Array:
    """Return which input channels have only zero weights, bool [C]; looks at a few filters first, which mostly show
    that none has."""
    rows = weights.reshape(-1, weights.shape[-1])
    for some in (rows[:_FEW], rows):
        unread: Array = np.logical_not(some.any(axis=0))
        if not unread.any():
            break
    return unread


def _fits_bias(reader: Op, tensor: Tensor, value: Array, constant: Array) -> bool:
    """Tell whether the bias stays in int32 when it absorbs any subset of the constant channels."""
    share = np.where(constant, np.abs(value - tensor.zero_point), 0)
    total = np.abs(bias_values(reader)) + np.abs(_weight_sums(reader)) @ share
    return bool((total <= INT32_MAX).all())


def _weight_sums(reader: Op) -> Array:
    """Return [out channels, in channels]: each input channel's weights summed over the kernel."""
    weights = reader.operand(1).values
    weights = weights.reshape(weights.shape[0], -1, weights.shape[-1])
    return weights[:, 0].astype(np.int64) if weights.shape[1] == 1 else weights.sum(axis=1, dtype=np.int64)


def _without_inputs(op: Op, kept: PerChannel, constants: PerChannel) -> Op:
    """Return the layer without the weights of cut input channels, their constants added to its bias."""
    keep = kept.get(op.input)
    if keep is None or keep.all():
        return op
    weights = op.operand(1)
    value = constants[op.input]
    folded = ~keep & (value != _NO_CONSTANT)
    share = np.where(folded, value - op.input.zero_point, 0)
    bias = bias_values(op) + _weight_sums(op) @ share
    data = np.ascontiguousarray(weights.values[..., keep])
    return replace(op, inputs=(op.input, _constant(weights, data), _bias(op, bias)))


def _without_outputs(op: Op, kept: PerChannel, changed: dict[Tensor, Tensor]) -> Op:
    """Return the layer without its cut output channels."""
    keep = kept.get(op.output) if op.outputs else None
    if keep is None or keep.all():
        return op
    output = replace(op.output, shape=(*op.output.shape[:-1], int(keep.sum())))
    changed[op.output] = output
    inputs, family = op.inputs, FAMILIES[op.kind]
    if family.channel_axis is not None:
        weights, axis = op.operand(1), family.channel_axis
        data = np.ascontiguousarray(np.compress(keep, weights.values, axis=axis))
        bias = bias_values(op)[keep]
        inputs = (op.input, _constant(weights, data, _channels_of(weights.quantization, keep)), _bias(op, bias))
    elif family.alias:
        inputs = inputs[:1]  # the shape operand no longer holds; the output tensor has the shape
    return replace(op, inputs=inputs, outputs=(output,))


def _constant(tensor: Tensor, data: Array, quant: Quant | None = None) -> Tensor:
    return replace(tensor, shape=data.shape, data=data, quant=quant or tensor.quant)


def _bias(op: Op, values: Array) -> Tensor:
    """Return a bias of `values` with the old bias's quantization, or the accumulator's if there was none.

    Rules recognize a bias by its per-tensor scale; no rule looks at per-channel scales.
    """
    data = values.astype(np.int32)
    old, weights = op.optional(2), op.operand(1)
    if old is None:
        scale = None if weights.quantization.per_channel else Quant((op.input.scale * weights.scale,), (0,))
        return Tensor(f"{op.output.name} (bias)", data.shape, "int32", scale, data)
    scale = None if old.quant is None or old.quant.per_channel else old.quant
    return Tensor(old.name, data.shape, "int32", scale, data)


def _channels_of(quant: Quant, keep: Array) -> Quant:
    if not quant.per_channel:
        return quant
    scale = tuple(compress(quant.scale, keep.tolist()))
    return replace(quant, scale=scale, zero_point=quant.zero_point[: len(scale)])
