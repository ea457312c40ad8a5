"""Converts uint8 models (the quantization of TensorFlow 1) to int8.

before   %y:u8 = CONV_2D(%x:u8, %w:u8)
after    %a:s8 = QUANTIZE(%x:u8);  %b:s8 = CONV_2D(%a, %w':s8);  %y:u8 = QUANTIZE(%b)

Every stored value and every zero point is lowered by 128 (the sign bit is inverted), so the real numbers stay the same.
The module's inputs and outputs stay uint8. TensorFlow Lite Micro has no uint8 kernels: LiteRT's reference kernels
(BUILTIN_REF, without XNNPACK) define the results. Where their arithmetic differs from that of int8 kernels, the new
operator has an attribute for it, or another kind:

weights             have a zero point, which is subtracted; the results are int8 if they fit, else (9 bits) int16
convolutions        multiply the scales of input and weights in float32 (Conv2D.float_scales)
FULLY_CONNECTED     multiplies sums by a real number, and rounds once (REAL_MULTIPLIER)
AVERAGE_POOL_2D     rounds halves up (Pool2D.halves_up)
LOGISTIC, TANH ...  are tables made in float32 (TABLE)
CONCATENATION       brings inputs to the output's quantization, in float32 (TABLE)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyfuse.errors import Problem
from tinyfuse.ir import LITERT, Array, Graph, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import REAL_MULTIPLIER, Conv2D
from tinyfuse.ops.core.uint8_functions import nearest
from tinyfuse.ops.core.unary import UnaryFamily
from tinyfuse.ops.elementwise.table import TABLE_VALUES, Table
from tinyfuse.ops.layers.fully_connected import FullyConnected
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, has_even_window

WARNING = (
    "a uint8 model: computed in int8, every stored value less 128; TensorFlow Lite Micro doesn't run it, so LiteRT's "
    "reference kernels say what is right"
)
_HINT = "convert the model again with full integer (int8) quantization"
#: dtypes that no reference kernel takes together with uint8
_NARROW = ("int4", "int8", "int16")


def is_uint8(ops: tuple[Op, ...]) -> bool:
    """Tell whether any operator computes stored uint8, which no kernel takes; operators that only move it don't
    count."""
    computing = (op for op in ops if op.kind in FAMILIES and FAMILIES[op.kind].computes_uint8)
    return any(t is not None and t.dtype == "uint8" for op in computing for t in (*op.inputs, *op.outputs))


def uint8_problems(ops: tuple[Op, ...]) -> Iterator[Problem]:
    """Yield the problems that keep a model with uint8 operators from being brought to int8."""
    for op in ops:
        tensors = [t for t in (*op.inputs, *op.outputs) if t is not None and t.dtype == "uint8"]
        if not tensors or op.kind not in FAMILIES:
            continue
        family = FAMILIES[op.kind]
        if not (family.computes_uint8 or family.takes_uint8 or family.moves(op)):
            yield Problem("this operator is not supported on uint8", str(op), str(tensors[0]), _HINT)
        several = next((t for t in tensors if t.quant is not None and t.quant.per_channel), None)
        if several is not None:
            yield Problem("uint8 with several scales is not supported", str(op), str(several), _HINT)
        beside = next((t for t in (*op.inputs, *op.outputs) if t is not None and t.dtype in _NARROW), None)
        if family.computes_uint8 and beside is not None:
            yield Problem(f"it mixes uint8 and {beside.dtype} tensors", str(op), str(beside), _HINT)


def was_uint8(graph: Graph) -> bool:
    """Tell whether a graph that was read comes from a uint8 model."""
    return graph.runtime == LITERT


def as_int8(graph: Graph) -> Graph:
    """Return the graph in int8; the model must have no `uint8_problems`."""
    return _Shifted(graph).graph()


class _Shifted:
    """Converts a uint8 graph to int8: stored values and zero points are lowered by 128."""

    def __init__(self, source: Graph):
        self.source = source
        self.known: dict[Tensor, Tensor] = {}
        self.borders = {*source.inputs, *source.outputs}

    def graph(self) -> Graph:
        g = self.source
        through = set(g.inputs) & set(g.outputs)  # inputs that are also outputs
        entering = [self.quantized(t, self.tensor(t)) for t in g.inputs if t.dtype == "uint8"]
        ops = [made for op in g.ops for made in self.operators(op)]
        leaving = [self.quantized(self.tensor(t), t) for t in g.outputs if t.dtype == "uint8" and t not in through]
        return replace(
            g, ops=(*entering, *ops, *dict.fromkeys(leaving)), warnings=(*g.warnings, WARNING), runtime=LITERT
        )

    @staticmethod
    def quantized(source: Tensor, result: Tensor) -> Op:
        return Op("QUANTIZE", (source,), (result,))

    def tensor(self, tensor: Tensor) -> Tensor:
        """Return `tensor`, or its int8 twin if it is uint8."""
        if tensor.dtype != "uint8":
            return tensor
        if tensor not in self.known:
            quant = tensor.quant and replace(tensor.quant, zero_point=tuple(z - 128 for z in tensor.quant.zero_point))
            data = None if tensor.data is None else _inverted(tensor.values)
            twin = replace(tensor, dtype="int8", quant=quant, data=data)
            if tensor in self.borders:  # inputs and outputs stay uint8, beside their int8 twins
                twin = replace(twin, name=f"{tensor.name} (int8)", index=-1)
            self.known[tensor] = twin
        return self.known[tensor]

    def operators(self, op: Op) -> list[Op]:
        """Return the int8 operators that replace a uint8 operator; [op] if none of its tensors is uint8."""
        inputs = tuple(None if t is None else self.tensor(t) for t in op.inputs)
        new = replace(op, inputs=inputs, outputs=tuple(map(self.tensor, op.outputs)))
        if new.inputs == op.inputs and new.outputs == op.outputs:
            return [op]
        if op.kind not in FAMILIES:  # refused later, as in any model
            return [new]
        family = FAMILIES[op.kind]
        if family.data_and_weights is not None:
            return [_layer(new)]
        if op.kind == "AVERAGE_POOL_2D":
            return [_pool(new)]
        if op.kind == "CONCATENATION":
            return _concatenation(new)
        if isinstance(family, UnaryFamily):
            return [_tabled(new, family)]
        return [new]


def _inverted(stored: Array) -> Array:
    """Return uint8 data as int8 by inverting the sign bit; read-only."""
    values: Array = (stored ^ np.uint8(128)).view(np.int8)
    values.setflags(write=False)
    return values


def _layer(op: Op) -> Op:
    """Return a layer whose weights have no zero point (a fully connected one may keep it)."""
    weights = op.optional(1)
    if weights is None or weights.dtype != "int8" or weights.quant is None:
        return op
    if isinstance(op.attributes, Conv2D):
        op = replace(op, attributes=replace(op.attributes, float_scales=True))
    elif isinstance(op.attributes, FullyConnected):
        op = replace(op, attributes=replace(op.attributes, rounding=REAL_MULTIPLIER))
    if not weights.is_constant:  # a rule reports computed weights with a zero point
        return op
    values = weights.values.astype(np.int16) - weights.zero_point
    fits = values.size == 0 or -128 <= values.min() <= values.max() <= 127
    if not fits and not isinstance(op.attributes, Conv2D):
        return op
    values = values.astype(np.int8) if fits else values
    values.setflags(write=False)
    quant = Quant(weights.quant.scale, (0,), weights.quant.axis)
    symmetric = replace(weights, dtype=str(values.dtype), quant=quant, data=values)
    return replace(op, inputs=(op.inputs[0], symmetric, *op.inputs[2:]))


def _pool(op: Op) -> Op:
    pool = op.attributes
    ranks = len(op.input.shape) == len(op.output.shape) == 4
    if not ranks or not isinstance(pool, Pool2D) or min(pool.filter + pool.stride) < 1 or not has_even_window(op):
        return op
    return replace(op, attributes=replace(pool, halves_up=True))


# --- functions of one value ------------------------------------------------------------------

_STORED = TABLE_VALUES.astype(np.int64)
_F32 = np.float32


def _table(name: str, values: Array) -> Tensor:
    data: Array = np.clip(values, -128, 127).astype(np.int8)
    data.setflags(write=False)
    return Tensor(f"{name} (table)", (256,), "int8", None, data)


def _tabled(op: Op, family: UnaryFamily) -> Op:
    """Return a TABLE; the operator itself if int8 arithmetic gives the same, or a rule will refuse it."""
    if any(rule.broken(op) for rule in family.rules):
        return op
    table = _table(op.output.name, family.function_of_uint8(op, _STORED))
    if np.array_equal(table.values, family.function(op, _STORED.astype(np.int8))):
        return op
    return Op("TABLE", (op.input, table), op.outputs, Table((op.kind,)), op.index)


def _concatenation(op: Op) -> list[Op]:
    """Return a CONCATENATION; inputs quantized differently from the output go through a TABLE first."""
    made, inputs = [], []
    for tensor in op.inputs:
        if tensor is None or tensor.quant is None or op.output.quant is None or tensor.quant == op.output.quant:
            inputs.append(tensor)
            continue
        scale = _F32(tensor.scale) * (_F32(1) / _F32(op.output.scale))
        bias = _F32(-(tensor.zero_point + 128)) * scale
        values = nearest((_STORED + 128).astype(_F32) * scale + bias) + op.output.zero_point
        if tensor.is_constant:
            data: Array = np.clip(values, -128, 127).astype(np.int8)[tensor.values.view(np.uint8)]
            inputs.append(replace(tensor, quant=op.output.quant, data=data))
            continue
        result = replace(tensor, name=f"{tensor.name} (rescaled)", quant=op.output.quant, index=-1)
        made.append(Op("TABLE", (tensor, _table(tensor.name, values)), (result,), Table((op.kind,)), op.index))
        inputs.append(result)
    return [*made, replace(op, inputs=tuple(inputs))]
