"""1x3 convolutions, and 3x1 ones of a single column, by Winograd's F(4, 3) (runtime_c/tinyfuse_winograd.h): the C twin on the host under
sanitizers, and the assembly on an emulated core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_cases import Shape, make_op, random_input
from op_harness import Case

from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks
from tinyfuse.kernels.layers.int8_dsp.lanes import SINGLE_ROUNDING, WIDE
from tinyfuse.kernels.layers.int8_dsp.winograd import WinogradAlongRow, transformed_1d, winograd_layer
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.targets import Target, load_target

#: Winograd's matrices B and A for the points 1, -1, 2, -2, 0 and infinity
INPUTS = np.array(
    [[0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [4, 0, -5, 0, 1, 0], [0, 4, 0, -5, 0, 1]]
)  # fmt: skip
OUTPUTS = np.array([[1, 1, 1, 1, 1, 0], [1, -1, 2, -2, 0, 0], [1, 1, 4, 4, 0, 0], [1, -1, 8, -8, 0, 1]])

TARGETS = {"host-dsp-twins": replace(load_target("host"), dsp=True), "cortex-m4": load_target("cortex-m4")}

#: every loop over input channels (multiples of 4, 8, 16, and 16), each rest of columns, borders on each side and on none;
#: columns of one pixel, which are made twelve rows a call, with each rest of these
SHAPES = tuple(
    Shape("CONV_2D", height, width, channels, out_channels, kernel, padding=padding)
    for height, width, channels, out_channels, kernel, padding in (
        (2, 4, 4, 2, (1, 3), "SAME"), (1, 7, 8, 4, (1, 3), "SAME"), (2, 9, 12, 6, (1, 3), "VALID"), (1, 8, 16, 8, (1, 3), "SAME"),
        (3, 3, 32, 2, (1, 3), "VALID"), (1, 2, 24, 4, (1, 3), "SAME"), (2, 1, 4, 2, (1, 3), "SAME"), (1, 4, 48, 2, (1, 3), (0, 0, 3, 1)),
        (2, 5, 4, 2, (1, 3), (1, 1, 0, 2)), (25, 1, 4, 2, (3, 1), "SAME"), (16, 1, 8, 4, (3, 1), "VALID"), (15, 1, 4, 2, (3, 1), "SAME"),
        (4, 1, 32, 2, (3, 1), "VALID"), (30, 1, 16, 4, (3, 1), "SAME"),
    )
)  # fmt: skip


def cases_1d(target: Target) -> list[Case]:
    """Layers in both forms, with extreme inputs too, whole and from rings."""
    rng, context = np.random.default_rng(5), Context(target, kernels="tinyfuse", weights="winograd")
    cases: list[Case] = []
    for shape in SHAPES:
        for zero_point in (-128, 3):
            extreme = bool(rng.random() < 0.5)
            plain = make_op(shape, rng, extreme)
            op = replace(
                plain, outputs=(replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,))),)
            )
            for kernel in kernels_for(op):
                if kernel.weights == "winograd" and kernel.accepts(op, context):
                    ring = kernel.rings and bool(rng.random() < 0.5)
                    data = random_input(op, rng, extreme)
                    cases.append(Case(op, kernel, [data], "rings" if ring else "rows", None, int(rng.integers(0, 4))))
    return cases


@pytest.mark.parametrize("target", TARGETS)
def test_cases_of_winograd_of_one_dimension(target: str) -> None:
    """test_conv_kernels.py runs these cases, in one program with others."""
    cases = cases_1d(TARGETS[target])
    assert {case.op.operand(1).shape[1:4] for case in cases} == {(*s.kernel, s.channels) for s in SHAPES}
    assert {winograd_layer(case.op).form for case in cases} == {SINGLE_ROUNDING, WIDE}
    assert {type(case.kernel) for case in cases} == {WinogradAlongRow, ColumnBlocks}


def test_sums_are_24_times_the_convolutions() -> None:
    """F(4, 3) of random and of extreme filters and inputs, in the transforms' own terms."""
    rng = np.random.default_rng(6)
    for low, high in ((-128, 128), (-128, -126), (127, 128)):
        filters, patch = rng.integers(low, high, (5, 3, 8)), rng.integers(-128, 128, (6, 8))
        weights = transformed_1d(filters)[:, 0].astype(np.int64)
        assert np.abs(weights).max() <= 24 * 128
        sums = OUTPUTS @ (weights * (INPUTS @ patch)).sum(-1).T
        wanted = [24 * (filters * patch[x : x + 3]).sum((1, 2)) for x in range(4)]
        np.testing.assert_array_equal(sums, wanted)
