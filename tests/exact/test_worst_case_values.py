"""The instruction bound of a step holds for the values that take a kernel longest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from executors import plan_of
from test_step import needs_cross
from tflite_builder import ModelBuilder

from tinyfuse.cost.predict import stage_instructions
from tinyfuse.cost.steps import longest_step
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu

#: parameters of a SOFTMAX's output
OUTPUTS = {"int8": (1 / 256, -128), "int16": (1 / 65536, -32768)}


def _softmax(count: int, scale: float, dtype: str = "int8") -> bytes:
    model = ModelBuilder()
    x = model.tensor("x", (1, count), scale=scale, zero_point=0)
    y = model.tensor("y", (1, count), dtype, *OUTPUTS[dtype])
    model.op("SOFTMAX", [x], [y], beta=1.0)
    return model.build([x], [y])


def _one_far_from_others(count: int) -> list[list[np.ndarray]]:
    """Inputs whose values are all the same distance below the greatest one, for each distance. Some of their exps
    multiply all factors of the kernel."""
    values = np.full((256, 1, count), 127) - np.arange(256)[:, None, None]
    values[:, :, 0] = 127
    return [[each.astype(np.int8)] for each in values]


def _float_function(kind: str, inputs: int = 1) -> bytes:
    model = ModelBuilder()
    xs = [model.tensor(f"x{i}", (1, 64), "float32") for i in range(inputs)]
    y = model.tensor("y", (1, 64), "float32")
    model.op(kind, xs, [y])
    return model.build(xs, [y])


def _floats(inputs: int = 1) -> list[list[np.ndarray]]:
    """Constant inputs of every magnitude, in all combinations."""
    found = [0, 1, -1, 0.3, -0.3, 1.0000001, 1e-3, 9, 88, -88, 100.7, 1e5, 1e20, 3e38, -3e38, 1e-40, -1e-40, np.inf]
    of_one = [np.full((1, 64), value, np.float32) for value in found]
    return [[x] for x in of_one] if inputs == 1 else [[x, y] for x in of_one[::2] for y in of_one]


def _measured(plan: Plan, inputs: list[list[np.ndarray]], folder: Path) -> int:
    outcome = Qemu().run(build_module(plan, None, inputs, "qemu", "O2", folder, spread=True), 300)
    assert outcome.longest_step is not None
    return outcome.longest_step


def _bound(plan: Plan) -> int:
    step = longest_step(plan)
    assert step is not None and step.bound is not None
    return step.bound


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize("dtype", OUTPUTS)
@pytest.mark.parametrize("target", ["cortex-m55", "cortex-m4", "cortex-m0plus"])
def test_no_softmax_takes_longer_than_its_bound(target: str, dtype: str, tmp_path: Path) -> None:
    plan = plan_of(_softmax(12, 0.15, dtype), target, step=True, kernels="tinyfuse")
    assert _measured(plan, _one_far_from_others(12), tmp_path) <= _bound(plan)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        *((kind, "cortex-m55") for kind in ("LOG", "TANH", "SIN", "COS", "ELU", "ROUND", "POW", "FLOOR_DIV")),
        *((kind, "cortex-m0plus") for kind in ("TANH", "ELU", "SQRT", "HARD_SWISH")),
    ],
)
def test_no_function_of_floats_takes_longer_than_its_bound(kind: str, target: str, tmp_path: Path) -> None:
    inputs = 2 if kind in ("POW", "FLOOR_DIV") else 1
    plan = plan_of(_float_function(kind, inputs), target, step=True)
    assert _measured(plan, _floats(inputs), tmp_path) <= _bound(plan)


def test_a_bound_is_of_the_slowest_values_and_a_prediction_of_the_mean() -> None:
    """With a scale of 4 most values count as zero in the mean; in the slowest case none does."""
    plan = plan_of(_softmax(12, 4.0), "cortex-m55", step=True, kernels="tinyfuse")
    (group,) = plan.groups
    (mean,) = stage_instructions(group.stages, None, plan.context)
    (slowest,) = stage_instructions(group.stages, None, plan.context, slowest=True)
    assert mean is not None and slowest is not None and slowest > 3 * mean
    assert _bound(plan) > slowest
