"""Layers that share one estimate, and kernel answers that don't depend on the objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from known_architectures import attention, mobilenet_v2, mobilenet_v3, planes, two_inputs, u_net
from plan_parts import prepare

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import EstimateMark, Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context, Objective, ObjectiveAsked, with_objective, without_objective
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.options import Options
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.kernel_choice.alike import first_alike
from tinyfuse.schedule.kernel_choice.select import candidates, kernel_for
from tinyfuse.targets import load_target

MODELS = mobilenet_v2, mobilenet_v3, u_net, two_inputs, attention, planes
TARGETS = "cortex-m0plus", "cortex-m4", "cortex-m55"


def variants(model, target: str) -> Iterator[tuple[Graph, Context]]:
    """The rewritten graph of a model for each objective, with operators marked for estimates."""
    graph, mark = read_tflite("net", model()), EstimateMark()
    estimate_mark = replace(graph, ops=tuple(replace(op, estimate_mark=mark) for op in graph.ops))
    for optimize in ("speed", "balanced", "ram"):
        yield tuple(
            prepare(estimate_mark, load_target(target), Options(name="net", optimize=optimize, kernels="mixed"))
        )


def layer() -> Op:
    """A convolution with single rounding that is the first one of its estimate."""
    ops = read_tflite("net", mobilenet_v2()).ops
    found = next(
        replace(op, estimate_mark=EstimateMark())
        for op in ops
        if op.kind == "CONV_2D" and single_rounding(op) is not None
    )
    assert first_alike(found) is found
    return found


def with_input(op: Op, index: int, tensor: Tensor) -> Op:
    return replace(op, inputs=(*op.inputs[:index], tensor, *op.inputs[index + 1 :]))


def test_layers_with_other_weights_are_alike() -> None:
    op = layer()
    weights = op.operand(1)
    less = np.sign(weights.values).astype(np.int8)
    assert first_alike(with_input(op, 1, replace(weights, data=less))) is op
    assert first_alike(replace(op, index=99)) is op


def test_layers_of_other_shapes_and_quantization_are_not() -> None:
    op = layer()
    output = op.output
    wider = replace(output, shape=(*output.shape[:2], output.shape[2] + 1, output.shape[3]))
    moved = replace(output, quant=replace(output.quantization, zero_point=(output.zero_point + 1,)))
    others = [replace(op, outputs=(tensor,)) for tensor in (wider, moved)]
    others.append(replace(op, attributes=op.attributes.clamped((-3, 5))))
    assert all(first_alike(other) is other for other in others)


def test_layers_with_a_line_and_without_are_not(monkeypatch) -> None:
    other = replace(layer())
    monkeypatch.setattr("tinyfuse.schedule.kernel_choice.alike.any_single_rounding", lambda op: None)
    assert first_alike(other) is other


def test_layers_of_two_estimates_are_not() -> None:
    """Otherwise a model's figures would depend on models that were estimated before."""
    other = replace(layer(), estimate_mark=EstimateMark())
    assert first_alike(other) is other


def test_a_layer_that_code_is_made_of_is_like_itself_alone() -> None:
    other = replace(layer(), estimate_mark=None)
    assert first_alike(other) is other


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", MODELS)
def test_rough_operators_get_kernels_that_compute_them(model, target: str) -> None:
    for graph, context in variants(model, target):
        for op in (op for op in graph.ops if not is_alias(op)):
            for rings in (None, False, True):
                found = kernel_for(op, context, rings)
                assert found is None or found[0].accepts(op, context)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", MODELS)
def test_what_is_asked_once_for_all_objectives_is_right_for_each(model, target: str) -> None:
    for graph, context in variants(model, target):
        for op in (op for op in graph.ops if not is_alias(op)):
            accepting = {kernel for kernel in kernels_for(op) if kernel.accepts(op, context)}
            # others may be left out: those of compressed weights, and calls of CMSIS-NN for several rows, which an
            # estimate asks for where they may be worth it
            expected = {
                kernel
                for kernel in accepting
                if kernel.weights != "compressed" and (kernel.library != "cmsis-nn" or kernel.rows_a_call == 1)
            }
            assert expected <= set(candidates(op, context)) <= accepting


def test_a_context_of_any_objective_tells_none() -> None:
    context = Context(load_target("cortex-m4"), objective=Objective("ram", min_scratch=True))
    common = without_objective(context)
    assert (
        common is without_objective(with_objective(context, optimize="speed", at_once=8)) is without_objective(common)
    )
    assert common is not without_objective(replace(context, weights="unpacked"))
    assert common.target is context.target
    for asked in ("optimize", "at_once", "min_scratch", "allow_scratch_for", "speed_alone"):
        with pytest.raises(ObjectiveAsked):
            getattr(common, asked)
    with pytest.raises(ObjectiveAsked):
        with_objective(common, optimize="speed")
