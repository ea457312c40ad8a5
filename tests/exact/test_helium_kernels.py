"""Helium kernels whose loops need special shapes: their C twins on the host under sanitizers, and the assembly on an
emulated core."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contexts import context_of
from conv_cases import Shape, make_op, random_input, with_multipliers
from op_harness import Case, assert_exact, cases_of

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveDense
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import WeightStationaryConvRow
from tinyfuse.kernels.layers.int8_helium.depthwise_1d import Depthwise1D
from tinyfuse.kernels.layers.int8_helium.vector_requantization import by_shifts, requantized, share_of_floats
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import single_rounding_by_channel
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, channel_multipliers, clamp_range
from tinyfuse.targets import load_target

TARGETS = {"host-twins": replace(load_target("host"), dsp=True, mve=True), "cortex-m55": load_target("cortex-m55")}


def skip_without_tools(target: str) -> None:
    tool = "gcc" if target.startswith("host") else "qemu-system-arm"
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")


def with_zero_point(op: Op, zero_point: int) -> Op:
    quant = replace(op.output.quant, zero_point=(zero_point,))
    return replace(op, outputs=(replace(op.output, quant=quant),))


#: depths with and without a rest, of none to nine blocks of sixteen, four of which are an iteration; one to three batches;
#: outputs that are and aren't a multiple of eight, an odd number of fours among them
ONE_SCALE_SHAPES = tuple(
    Shape("FULLY_CONNECTED", 1, 1, depth, outputs, per_channel=False)
    for depth, outputs in (
        (8, 64), (16, 72), (48, 64), (64, 71), (70, 80), (80, 67), (147, 96),
    )
)  # fmt: skip


def one_scale_cases() -> list[Case]:
    rng, kernel, cases = np.random.default_rng(11), MveDense(), []
    for shape in ONE_SCALE_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            op = with_zero_point(make_op(replace(shape, activation=activation), rng), zero_point)
            cases.append(Case(op, kernel, [random_input(op, rng, zero_point == 3)], "whole", None, 1))
    return cases


@pytest.mark.parametrize("target", TARGETS)
def test_dense_layers_of_one_scale(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    cases, context = one_scale_cases(), Context(TARGETS[target])
    assert [case.kernel.path(case.op, False, context) for case in cases].count("one scale") == 3 * 6
    assert_exact(cases, TARGETS[target], tmp_path)


#: shapes that reach each branch of a kernel: odd and even numbers of batches and pixels, depths that are a multiple of
#: 16 or not, channels that are a multiple of 4, 8 and 16 or not
LAYER_SHAPES = {
    "tinyfuse_pointwise_2x4_mve_s8": (
        Shape("FULLY_CONNECTED", 1, 1, 40, 16), Shape("FULLY_CONNECTED", 3, 1, 16, 70),
        Shape("CONV_2D", 3, 3, 21, 6, (1, 1)),
        # of one scale, which may not be shared
        Shape("FULLY_CONNECTED", 2, 1, 24, 64, per_channel=False),
    ),
    "tinyfuse_dense_one_vector_mve_s8": (Shape("FULLY_CONNECTED", 1, 1, 20, 3), Shape("FULLY_CONNECTED", 1, 1, 33, 13)),
    "tinyfuse_conv_2x4_mve_row_s8": (
        Shape("CONV_2D", 4, 5, 3, 8, (3, 3)), Shape("CONV_2D", 5, 4, 16, 5, (2, 3), (1, 1), (2, 1)),
    ),
    "tinyfuse_depthwise_mve_row_s8": (
        Shape("DEPTHWISE_CONV_2D", 4, 5, 7, 7, (3, 3)), Shape("DEPTHWISE_CONV_2D", 3, 4, 43, 43, (2, 3)),
    ),
    "tinyfuse_depthwise_interleaved_mve_row_s8": (
        Shape("DEPTHWISE_CONV_2D", 3, 19, 7, 7, (3, 3)),
        Shape("DEPTHWISE_CONV_2D", 4, 5, 21, 21, (2, 3), (1, 2)),
    ),
    # of each loop of the C: few inputs, whole blocks of them, a rest, one pixel by eight channels
    "tinyfuse_pointwise_4x2_mve_s8": tuple(
        Shape("CONV_2D", height, width, depth, channels)
        for height, width, depth, channels in ((3, 3, 13, 6), (1, 5, 64, 4), (2, 4, 80, 6), (3, 3, 37, 8), (1, 1, 40, 16))
    ),
    "tinyfuse_pointwise_4x2_strided_mve_row_s8": (Shape("CONV_2D", 5, 9, 20, 6, stride=(2, 2)),),
    "tinyfuse_conv_4x2_columns_mve_row_s8": (Shape("CONV_2D", 4, 6, 16, 4, (3, 3)),),
    "tinyfuse_conv_4x2_chunks_mve_row_s8": (Shape("CONV_2D", 5, 6, 3, 8, (3, 3), (2, 2)),),
}  # fmt: skip
#: kernels with a variant for left shifts
SHIFTING = tuple(name for name in LAYER_SHAPES if "4x2" not in name)


def shifted_cases(name: str, context: Context) -> list[Case]:
    """Layers some of whose channels shift left, as far as that wraps, every one in all ways of that kernel."""
    rng, cases = np.random.default_rng(12), []
    for shape in LAYER_SHAPES[name]:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            count = shape.out_channels if shape.per_channel else 1
            ratios = rng.choice([0.003, 0.06, 0.7, 1.0, 1.9, 60.0, 3.0e7], count)
            ratios[-1] = 2.5
            op = with_multipliers(make_op(replace(shape, activation=activation), rng), ratios, zero_point)
            inputs = [random_input(op, rng, zero_point == 3)]
            found = [case for case in cases_of(op, context, inputs) if case.kernel.name == name]
            assert found, f"{name} does not accept {shape}"
            cases += found
    return cases


@pytest.mark.parametrize("name", SHIFTING)
@pytest.mark.parametrize("target", TARGETS)
def test_channels_that_shift_left(target: str, name: str, tmp_path: Path) -> None:
    """Regression: one such channel moved a whole layer to a kernel without Helium."""
    skip_without_tools(target)
    context = context_of(TARGETS[target], optimize="speed")
    cases = shifted_cases(name, context)
    assert all(case.kernel.path(case.op, True, context).startswith("shifted") for case in cases)
    assert_exact(cases, TARGETS[target], tmp_path, optimize="speed")


#: kernels with forms of a single rounding
ROUNDED_ONCE = tuple(name for name in LAYER_SHAPES if "4x2" in name or "interleaved" in name)


def rounding_half_even(op: Op) -> Op:
    return replace(op, attributes=replace(op.attributes, rounding=FLOAT_HALF_EVEN))


def cases_with_single_rounding(name: str, context: Context) -> list[Case]:
    """Layers of both rules, and of every clamp, in all ways of that kernel; half to even also one that has channels of
    both sorts."""
    rng, cases = np.random.default_rng(14), []
    together = 1 if "depthwise" in name else 2
    for shape in LAYER_SHAPES[name]:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            drawn = [
                with_zero_point(make_op(replace(shape, activation=activation), rng), zero_point) for _ in range(40)
            ]
            even = [rounding_half_even(op) for op in drawn]
            mixed = [op for op in even if 0 < share_of_floats(op, together) < 1]
            for op in (drawn[0], even[0], *mixed[:1]):
                inputs = [random_input(op, rng, zero_point == 0)]
                cases += [case for case in cases_of(op, context, inputs) if case.kernel.name == name]
    return cases


@pytest.mark.parametrize("name", ROUNDED_ONCE)
@pytest.mark.parametrize("target", TARGETS)
def test_channels_of_a_single_rounding(target: str, name: str, tmp_path: Path) -> None:
    """Where all channels have a single rounding, layers of both rules take its form; where some have none, those alone
    are multiplied in float32."""
    skip_without_tools(target)
    with_fpu = replace(TARGETS[target], fpu=True)
    context = context_of(with_fpu, optimize="speed")
    cases = cases_with_single_rounding(name, context)
    assert {"single_rounding", "single_rounding_saturated", "half_even_saturated"} <= {
        requantized(case.op) for case in cases
    }
    assert_exact(cases, with_fpu, tmp_path, optimize="speed")


def test_biases_of_a_single_rounding_may_include_the_zero_point() -> None:
    rng = np.random.default_rng(15)
    for seed in range(6):
        shape = Shape("CONV_2D", 4, 4, 40, 24, activation="RELU" if seed % 2 else "NONE")
        op = with_zero_point(make_op(shape, rng), (-128, 3, -17)[seed % 3])
        found = single_rounding_by_channel(op, zero_point=True)
        assert found is not None
        line, there = found
        facts = layer_facts(op)
        least, most = facts.least, facts.most
        sums = np.linspace(least, most, 5000).astype(np.int64)[:, there]
        # `sums` have their bias
        products = (256 * sums + (line.bias - 256 * facts.bias)[there]) * line.multiplier.astype(np.int64)[there]
        got = np.clip(((products >> 31) + (1 << 11)) >> 12, *clamp_range(op))
        multipliers, shifts = (each[there] for each in channel_multipliers(op))
        wanted = multiply_by_quantized_multiplier(sums, multipliers, shifts) + op.output.zero_point
        np.testing.assert_array_equal(got, np.clip(wanted, *clamp_range(op)))


#: rows of four pixels and more, with every rest by six and by four; blocks of channels that are whole, cut, several;
#: windows of one to three kernel rows and two or three columns; padding on any side, or none
STATIONARY_SHAPES = tuple(
    Shape("CONV_2D", height, width, channels, out_channels, kernel, stride, dilation, padding)
    for height, width, channels, out_channels, kernel, stride, dilation, padding in (
        (4, 32, 16, 4, (3, 3), (1, 1), (1, 1), "SAME"), (3, 4, 16, 2, (3, 3), (1, 1), (1, 1), "SAME"),
        (3, 5, 32, 4, (3, 3), (1, 1), (1, 1), "SAME"), (5, 6, 16, 2, (2, 2), (1, 1), (1, 1), "SAME"),
        (3, 7, 40, 6, (1, 3), (1, 1), (1, 1), "SAME"), (5, 10, 5, 4, (3, 3), (2, 1), (1, 1), "VALID"),
        (7, 9, 48, 2, (3, 2), (1, 1), (2, 1), "SAME"), (3, 11, 12, 8, (3, 3), (1, 1), (1, 1), (1, 1, 2, 2)),
        (2, 8, 64, 2, (3, 3), (1, 1), (1, 1), "SAME"), (2, 3, 16, 2, (2, 3), (1, 1), (1, 1), (0, 0, 4, 5)),
    )
)  # fmt: skip


def stationary_cases(target: str) -> list[Case]:
    """Layers by rows, randomly from rings or whole inputs."""
    rng, context, kernel = (
        np.random.default_rng(12),
        context_of(TARGETS[target], optimize="speed"),
        WeightStationaryConvRow(),
    )
    cases = []
    for shape in STATIONARY_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            extreme, ring = (bool(rng.random() < 0.5) for _ in range(2))
            op = with_zero_point(make_op(replace(shape, activation=activation), rng), zero_point)
            assert kernel.accepts(op, context)
            data = random_input(op, rng, extreme)
            cases.append(Case(op, kernel, [data], "rings" if ring else "rows", None, int(rng.integers(0, 4))))
    return cases


@pytest.mark.parametrize("target", TARGETS)
def test_weights_in_registers(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    cases = stationary_cases(target)
    assert {by_shifts(case.op) for case in cases} == {"rectified", "saturated", "each"}
    assert_exact(cases, TARGETS[target], tmp_path, optimize="speed")


#: outputs by eight with every rest by four, windows of two to thirteen rows, channels that leave a rest, padding on no
#: side, on one, on both, more than there are rows
LINE_SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", height, 1, channels, channels, (rows, 1), padding=padding)
    for height, channels, rows, padding in (
        (30, 40, 3, "VALID"), (28, 128, 5, "VALID"), (24, 17, 10, "VALID"), (16, 16, 9, "SAME"), (5, 3, 13, "SAME"),
        (2, 33, 2, "SAME"), (9, 16, 4, (5, 0, 0, 0)), (7, 20, 12, (0, 12, 0, 0)), (3, 5, 3, "VALID"),
    )
)  # fmt: skip


def line_cases(target: str) -> list[Case]:
    rng, context, kernel = np.random.default_rng(13), context_of(TARGETS[target], optimize="speed"), Depthwise1D()
    cases = []
    for shape in LINE_SHAPES:
        for activation, zero_point in (("RELU", -128), ("NONE", 3), ("RELU_N1_TO_1", 0)):
            op = with_zero_point(make_op(replace(shape, activation=activation), rng), zero_point)
            if kernel.accepts(op, context):
                cases.append(Case(op, kernel, [random_input(op, rng, zero_point == 3)], "whole", None, 1))
    return cases


@pytest.mark.parametrize("target", TARGETS)
def test_depthwise_along_a_line(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    cases = line_cases(target)
    assert len(cases) == 3 * (len(LINE_SHAPES) - 1)  # one row of outputs isn't a line
    assert {by_shifts(case.op) for case in cases} == {"rectified", "saturated", "each"}
    assert_exact(cases, TARGETS[target], tmp_path, optimize="speed")


#: flags that take registers from assembly, another compiler, and no optimization, which leaves each form there
FLAGS = (
    ("gcc", "-O3 -fno-omit-frame-pointer -ffixed-r9 -fPIC"), ("clang", "-O3"),
    pytest.param("gcc", "-O0", marks=pytest.mark.campaign), pytest.param("clang", "-O0", marks=pytest.mark.campaign),
)  # fmt: skip


@pytest.mark.parametrize(("compiler", "flags"), FLAGS)
def test_any_flags(compiler: str, flags: str, tmp_path: Path) -> None:
    skip_without_tools("cortex-m55")
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    context = context_of(TARGETS["cortex-m55"], optimize="speed")
    cases = [case for name in SHIFTING for case in shifted_cases(name, context)[::5]]
    cases += [case for name in ROUNDED_ONCE for case in cases_with_single_rounding(name, context)[::5]]
    cases += one_scale_cases()[::3] + stationary_cases("cortex-m55")[::2] + line_cases("cortex-m55")[::2]
    assert_exact(cases, TARGETS["cortex-m55"], tmp_path, flags, compiler, optimize="speed")
