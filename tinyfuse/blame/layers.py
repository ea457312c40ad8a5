"""Layers: operators of a quantized graph between tensors that have counterparts in the float graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tinyfuse.blame.match import Pairs
from tinyfuse.ir import Array, Graph, Op, Tensor, quoted
from tinyfuse.ops import FAMILIES

#: dtypes of activations that store real numbers
REAL = ("int8", "int16", "float32")


@dataclass(frozen=True)
class Layer:
    """An operator of the quantized graph whose output has a counterpart.

    op         the operator
    output     its first output
    float_output   counterpart of `output` in the float graph
    steps      operators of the quantized graph that make `output` from tensors with counterparts; `op` is the last
    float_steps    operators of the float graph that make `float_output` from the counterparts of these tensors
    """

    op: Op
    output: Tensor
    float_output: Tensor
    steps: tuple[Op, ...]
    float_steps: tuple[Op, ...]

    def __str__(self) -> str:
        return f"input {quoted(self.output.name)}" if self.is_input else str(self.op)

    @property
    def is_input(self) -> bool:
        """True for the QUANTIZE of an input, which the file lacks."""
        return self.op.index < 0


def layers_of(quantized: Graph, floats: Graph, pairs: Pairs) -> list[Layer]:
    """Return the layers of a quantized graph, in its order.

    An operator without a counterpart belongs to the next layer. An input that stores real numbers as integers is the
    layer of a QUANTIZE that the file lacks; the tensor that this QUANTIZE reads is added to `pairs`.
    """
    found = [
        _input_layer(tensor, pairs)
        for tensor in quantized.inputs
        if _is_real(tensor) and tensor.quant is not None and pairs[tensor].dtype == "float32"
    ]
    known = {tensor: other for tensor, other in pairs.items() if _is_real(tensor) and other.dtype == "float32"}
    for op in quantized.ops:
        for output in op.outputs[:1]:
            if output in known:
                steps = steps_to(quantized, output, known.keys() - {output})
                read = {known[t] for t in read_by(steps) if t in known}
                float_steps = () if known[output] in read else steps_to(floats, known[output], read)
                found.append(Layer(op, output, known[output], steps, float_steps))
    return found


def _input_layer(tensor: Tensor, pairs: Pairs) -> Layer:
    given = Tensor(tensor.name, tensor.shape, "float32")
    pairs[given] = pairs[tensor]
    op = Op("QUANTIZE", (given,), (tensor,))
    return Layer(op, tensor, pairs[tensor], (op,), ())


def _is_real(tensor: Tensor) -> bool:
    one = tensor.quant is not None and not tensor.quant.per_channel
    return not tensor.is_constant and tensor.dtype in REAL and (one or tensor.dtype == "float32")


def steps_to(graph: Graph, tensor: Tensor, stops: Collection[Tensor]) -> tuple[Op, ...]:
    """Return the operators that make a tensor from `stops` and the graph's inputs, in order."""
    wanted, waiting = set[Op](), [tensor]
    while waiting:
        op = graph.producer.get(waiting.pop())
        if op is not None and op not in wanted:
            wanted.add(op)
            waiting += [each for each in op.activations if each not in stops]
    return tuple(op for op in graph.ops if op in wanted)


def read_by(steps: tuple[Op, ...]) -> tuple[Tensor, ...]:
    """Return the activations that operators read and don't make."""
    made = {tensor for op in steps for tensor in op.outputs}
    return tuple(dict.fromkeys(t for op in steps for t in op.activations if t not in made))


def run_steps(steps: tuple[Op, ...], values: Mapping[Tensor, Array]) -> dict[Tensor, Array]:
    """Return `values` and the outputs that the operators' references compute from them."""
    found = dict(values)
    for op in steps:
        arguments = [None if t is None else t.data if t.is_constant else found[t] for t in op.inputs]
        found.update(zip(op.outputs, FAMILIES[op.kind].reference(op, *arguments), strict=False))
    return found
