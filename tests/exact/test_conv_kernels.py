"""Our kernels of the convolution families, on the host under sanitizers and on emulated cores."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contexts import context_of
from conv_cases import FAMILIES, Shape, make_op, of_int4, random_input, random_shape
from op_harness import Case, assert_exact, chosen
from overlaps import covered_inputs
from test_depthwise_1d import cases_1d as depthwise_1d_cases
from test_winograd_1d import cases_1d as winograd_1d_cases

from tinyfuse.board_timing import BoardTiming
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel, require_proven
from tinyfuse.kernels.layers.common.params import rectified
from tinyfuse.kernels.layers.int4.conv_dsp import int4_layer
from tinyfuse.kernels.layers.int8_dsp.dense_five_outputs import FORMS, DenseFiveOutputs
from tinyfuse.kernels.layers.int8_dsp.depthwise import WeightStationaryDepthwiseRow
from tinyfuse.kernels.layers.int8_dsp.lanes import (
    BYTES,
    BYTES_SINGLE_ROUNDING,
    INT4_SINGLE_ROUNDING,
    INT4_WIDE,
    LANES,
    SINGLE_ROUNDING,
    WIDE,
    dense_layer,
    matmul_layer,
)
from tinyfuse.kernels.layers.int8_dsp.winograd import winograd_layer
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import (
    MveChunksConv4x2Row,
    MveColumnsConv4x2Row,
    MvePointwise4x2,
    MvePointwise4x2Row,
    MveStridedPointwise4x2Row,
)
from tinyfuse.kernels.layers.int8_helium.depthwise_interleaved import (
    InterleavedDepthwiseRow,
    SmallInterleavedDepthwiseRow,
)
from tinyfuse.kernels.layers.int8_helium.vector_requantization import requantized
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.targets import Target, load_target
from tinyfuse.thinning import pick_evenly

#: the host also runs the C twins of what uses the DSP extension and Helium
TARGETS = {name: load_target(name) for name in ("host", "cortex-m3", "cortex-m4", "cortex-m55")}
TARGETS["host-twins"] = replace(TARGETS["host"], dsp=True, mve=True)
TARGETS["host-dsp-twins"] = replace(TARGETS["host"], dsp=True)


def case_of(op: Op, kernel: Kernel, data: np.ndarray, ring: bool = False, shift: int = 0, over: bool = False) -> Case:
    """A case of one layer. `ring`: the input is the smallest possible ring. `over`: the output overwrites the input."""
    how = "rings" if ring else "whole" if kernel.whole else "rows"
    return Case(op, kernel, [data], how, 0 if over else None, shift)


def takes_rings(kernel: Kernel, op: Op) -> bool:
    """Tells whether the kernel computes the operator by rows."""
    return kernel.by_row and kernel.rings and FAMILIES[op.kind].row_window(op, 0) is not None


def random_cases(kind: str, target: Target, count: int = 40, seed: int = 1) -> list[Case]:
    """Random operators, each with every kernel that accepts it."""
    rng = np.random.default_rng(seed)
    context = Context(target, kernels="tinyfuse")
    cases: list[Case] = []
    while len(cases) < count:
        extreme = bool(rng.random() < 0.3)
        op = make_op(random_shape(kind, rng, explicit_padding=bool(rng.random() < 0.2)), rng, extreme)
        if any(rule.problem(op) for rule in FAMILIES[kind].rules):
            continue
        if rng.random() < 0.15:
            op = with_least_weight(op)
        data = random_input(op, rng, bool(rng.random() < 0.3))
        for kernel in kernels_for(op):
            if kernel.library == "tinyfuse" and kernel.accepts(op, context):
                ring = takes_rings(kernel, op) and bool(rng.random() < 0.5)
                over = not ring and 0 in covered_inputs(op, kernel, not kernel.whole) and bool(rng.random() < 0.7)
                cases.append(case_of(op, kernel, data, ring, int(rng.integers(0, 4)), over))
    return cases


def with_least_weight(op: Op) -> Op:
    """The layer with a weight of -128, which no packed lane can hold (runtime_c/tinyfuse_matmul.h)."""
    weights = op.inputs[1].data.copy()
    weights.reshape(-1)[0] = -128
    return replace(op, inputs=(op.input, replace(op.inputs[1], data=weights), *op.inputs[2:]))


#: for every block of pixels and every rest of channels of the packed kernels
FORM_SHAPES = {
    "CONV_2D": [
        Shape("CONV_2D", 3, 7, 3, 5, (3, 3)), Shape("CONV_2D", 4, 5, 8, 6, (2, 3)),
        Shape("CONV_2D", 2, 7, 12, 7), Shape("CONV_2D", 4, 5, 8, 20), Shape("CONV_2D", 3, 1, 20, 9),
        Shape("CONV_2D", 3, 7, 1, 5, (3, 3)),  # rows without a word
        Shape("CONV_2D", 4, 4, 7, 4, (3, 4)), Shape("CONV_2D", 1, 1, 6, 9),  # the last one: a layer of one pixel, as if dense
    ],
    "DEPTHWISE_CONV_2D": [
        Shape("DEPTHWISE_CONV_2D", 5, 6, 10, 10, (3, 3)),
        Shape("DEPTHWISE_CONV_2D", 7, 5, 8, 8, (3, 3), (2, 2)),
        Shape("DEPTHWISE_CONV_2D", 6, 3, 9, 9, (5, 2)), Shape("DEPTHWISE_CONV_2D", 9, 2, 12, 12, (4, 1), padding="VALID"),
        Shape("DEPTHWISE_CONV_2D", 4, 2, 8, 8, (2, 1), padding=(2, 4, 0, 0)),  # windows beyond the image
        Shape("DEPTHWISE_CONV_2D", 3, 6, 8, 8, (1, 3), (1, 2)),  # padding on the right alone
        Shape("DEPTHWISE_CONV_2D", 9, 1, 20, 20, (3, 1)), Shape("DEPTHWISE_CONV_2D", 9, 3, 11, 11, (3, 1), (2, 1)),
    ],
    "FULLY_CONNECTED": [
        Shape("FULLY_CONNECTED", 2, 1, 36, 9), Shape("FULLY_CONNECTED", 1, 1, 10, 8),
        Shape("FULLY_CONNECTED", 1, 1, 300, 4), Shape("FULLY_CONNECTED", 3, 1, 28, 70, per_channel=False),
        Shape("FULLY_CONNECTED", 2, 1, 37, 66, per_channel=False),
    ],
}  # fmt: skip


def form_cases(kind: str, target: Target, **choices: object) -> list[Case]:
    """Layers of each requantization form, each with every kernel that accepts it."""
    rng = np.random.default_rng(2)
    context = context_of(target, kernels="tinyfuse", **choices)
    cases: list[Case] = []
    for shape in (*FORM_SHAPES[kind], *map(of_int4, FORM_SHAPES[kind][:2])):
        plain = make_op(shape, rng)
        quant = replace(plain.output.quant, zero_point=(-128,))
        on_single_rounding = replace(plain, outputs=(replace(plain.output, quant=quant),))
        quant = replace(quant, zero_point=(3,))
        both_sides = replace(plain, outputs=(replace(plain.output, quant=quant),))
        least = () if shape.weights_dtype == "int4" else (with_least_weight(both_sides),)
        for op in (on_single_rounding, both_sides, *least):
            data = random_input(op, rng)
            for kernel in kernels_for(op):
                if kernel.library == "tinyfuse" and kernel.accepts(op, context):
                    over = 0 in covered_inputs(op, kernel, not kernel.whole)
                    cases += [case_of(op, kernel, data, over=True)] * over + [case_of(op, kernel, data)]
    return cases


@pytest.mark.parametrize("target", ("cortex-m3", "cortex-m4"))
def test_every_form_is_among_the_cases(target: str) -> None:
    forms, context = set(), Context(TARGETS[target])
    for kind in FAMILIES:
        for case in form_cases(kind, TARGETS[target]):
            name = case.kernel.name
            if name in ("tinyfuse_dense_s8", "tinyfuse_dense_wide_s8"):
                forms.add((name, dense_layer(case.op, context).form))
            elif name in ("tinyfuse_depthwise_3x3_row_s8", "tinyfuse_depthwise_packed_row_s8"):
                forms.add((name, single_rounding(case.op) is not None))
            elif name in ("tinyfuse_conv_packed_row_s8", "tinyfuse_pointwise_s8"):
                forms.add((name, matmul_layer(case.op, context).form))
    matmuls = ("tinyfuse_conv_packed_row_s8", "tinyfuse_pointwise_s8")
    dsp = context.target.dsp
    assert forms == {
        *((f"tinyfuse_dense{sort}_s8", form) for sort in ("", "_wide")
          for form in ((WIDE, LANES) if dsp else (BYTES,))),
        *((name, form) for name in matmuls
          for form in ((WIDE, LANES, SINGLE_ROUNDING) if dsp else (BYTES, BYTES_SINGLE_ROUNDING))),
        *((f"tinyfuse_depthwise_{sort}_row_s8", has) for sort in ("3x3", "packed") for has in (False, True)),
    }  # fmt: skip


def skip_without_tools(target: str) -> None:
    needed = ["gcc"] if target.startswith("host") else ["arm-none-eabi-gcc", "qemu-system-arm"]
    if any(shutil.which(tool) is None for tool in needed):
        pytest.skip(f"needs {' and '.join(needed)}")


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    """Tests all kinds in one program, so that compiler and emulator start only once."""
    skip_without_tools(target)
    core = TARGETS[target]
    cases = [case for kind in FAMILIES for case in form_cases(kind, core) + random_cases(kind, core, 20)]
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize(
    ("target", "leans"), [("host-twins", (False, True)), ("cortex-m3", (True,)), ("cortex-m4", (True,))]
)
def test_kernels_of_the_least_ram(target: str, leans: tuple[bool, ...], tmp_path: Path) -> None:
    """`--optimize ram`: blocks of two pixels, or of one, dense layers from bytes. Blocks of two are compiled for
    Cortex-M4 by test_assembly_is_exact_with_any_flags, too."""
    skip_without_tools(target)
    core, cases = TARGETS[target], []
    for min_scratch in leans:
        cases += chosen(
            form_cases("CONV_2D", core, optimize="ram", min_scratch=min_scratch),
            core,
            optimize="ram",
            min_scratch=min_scratch,
        )
    assert any(case.kernel.name == "tinyfuse_dense_s8" for case in cases)
    assert_exact(cases, core, tmp_path)


#: sums of 1, 9, 15, 16, 17, 18 and 32 steps, eight of which are an iteration of the loop; one channel, odd and even counts;
#: one pixel, odd and even counts. Of dense layers iterations of four steps of eight inputs, rests of inputs and of outputs
UNPACKED_SHAPES = (
    Shape("CONV_2D", 1, 1, 4, 2), Shape("CONV_2D", 3, 5, 3, 5, (3, 4)), Shape("CONV_2D", 3, 3, 60, 4), Shape("CONV_2D", 4, 4, 64, 1),
    Shape("CONV_2D", 5, 2, 68, 7), Shape("CONV_2D", 4, 5, 8, 6, (3, 3), (2, 2)), Shape("CONV_2D", 1, 5, 128, 3, activation="RELU6"),
    Shape("FULLY_CONNECTED", 1, 1, 8, 3), Shape("FULLY_CONNECTED", 2, 1, 61, 4), Shape("FULLY_CONNECTED", 1, 1, 64, 9, per_channel=False),
    Shape("FULLY_CONNECTED", 3, 1, 70, 8, activation="RELU6"), Shape("FULLY_CONNECTED", 1, 1, 156, 5),
    Shape("FULLY_CONNECTED", 2, 1, 45, 7, per_channel=False),
)  # fmt: skip


def unpacked_cases(target: Target) -> list[Case]:
    """Cases of unpacked weights in both forms: whole, by rows, from rings, output over input."""
    rng = np.random.default_rng(9)
    context = Context(target, kernels="tinyfuse", weights="unpacked")
    cases: list[Case] = []
    for shape, zero_point in itertools.product(UNPACKED_SHAPES, (-128, 3)):
        plain = make_op(shape, rng)
        quant = replace(plain.output.quant, zero_point=(zero_point,))
        op = replace(plain, outputs=(replace(plain.output, quant=quant),))
        for kernel in kernels_for(op):
            if "_int16_weights_" in kernel.name and kernel.accepts(op, context):
                for extreme in (False, True):
                    data = random_input(op, rng, extreme)
                    ring = kernel.by_row and extreme and shape.kind == "CONV_2D"
                    cases.append(case_of(op, kernel, data, ring, int(extreme)))
                    cases += [case_of(op, kernel, data, over=True)] * (
                        not ring and 0 in covered_inputs(op, kernel, not kernel.whole)
                    )
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_unpacked_weights(target: str) -> None:
    cases, rng = unpacked_cases(TARGETS[target]), np.random.default_rng(0)
    assert {case.kernel.name.replace("_row", "") for case in cases} == {
        f"tinyfuse_{kind}_int16_weights_s8" for kind in ("pointwise", "conv", "dense")
    }
    assert {case.op.operand(1).shape for case in cases} == {make_op(s, rng).operand(1).shape for s in UNPACKED_SHAPES}
    for kind in ("pointwise", "conv"):
        layers = [case.op for case in cases if case.kernel.name.startswith(f"tinyfuse_{kind}_int16")]
        assert {single_rounding(op) is None for op in layers} == {False, True}
    dense = [case for case in cases if case.op.kind == "FULLY_CONNECTED"]
    assert {case.kernel.path(case.op, False, Context(TARGETS[target])) for case in dense} == {
        "bounded",
        "single_rounding",
    }


#: every loop over input channels (multiples of 4, 8, 16, and 16), odd heights, widths that leave a rest, borders on
#: each side, and without any
WINOGRAD_SHAPES = (
    Shape("CONV_2D", 5, 4, 4, 2, (3, 3)), Shape("CONV_2D", 4, 7, 8, 4, (3, 3)), Shape("CONV_2D", 3, 9, 12, 6, (3, 3)),
    Shape("CONV_2D", 6, 8, 16, 8, (3, 3)), Shape("CONV_2D", 4, 6, 32, 2, (3, 3), padding="VALID"),
    Shape("CONV_2D", 7, 11, 24, 2, (3, 3), padding="VALID"), Shape("CONV_2D", 5, 5, 48, 4, (3, 3), padding=(2, 1, 0, 2)),
    Shape("CONV_2D", 5, 14, 8, 2, (3, 3)),
)  # fmt: skip


def winograd_cases(target: Target) -> list[Case]:
    """Layers in both forms, with extreme inputs too, whole and from rings."""
    rng = np.random.default_rng(4)
    context = Context(target, kernels="tinyfuse", weights="winograd")
    cases: list[Case] = []
    for shape in WINOGRAD_SHAPES:
        for extreme in (False, True):
            plain = make_op(shape, rng, extreme)
            for zero_point in (-128, 3):
                output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
                op = replace(plain, outputs=(output,))
                for kernel in kernels_for(op):
                    if kernel.weights == "winograd" and kernel.accepts(op, context):
                        data = random_input(op, rng, extreme)
                        cases.append(case_of(op, kernel, data, ring=extreme, shift=int(extreme)))
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_winograd(target: str) -> None:
    cases = winograd_cases(TARGETS[target])
    assert {winograd_layer(case.op).form for case in cases} == {SINGLE_ROUNDING, WIDE}
    assert {case.op.input.shape[3] for case in cases} == {shape.channels for shape in WINOGRAD_SHAPES}


#: both counts of channels, pixels that are one, odd and even counts of pairs, more than a block
FEW_CHANNELS_SHAPES = (
    Shape("CONV_2D", 1, 1, 8, 3), Shape("CONV_2D", 1, 2, 4, 1), Shape("CONV_2D", 3, 5, 8, 5), Shape("CONV_2D", 5, 6, 4, 6),
    Shape("CONV_2D", 2, 65, 8, 4), Shape("CONV_2D", 3, 27, 4, 7, activation="RELU6"), Shape("CONV_2D", 7, 8, 8, 8),
)  # fmt: skip


def few_channels_cases(target: Target) -> list[Case]:
    """Pointwise layers of few channels: whole, by rows, from rings, output over input."""
    rng = np.random.default_rng(5)
    context = Context(target, kernels="tinyfuse", weights="unpacked")
    cases: list[Case] = []
    for shape in FEW_CHANNELS_SHAPES:
        plain = make_op(shape, rng)
        op = replace(plain, outputs=(replace(plain.output, quant=replace(plain.output.quant, zero_point=(-128,))),))
        for kernel in kernels_for(op):
            if kernel.name == "tinyfuse_pointwise_few_channels_s8" and kernel.accepts(op, context):
                for extreme in (False, True):
                    data = random_input(op, rng, extreme)
                    ring = kernel.by_row and extreme
                    cases.append(case_of(op, kernel, data, ring, int(extreme)))
                    cases += [case_of(op, kernel, data, over=True)] * (not ring)
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_narrow_layers(target: str) -> None:
    cases = few_channels_cases(TARGETS[target])
    assert {case.op.input.shape[1:3] for case in cases} == {
        (shape.height, shape.width) for shape in FEW_CHANNELS_SHAPES
    }


#: blocks of one to four pixels and rows that leave each of them; sums of one to five steps; one pair of channels and several
TILE_4X2_SHAPES = (
    Shape("CONV_2D", 1, 1, 4, 2), Shape("CONV_2D", 2, 4, 8, 6), Shape("CONV_2D", 3, 5, 12, 4), Shape("CONV_2D", 3, 2, 16, 2),
    Shape("CONV_2D", 2, 11, 20, 6), Shape("CONV_2D", 3, 7, 3, 6, (3, 4)), Shape("CONV_2D", 4, 9, 8, 2, (3, 3), (2, 1)),
    Shape("CONV_2D", 4, 8, 5, 4, (2, 2), activation="RELU6"),
)  # fmt: skip


def tile_4x2_cases(target: Target) -> list[Case]:
    """Layers with single rounding and with bounded double rounding: whole, by rows, from rings, output over input."""
    rng = np.random.default_rng(8)
    context = context_of(target, kernels="tinyfuse", optimize="speed")
    cases: list[Case] = []
    for shape in TILE_4X2_SHAPES:
        plain = make_op(shape, rng)
        for zero_point in (-128, 3):
            output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
            op = replace(plain, outputs=(output,))
            for kernel in kernels_for(op):
                if "_4x2_" in kernel.name and kernel.accepts(op, context):
                    ring = kernel.by_row and zero_point == 3
                    cases.append(case_of(op, kernel, random_input(op, rng, ring), ring, int(ring)))
                    over = not ring and 0 in covered_inputs(op, kernel, not kernel.whole)
                    cases += [case_of(op, kernel, random_input(op, rng), over=True)] * over
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_blocks_of_four_pixels(target: str) -> None:
    cases, context = tile_4x2_cases(TARGETS[target]), Context(TARGETS[target])
    found = {(case.kernel.name, require_proven(matmul_layer(case.op, context)).form) for case in cases}
    assert found == {
        (f"tinyfuse_{of}_s8", form) for of in ("pointwise_4x2", "conv_4x2_row") for form in (LANES, SINGLE_ROUNDING)
    }


#: one and several groups of five and of four outputs, and none of either; each count of steps in the first iteration of the
#: loop; one, two and more iterations; batches
FIVE_OUTPUTS_SHAPES = tuple(
    Shape("FULLY_CONNECTED", batches, 1, in_c, out_c, activation=activation, per_channel=False)
    for batches, in_c, out_c, activation in (
        (1, 4, 5, "NONE"), (2, 8, 9, "RELU"), (1, 12, 4, "NONE"), (1, 16, 10, "NONE"), (3, 20, 9, "RELU6"),
        (1, 24, 5, "NONE"), (1, 28, 8, "RELU"), (1, 32, 13, "NONE"), (1, 36, 4, "NONE"), (2, 40, 10, "RELU"),
        (1, 44, 14, "NONE"), (1, 48, 9, "NONE"), (2, 88, 5, "RELU"), (1, 92, 4, "NONE"), (1, 128, 32, "NONE"),
        (2, 160, 15, "RELU_N1_TO_1"), (1, 640, 12, "NONE"), (1, 960, 14, "NONE"), (1, 512, 5, "NONE"),
    )
)  # fmt: skip


#: choices of who counts cycles
COUNTED = {"optimize": "speed", "cycles": BoardTiming()}


def five_outputs_cases(target: Target) -> list[Case]:
    """Dense layers with single rounding, also sign-dependent, and several shifts; extreme weights and inputs too;
    output over input."""
    rng = np.random.default_rng(9)
    context = context_of(target, kernels="tinyfuse", **COUNTED)
    cases: list[Case] = []
    kernel = DenseFiveOutputs()
    for shape, ends, (zero_point, scale) in itertools.product(
        FIVE_OUTPUTS_SHAPES, (False, True), ((-128, 1), (3, 1), (-4, 0.2), (5, 5))
    ):
        plain = make_op(shape, rng)
        values = (
            rng.choice(np.array([-127, 127], np.int8), plain.operand(1).shape)
            if ends
            else plain.operand(1).values.copy()
        )
        values[:, 1::4][values[:, 1::4] == -127] = -128  # the second of four may be that
        weights = replace(plain.inputs[1], data=values)
        scales = tuple(scale * each for each in plain.output.quantization.scale)
        output = replace(plain.output, quant=replace(plain.output.quant, scale=scales, zero_point=(zero_point,)))
        op = replace(plain, inputs=(plain.input, weights, *plain.inputs[2:]), outputs=(output,))
        if kernel.accepts(op, context):
            cases.append(case_of(op, kernel, random_input(op, rng, ends)))
            cases += [case_of(op, kernel, random_input(op, rng), over=True)] * (0 in covered_inputs(op, kernel, False))
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_five_outputs(target: str) -> None:
    context = context_of(TARGETS[target], **COUNTED)
    cases, rng = five_outputs_cases(TARGETS[target]), np.random.default_rng(0)
    assert {case.op.operand(1).shape for case in cases} == {
        make_op(shape, rng).operand(1).shape for shape in FIVE_OUTPUTS_SHAPES
    }
    assert {case.kernel.path(case.op, False, context) for case in cases} == set(FORMS.values())
    for case in cases:
        assert not case.kernel.accepts(with_least_weight(case.op), context)


#: odd and even counts of columns and of outputs, one of them; strides; padding of one and of several columns on either side,
#: of all that windows see, and none; groups that overlap
STATIONARY_SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", height, width, channels, channels, (3, 3), stride, (1, 1), padding)
    for height, width, channels, stride, padding in (
        (5, 5, 8, (1, 1), "SAME"), (4, 8, 4, (1, 1), "SAME"), (5, 9, 7, (2, 2), "SAME"), (4, 8, 12, (2, 2), "SAME"),
        (3, 3, 4, (1, 1), "VALID"), (3, 4, 5, (1, 1), "VALID"), (3, 1, 8, (1, 1), "SAME"), (2, 2, 4, (1, 2), "SAME"),
        (3, 6, 4, (2, 1), (1, 1, 0, 3)), (3, 5, 4, (1, 1), (0, 0, 3, 0)), (2, 3, 6, (1, 2), (1, 2, 4, 5)),
        (1, 1, 4, (1, 1), (1, 1, 5, 5)), (4, 7, 4, (1, 2), "VALID"),
    )
)  # fmt: skip


def stationary_cases(target: Target) -> list[Case]:
    """Layers of weight-stationary kernels, whole and from rings."""
    rng = np.random.default_rng(7)
    context = Context(target, kernels="tinyfuse", weights="unpacked")
    cases: list[Case] = []
    for shape in STATIONARY_SHAPES:
        plain = make_op(shape, rng)
        op = replace(plain, outputs=(replace(plain.output, quant=replace(plain.output.quant, zero_point=(-128,))),))
        if WeightStationaryDepthwiseRow().accepts(op, context):
            for extreme in (False, True):
                data = random_input(op, rng, extreme)
                cases.append(case_of(op, WeightStationaryDepthwiseRow(), data, extreme, int(extreme)))
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_cases_of_weights_in_registers(target: str) -> None:
    cases = stationary_cases(TARGETS[target])
    assert len(cases) == 2 * len(STATIONARY_SHAPES)


#: chunks of one to eight outputs and several, more and fewer than sixteen channels, strides of any sort, windows up
#: to 3x4, padding on any side, and windows that lie in it
COLUMNS_SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", height, width, channels, channels, kernel, stride, (dilation, 1), padding)
    for height, width, channels, kernel, stride, dilation, padding in (
        (3, 8, 16, (3, 3), (1, 1), 1, "SAME"), (4, 19, 20, (3, 3), (1, 1), 1, "SAME"), (5, 17, 33, (3, 3), (2, 2), 1, "SAME"),
        (3, 5, 64, (3, 3), (1, 1), 1, "SAME"), (3, 10, 5, (2, 4), (1, 1), 1, "VALID"), (7, 13, 8, (3, 2), (1, 3), 2, "SAME"),
        (2, 14, 3, (1, 1), (1, 4), 1, "SAME"), (4, 7, 16, (3, 2), (2, 1), 1, (2, 1, 3, 3)), (3, 1, 18, (3, 3), (1, 1), 1, "SAME"),
        (2, 2, 4, (2, 2), (1, 1), 1, (0, 2, 5, 7)), (3, 12, 2, (3, 1), (1, 2), 1, "SAME"), (3, 6, 16, (3, 4), (1, 2), 1, "SAME"),
    )
)  # fmt: skip


def columns_cases(target: Target) -> list[Case]:
    """Layers in both forms, by sixteen and by eight channels, whole and from rings."""
    rng = np.random.default_rng(6)
    context = Context(target, kernels="tinyfuse")
    cases: list[Case] = []
    for shape in COLUMNS_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            plain = make_op(replace(shape, activation=activation), rng)
            output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
            op = replace(plain, outputs=(output,))
            if InterleavedDepthwiseRow().accepts(op, context):
                for kernel in (InterleavedDepthwiseRow(), SmallInterleavedDepthwiseRow()):
                    extreme = bool(rng.random() < 0.5)
                    cases.append(case_of(op, kernel, random_input(op, rng, extreme), extreme, int(rng.integers(0, 4))))
    return cases


@pytest.mark.parametrize("target", ("host-twins", "cortex-m55"))
def test_cases_of_depthwise_by_columns(target: str) -> None:
    cases = columns_cases(TARGETS[target])
    assert len(cases) == 2 * 3 * len(COLUMNS_SHAPES)
    assert {rectified(case.op) for case in cases} == {False, True}


#: kernels of four pixels times two channels, with 1 to 9 pixels a row: depths below sixteen, of it, of one to four and more
#: of it, with a rest; strides; one to five taps a kernel row of one or two blocks of channels; pieces of 3 to 16 bytes,
#: overlapping ones, numbers of them that are no multiple of three; padding on all sides, on none, beyond the last pixel
MVE_4X2_SHAPES = tuple(
    Shape("CONV_2D", height, width, channels, out_channels, kernel, stride, (dilation, 1), padding)
    for height, width, channels, out_channels, kernel, stride, dilation, padding in (
        (1, 3, 5, 2, (1, 1), (1, 1), 1, "SAME"), (2, 5, 16, 4, (1, 1), (1, 1), 1, "SAME"), (1, 9, 32, 6, (1, 1), (1, 1), 1, "SAME"),
        (2, 4, 64, 2, (1, 1), (1, 1), 1, "SAME"), (2, 3, 24, 4, (1, 1), (1, 1), 1, "SAME"), (1, 9, 80, 4, (1, 1), (1, 1), 1, "SAME"),
        (1, 6, 147, 4, (1, 1), (1, 1), 1, "SAME"), (1, 5, 20, 8, (1, 1), (1, 1), 1, "SAME"), (1, 6, 64, 16, (1, 1), (1, 1), 1, "SAME"), (5, 9, 8, 4, (1, 1), (2, 2), 1, "SAME"), (3, 9, 48, 2, (1, 1), (1, 3), 1, "SAME"),
        (4, 16, 16, 4, (3, 3), (1, 1), 1, "SAME"), (3, 7, 32, 2, (3, 3), (1, 1), 1, "SAME"), (5, 13, 16, 2, (2, 5), (2, 1), 2, "SAME"),
        (3, 10, 16, 4, (1, 4), (1, 1), 1, "VALID"), (2, 2, 16, 4, (3, 3), (1, 1), 1, (1, 1, 2, 2)),
        (5, 17, 3, 4, (3, 3), (2, 2), 1, "SAME"), (4, 9, 1, 2, (5, 3), (1, 1), 1, "SAME"), (5, 9, 4, 2, (2, 5), (1, 1), 2, "SAME"),
        (5, 19, 16, 4, (3, 3), (2, 2), 1, "SAME"), (3, 6, 8, 2, (2, 2), (1, 1), 1, (0, 0, 3, 0)), (4, 12, 3, 2, (2, 2), (1, 2), 1, "VALID"),
    )
)  # fmt: skip
MVE_4X2_KERNELS = (
    MvePointwise4x2(),
    MvePointwise4x2Row(),
    MveStridedPointwise4x2Row(),
    MveColumnsConv4x2Row(),
    MveChunksConv4x2Row(),
)


def four_cases(target: Target) -> list[Case]:
    """Layers in both forms, whole and from rings."""
    rng = np.random.default_rng(7)
    context = context_of(target, kernels="tinyfuse", optimize="speed")
    cases: list[Case] = []
    for shape in MVE_4X2_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            plain = make_op(replace(shape, activation=activation), rng)
            output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
            op = replace(plain, outputs=(output,))
            for kernel in MVE_4X2_KERNELS:
                if kernel.accepts(op, context):
                    ring, extreme = (bool(rng.random() < 0.5) for _ in range(2))
                    data = random_input(op, rng, extreme)
                    cases.append(case_of(op, kernel, data, ring, int(rng.integers(0, 4))))
                    if 0 in covered_inputs(op, kernel, not kernel.whole):
                        cases.append(case_of(op, kernel, data, over=True))
    return cases


@pytest.mark.parametrize("target", ("host-twins", "cortex-m55"))
def test_cases_of_four_pixels_times_two_channels(target: str) -> None:
    cases = four_cases(TARGETS[target])
    assert len({case.op for case in cases}) == 3 * len(MVE_4X2_SHAPES)
    context = Context(TARGETS[target])
    paths = {(case.kernel.name, case.kernel.path(case.op, True, context), requantized(case.op)) for case in cases}
    assert len(paths) == 3 * (3 + 3 + 1 + 1) - 3  # no strided one is of the sort that is one iteration


def dsp_cases(target: Target) -> list[Case]:
    """Cases of all kernels with DSP instructions that only some options choose."""
    unpacked = [*few_channels_cases(target), *unpacked_cases(target), *stationary_cases(target)]
    return [
        *chosen(unpacked, target, weights="unpacked"),
        *chosen([*winograd_cases(target), *winograd_1d_cases(target)], target, weights="winograd"),
        *chosen(depthwise_1d_cases(target), target, optimize="speed", weights="unpacked"),
        *chosen(tile_4x2_cases(target), target, optimize="speed"),
        *chosen(five_outputs_cases(target), target, **COUNTED),
    ]


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4"))
def test_dsp_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    assert_exact(dsp_cases(TARGETS[target]), TARGETS[target], tmp_path)


@pytest.mark.parametrize("target", ("host-twins", "cortex-m55"))
def test_helium_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    core = TARGETS[target]
    cases = [*columns_cases(core), *chosen(four_cases(core), core, optimize="speed")]
    assert_exact(cases, core, tmp_path)


#: flags that take registers from assembly, or move what its operands lie in
_HARDEST = ("gcc", "-O3 -fno-omit-frame-pointer -ffixed-r9 -fPIC")
_OTHERS = (("gcc", "-O0"), ("clang", "-O3"))
_MORE = (("gcc", "-O2 -fno-omit-frame-pointer -ffixed-r9 -fPIC"), ("gcc", "-O3"), ("gcc", "-Os"), ("clang", "-O0"))
HARD_FLAGS = (_HARDEST, *_OTHERS, *(pytest.param(*words, marks=pytest.mark.campaign) for words in _MORE))


def skip_without(compiler: str) -> None:
    if any(shutil.which(tool) is None for tool in (compiler, "arm-none-eabi-gcc", "qemu-system-arm")):
        pytest.skip(f"needs {compiler}, arm-none-eabi-gcc and qemu-system-arm")


def few(cases: list[Case], flags: str, config: pytest.Config) -> list[Case]:
    """Picks two cases of each kernel and way of calling, with and without single rounding, if flags are -O0, else one:
    an optimized call takes a tenth of a second to compile, twice as long. test_kernels runs all cases with kernels as
    functions; --campaign runs all of them here too."""
    if config.getoption("--campaign"):
        return cases
    alike: dict[tuple, list[Case]] = {}
    for case in cases:
        form = single_rounding(case.op) is not None
        alike.setdefault((case.kernel.name, form, case.how, case.over), []).append(case)
    return [
        case
        for found in alike.values()
        for case in (pick_evenly(found, 2) if flags == "-O0" else [found[len(found) // 2]])
    ]


@pytest.mark.parametrize(("compiler", "flags"), HARD_FLAGS)
def test_assembly_is_exact_with_any_flags(
    compiler: str, flags: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """At -O0 the program contains every form of every block, used or not."""
    skip_without(compiler)

    core = TARGETS["cortex-m4"]
    cases = [case for kind in FAMILIES for case in form_cases(kind, core)]
    if flags == "-O0":
        of_ram = [case for kind in FAMILIES for case in form_cases(kind, core, optimize="ram")]
        cases += chosen(of_ram, core, optimize="ram")
    cases = few(cases, flags, pytestconfig) + few(dsp_cases(core), flags, pytestconfig)
    assert_exact(cases, core, tmp_path, flags, compiler)


def _by_kind() -> Iterator:
    """(kind of layer, flags): each kind with the hardest flags, and other flags in rotation."""
    for turn, kind in enumerate(FAMILIES):
        chosen = (_HARDEST, _OTHERS[turn % len(_OTHERS)])
        for words in (_HARDEST, *_OTHERS, *_MORE):
            yield pytest.param(kind, *words, marks=[] if words in chosen else [pytest.mark.campaign])


@pytest.mark.parametrize(("kind", "compiler", "flags"), [*_by_kind()])
def test_helium_is_exact_with_any_flags(
    kind: str, compiler: str, flags: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Tests assembly and intrinsics, and the DSP forms, which a Helium core has too."""
    skip_without(compiler)
    target = TARGETS["cortex-m55"]
    more = {"DEPTHWISE_CONV_2D": columns_cases}.get(kind)
    cases = few(form_cases(kind, target) + (more(target) if more else []), flags, pytestconfig)
    most = 24 if flags == "-O0" else 60  # without optimization, more exceed the flash
    for first in range(0, len(cases), most):
        assert_exact(cases[first : first + most], target, tmp_path, flags, compiler)


