"""Counts of kernels with Helium that list, copy and move windows on: against the loops of their C, played through. What
of a window lies in the padding takes other instructions: of networks, layers of few columns were off by 8 %."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from random_graphs import Sketch

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.layers.int8_dsp.depthwise import PackedDepthwiseRow
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveDepthwiseRow
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import MveChunksConv4x2Row, MveColumnsConv4x2Row
from tinyfuse.ops.core.convolution import geometry

#: width of an image of nine rows, channels, kernel, strides
SHAPES = [
    (1, 16, (3, 1), (1, 1)),
    (3, 32, (3, 3), (1, 1)),
    (12, 16, (3, 3), (1, 1)),
    (13, 32, (5, 5), (1, 1)),
    (21, 16, (1, 4), (1, 1)),
    (21, 16, (2, 2), (2, 2)),
    (22, 16, (5, 3), (2, 3)),
]
WITHOUT_STRIDES = [shape for shape in SHAPES if shape[3] == (1, 1)]


def layer(width: int, channels: int, kernel: tuple[int, int], stride: tuple[int, int], depthwise: bool = False) -> Op:
    sketch = Sketch(0)
    image = sketch.value((1, 9, width, channels))
    output = sketch.depthwise(image, kernel, stride) if depthwise else sketch.conv(image, 6, kernel, stride)
    return read_tflite("model.tflite", sketch.build([image], [output])).ops[0]


def windows(op: Op) -> Iterator[tuple[int, list[list[int]]]]:
    """For each output row, the window's rows inside the image, and each pixel's columns inside."""
    g = geometry(op)
    for y in range(g.out_h):
        rows = sum(0 <= y * g.stride_h - g.pad_top + k < g.in_h for k in range(g.kernel_h))
        starts = [x * g.stride_w - g.pad_left for x in range(g.out_w)]
        yield rows, [[x for x in range(start, start + g.kernel_w) if 0 <= x < g.in_w] for start in starts]


def assert_counted(kernel: Kernel, op: Op, found: Counter[str]) -> None:
    """Checks the counts of a kernel that computes rows."""
    counts = kernel.counts(op, True)
    assert {name: counts[name] for name in found} == found


@pytest.mark.parametrize("shape", WITHOUT_STRIDES)
def test_lists_of_columns(shape) -> None:
    op = layer(*shape)
    g, found = geometry(op), Counter[str]()
    blocks, iterations = g.in_c // 16, -(-g.kernel_w // 3)
    for rows, _ in windows(op):
        moves_on = False
        for x in range(0, g.out_w, 4):
            if moves_on:
                found["moved_iterations"] += g.kernel_h * iterations * blocks
            else:
                moves_on = rows == g.kernel_h
                found.update(listed=1, listed_inner_rows=rows, listed_iterations=g.kernel_h * iterations * blocks)
            places = [x - g.pad_left + 3 * iteration + i for iteration in range(iterations) for i in range(6)]
            beside = sum(not 0 <= place < g.in_w for place in places)
            if beside:
                moves_on = False
                found.update(padded_iterations=iterations, padded_columns=beside, padded_rows=beside * g.kernel_h)
                found["padded_blocks"] += beside * g.kernel_h * blocks
    assert_counted(MveColumnsConv4x2Row(), op, found)


@pytest.mark.parametrize("shape", SHAPES)
def test_lists_of_pieces(shape) -> None:
    op = layer(*shape)
    g, found = geometry(op), Counter[str]()
    for rows, columns in windows(op):
        moves_on = False
        for x in range(0, g.out_w, 4):
            four = columns[x : x + 4]
            if not moves_on or len(four) < 4:
                moves_on = rows == g.kernel_h
                found.update(listed=1, listed_inner_rows=rows)
            copied = [pixel for pixel in four if len(pixel) < g.kernel_w]
            for pixel in copied:
                moves_on = False
                found.update(border_pixels=1, border_rows=rows, border_taps=rows * len(pixel))
    assert_counted(MveChunksConv4x2Row(), op, found)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [MveDepthwiseRow(), PackedDepthwiseRow()], ids=lambda kernel: kernel.name)
def test_lists_of_taps(kernel, shape) -> None:
    op = layer(*shape, depthwise=True)
    g, found = geometry(op), Counter[str]()
    for rows, columns in windows(op):
        for x, pixel in enumerate(columns):
            whole = rows == g.kernel_h and len(pixel) == g.kernel_w
            if not (x > 0 and whole and len(columns[x - 1]) == g.kernel_w):
                found.update(gathered_windows=1, gathered_inner_rows=rows, gathered_inner_taps=rows * g.kernel_w)
                found["gathered_image_taps"] += rows * len(pixel)
    assert_counted(kernel, op, found)
