"""Models in which operators read constants alone, beside one that reads the input: every operator kind that files have,
in every dtype of its cases, as an output of the model and as an operand of another operator; against TensorFlow Lite
Micro where it has the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import conv_cases
import layer_cases
import numpy as np
import pytest
from cases import NAMED
from cases.common import add_operator, inputs_of, options_of, random_data
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES

_LAYERS = {
    kind: {
        **{f"int8 {name}": conv_cases.make_op(shape, np.random.default_rng(1)) for name, shape in layer_cases.SHAPES.items()
           if shape.kind == kind},
        **layer_cases.NAMED[kind],
    }
    for kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
}  # fmt: skip
_CASES = {kind: {**NAMED.get(kind, {}), **_LAYERS.get(kind, {})} for kind in sorted(NAMED.keys() | _LAYERS)}
#: cases a signature of dtypes that are tried of a kind
_EACH = 3


def of_constants(op: Op) -> Op:
    """Replaces the operator's activations by random constants."""
    drawn = _random_inputs(op)
    data = dict(zip(op.activations, drawn, strict=True))
    return op.reading({t: replace(t, data=np.array(values)) for t, values in data.items()})


def _random_inputs(op: Op) -> list[np.ndarray]:
    if op.kind in _LAYERS:
        return [random_data(t.shape, np.random.default_rng(5), t.dtype).clip(-1000, 1000) for t in op.activations]
    return inputs_of(op)[3]


def beside_an_input(op: Op) -> bytes:
    """A model whose operator `op` reads only constants. Its outputs are outputs of the model; if ADD takes their dtype,
    one is also added to the input."""
    model = ModelBuilder()
    inputs, outputs = add_operator(model, op, _options_of(op))
    assert inputs == []
    result = op.output
    shape, dtype = result.shape, result.dtype
    if _is_addend(result):
        quant = (result.scale, result.zero_point) if result.quant is not None else (None, None)
        x, y = (model.tensor(name, shape, dtype, *quant) for name in "xy")
        model.op("ADD", [x, outputs[0]], [y], fused_activation_function="NONE")
    else:
        x, y = (model.tensor(name, (1, 3, 5, 2), "int8", 0.1, 0) for name in "xy")
        model.op("RELU", [x], [y])
    return model.build([x], [y, *outputs])


def _options_of(op: Op) -> dict[str, Any] | None:
    return conv_cases.options_of(op) if op.kind in _LAYERS else options_of(op)


def _is_addend(tensor: Tensor) -> bool:
    """Tells whether ADD accepts the tensor as an operand."""
    if tensor.dtype == "float32":
        return tensor.quant is None
    return tensor.quant is not None and (tensor.dtype == "int8" or (tensor.dtype == "int16" and not tensor.zero_point))


def chosen(kind: str) -> list[Op]:
    """A few cases of a kind for each signature of dtypes, with constants instead of activations."""
    found: dict[tuple[str | None, ...], list[Op]] = {}
    for op in _CASES[kind].values():
        same = found.setdefault(tuple(t and t.dtype for t in (*op.inputs, *op.outputs)), [])
        if len(same) < _EACH and op.outputs and all(t.elements for t in op.outputs):
            same.append(of_constants(op))
    return [op for ops in found.values() for op in ops]


@pytest.mark.parametrize("kind", _CASES)
def test_operators_of_constants_are_compiled(kind: str) -> None:
    for op in chosen(kind):
        for optimize in ("balanced", "speed", "ram"):
            plan = plan_of(beside_an_input(op), "cortex-m4", optimize=optimize)
            assert all(done.activations for done in plan.graph.ops if done.kind != "CONSTANT_OUTPUT")


@pytest.mark.parametrize("kind", [kind for kind in _CASES if FAMILIES[kind].in_tflm])
def test_references_are_tflms(kind: str) -> None:
    pytest.importorskip("tflite_micro")
    for op in chosen(kind):
        assert_reference_is_tflm(beside_an_input(op), runs=2)


def test_modules_are_exact() -> None:
    cases = [op for kind in _CASES for op in chosen(kind)[:1]]
    assert_all_exact([plan_of(beside_an_input(op), name=f"net{i}") for i, op in enumerate(cases)], runs=2)