# --- weights of int4 ---------------------------------------------------------------------------

#: every block of pixels, every rest of channels and of inputs, and windows that leave the image
INT4_SHAPES = (
    Shape("CONV_2D", 2, 7, 12, 7), Shape("CONV_2D", 2, 5, 8, 20), Shape("CONV_2D", 3, 1, 20, 9),
    Shape("CONV_2D", 2, 6, 28, 2), Shape("CONV_2D", 1, 3, 16, 1), Shape("CONV_2D", 5, 7, 4, 6, (3, 3)),
    Shape("CONV_2D", 3, 7, 3, 5, (3, 3)), Shape("CONV_2D", 5, 6, 8, 5, (2, 3), (2, 1)),
    Shape("CONV_2D", 6, 9, 8, 6, (2, 3), (1, 2), (2, 2)), Shape("CONV_2D", 4, 4, 7, 4, (3, 4)),
    Shape("CONV_2D", 1, 3, 33, 11), Shape("FULLY_CONNECTED", 1, 1, 8, 4), Shape("FULLY_CONNECTED", 1, 1, 1, 1),
    Shape("FULLY_CONNECTED", 3, 1, 28, 70), Shape("FULLY_CONNECTED", 2, 1, 37, 5),
)  # fmt: skip


def int4_cases(target: Target, **choices: str) -> list[Case]:
    """Layers of each form with the int4 kernels, extreme inputs too."""
    rng = np.random.default_rng(3)
    context = context_of(target, kernels="tinyfuse", **choices)
    cases: list[Case] = []
    for shape in map(of_int4, INT4_SHAPES):
        plain = make_op(shape, rng)
        for zero_point in (-128, 3):
            output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
            op = replace(plain, outputs=(output,))
            for kernel in kernels_for(op):
                if kernel.library != "tinyfuse" or not kernel.int4_weights or not kernel.accepts(op, context):
                    continue
                for extreme in (False, True):
                    data = random_input(op, rng, extreme)
                    over = 0 in covered_inputs(op, kernel, not kernel.whole)
                    ring = takes_rings(kernel, op) and extreme
                    cases += [case_of(op, kernel, data, over=True)] * over
                    cases.append(case_of(op, kernel, data, ring, int(extreme)))
    return cases


