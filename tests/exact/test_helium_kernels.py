"""Kernels for Helium whose loops need shapes of their own: their C twins on the host under sanitizers, and the assembly
on an emulated core."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import Shape, make_op, random_input
from op_harness import Case, assert_exact

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Context
from tinyfuse.kernels.mve import MveDense
from tinyfuse.targets import load_target

TARGETS = {"host-twins": replace(load_target("host"), dsp=True, mve=True), "cortex-m55": load_target("cortex-m55")}


def skip_without_tools(target: str) -> None:
    tool = "gcc" if target.startswith("host") else "qemu-system-arm"
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")


def with_zero_point(op: Op, zero_point: int) -> Op:
    quant = replace(op.output.quant, zero_point=(zero_point,))
    return replace(op, outputs=(replace(op.output, quant=quant),))


#: depths with and without a rest, of none to five blocks of sixteen, four of which are a turn; one, two and three batches;
#: outputs that are and aren't a multiple of eight, an odd number of fours among them
ONE_SCALE_SHAPES = tuple(
    Shape("FULLY_CONNECTED", batches, 1, depth, outputs, per_channel=False)
    for batches, depth, outputs in (
        (1, 8, 64), (1, 16, 72), (2, 48, 64), (1, 64, 71), (3, 70, 80), (1, 80, 67), (1, 147, 96),
    )
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_dense_layers_of_one_scale(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    rng, context, kernel = np.random.default_rng(11), Context(TARGETS[target], kernels="tinyfuse"), MveDense()
    cases = []
    for shape in ONE_SCALE_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            op = with_zero_point(make_op(replace(shape, activation=activation), rng), zero_point)
            cases.append(Case(op, kernel, [random_input(op, rng, zero_point == 3)], "whole", None, 1))
    assert [kernel.path(case.op, False, context) for case in cases].count("one scale") == 3 * 6
    assert_exact(cases, TARGETS[target], tmp_path)
