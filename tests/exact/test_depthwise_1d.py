"""Depthwise convolutions along lines of pixels (runtime_c/tinyfuse_depthwise_1d.h): the C twin on the host under
sanitizers, and the assembly on an emulated core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contexts import context_of
from conv_cases import Shape, make_op, random_input
from op_harness import Case

from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_dsp.depthwise_1d import DepthwiseAlongRow, DepthwiseColumns
from tinyfuse.targets import Target, load_target

TARGETS = {"host-dsp-twins": replace(load_target("host"), dsp=True), "cortex-m4": load_target("cortex-m4")}

#: two to fifteen taps; one output, several blocks of four of them and every rest; lines of a pixel and of several,
#: several of them; groups of channels that overlap; padding on no side, on one, odd and even, of all that windows see
SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", pixels, lines, channels, channels, (taps, 1), padding=padding)
    for pixels, lines, channels, taps, padding in (
        (30, 1, 40, 3, "VALID"), (28, 1, 12, 5, "VALID"), (24, 1, 8, 10, "VALID"), (15, 1, 4, 15, "VALID"), (9, 1, 5, 2, "SAME"),
        (13, 3, 4, 4, "SAME"), (4, 2, 7, 6, "SAME"), (10, 2, 4, 7, (0, 5, 0, 0)), (7, 1, 4, 8, (7, 0, 0, 0)),
        (1, 1, 4, 9, (4, 4, 0, 0)), (2, 2, 9, 3, (5, 1, 0, 0)), (6, 1, 8, 11, (2, 9, 0, 0)), (5, 1, 4, 12, (9, 3, 0, 0)),
        (3, 3, 4, 13, "SAME"), (16, 1, 4, 14, "SAME"), (3, 1, 6, 2, (0, 0, 0, 0)),
    )
)  # fmt: skip


def along_rows(shape: Shape) -> Shape:
    """Transposes the shape, so that lines of pixels are rows."""
    padding = shape.padding if isinstance(shape.padding, str) else (*shape.padding[2:], *shape.padding[:2])
    swapped = {"height": shape.width, "width": shape.height, "kernel": shape.kernel[::-1], "padding": padding}
    return replace(shape, **swapped)


def cases_1d(target: Target) -> list[Case]:
    """Each shape with single rounding and with bounded double rounding, rows whole and from rings."""
    rng, context = np.random.default_rng(21), context_of(target, optimize="speed", weights="unpacked")
    kernels = (DepthwiseColumns(), lambda shape: shape), (DepthwiseAlongRow(), along_rows)
    cases: list[Case] = []
    for shape in SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            for kernel, swapped in kernels:
                plain = make_op(replace(swapped(shape), activation=activation), rng)
                quant = replace(plain.output.quant, zero_point=(zero_point,))
                op = replace(plain, outputs=(replace(plain.output, quant=quant),))
                extreme = bool(rng.random() < 0.5)
                ring = kernel.by_row and bool(rng.random() < 0.5)
                how = "rings" if ring else "rows" if kernel.by_row else "whole"
                if kernel.accepts(op, context):
                    cases.append(Case(op, kernel, [random_input(op, rng, extreme)], how, None, int(rng.integers(0, 4))))
    return cases


@pytest.mark.parametrize("target", TARGETS)
def test_cases_of_depthwise_convolutions_along_lines(target: str) -> None:
    """test_conv_kernels.py runs these cases, in one program with others."""
    cases, context = cases_1d(TARGETS[target]), Context(TARGETS[target])
    assert len(cases) == 2 * 3 * len(SHAPES)
    paths = {case.kernel.path(case.op, case.kernel.by_row, context) for case in cases}
    assert paths == {"single_rounding", "own_shifts", "bounded"}