@pytest.mark.parametrize("target", ("host-dsp-twins", "cortex-m4", "host-twins", "cortex-m55"))
def test_int4_kernels(target: str, tmp_path: Path) -> None:
    """Plainly and for the least RAM."""
    skip_without_tools(target)
    core, all_cases = TARGETS[target], []
    for choices in ({}, {"optimize": "ram"}):
        cases = int4_cases(core, **choices)
        mve, names = "mve_" if core.mve else "", {case.kernel.name for case in cases}
        others = {"tinyfuse_dense_s4"} if not mve and not choices else set()
        assert names == {f"tinyfuse_pointwise_{mve}s4", f"tinyfuse_conv_{mve}row_s4"} | others
        assert {int4_layer(case.op).form for case in cases if case.op.kind == "CONV_2D"} == {
            INT4_SINGLE_ROUNDING,
            INT4_WIDE,
        }
        all_cases += chosen(cases, core, **choices)
    assert_exact(all_cases, core, tmp_path)


def test_sums_that_leave_their_4096ths_are_computed_from_bytes() -> None:
    op = make_op(of_int4(Shape("CONV_2D", 1, 1, 600, 4)), np.random.default_rng(1))
    assert int4_layer(op) is not None
    weights = replace(op.inputs[1], data=np.full(op.inputs[1].shape, -8, np.int8))
    assert int4_layer(replace(op, inputs=(op.input, weights, *op.inputs[2:]))) is None
