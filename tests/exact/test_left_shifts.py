"""Convolutions and dense layers whose channels' multipliers are far apart, from 1e-4 to 50: channels that shift to the
left beside those that shift to the right (runtime_c/tinyfuse_requantize.h), on the host under sanitizers and on emulated
cores, in every kernel that has the form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contexts import context_of
from conv_cases import Shape, make_op, random_input, with_multipliers
from op_harness import Case, assert_exact, assert_some_exact
from test_conv_kernels import HARD_FLAGS, skip_without, skip_without_tools
from test_per_channel_shifts import TARGETS

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.two_roundings import bounded, shifted
from tinyfuse.ops.core.convolution import channel_multipliers, clamp_range
from tinyfuse.targets import Target

#: odd and even counts of channels, of inputs and of pixels; whole words and not; of one pixel
SHAPES = (
    Shape("FULLY_CONNECTED", 1, 1, 32, 16), Shape("FULLY_CONNECTED", 3, 1, 16, 7), Shape("FULLY_CONNECTED", 2, 1, 13, 5),
    Shape("CONV_2D", 4, 5, 8, 6), Shape("CONV_2D", 3, 3, 12, 5), Shape("CONV_2D", 4, 1, 8, 7),
    Shape("CONV_2D", 5, 6, 4, 6, (3, 3)), Shape("CONV_2D", 5, 5, 3, 7, (3, 3), (2, 2)),
    Shape("CONV_2D", 4, 7, 5, 4, (2, 3), padding="VALID"),
    Shape("DEPTHWISE_CONV_2D", 5, 6, 8, 8, (3, 3)), Shape("DEPTHWISE_CONV_2D", 6, 5, 7, 7, (3, 3), (2, 2)),
    Shape("DEPTHWISE_CONV_2D", 5, 4, 5, 5, (2, 3)),
)  # fmt: skip

#: what computes them in that form
KERNELS = {
    "tinyfuse_dense_s8", "tinyfuse_dense_wide_s8", "tinyfuse_pointwise_s8", "tinyfuse_conv_packed_row_s8",
    "tinyfuse_depthwise_packed_row_s8", "tinyfuse_depthwise_3x3_row_s8",
}  # fmt: skip


def drawn_multipliers(channels: int, rng: np.random.Generator) -> np.ndarray:
    """Multipliers from 1e-4 to 50: one of at least 1/2, a smaller one, and some next to powers of two."""
    found = 10.0 ** rng.uniform(-4, np.log10(50), channels)
    found[:2] = rng.choice([0.5, 0.8, 1.0, 2.5, 50.0]), rng.choice([1e-4, 0.01, 0.3])
    near = rng.random(channels) < 0.3
    return np.where(near, 2.0 ** np.rint(np.log2(found)) * (1 + rng.choice([-1e-6, 0, 1e-6], channels)), found)


def layers() -> list[Op]:
    """Layers with outputs on both sides of their zero point, over the full int8 range or clamped. Every second layer
    has a constant channel."""
    rng = np.random.default_rng(41)
    found = []
    for shape in SHAPES:
        for number, (activation, zero_point) in enumerate((("NONE", 3), ("RELU6", -20), ("RELU", -128), ("NONE", 127))):
            op = make_op(replace(shape, activation=activation), rng)
            op = with_multipliers(op, drawn_multipliers(shape.out_channels, rng), zero_point)
            bias = op.operand(2).values.copy()
            if number % 2:
                bias[2] = 2**24
            found.append(replace(op, inputs=(*op.inputs[:2], replace(op.operand(2), data=bias))))
    return found


def cases_of(target: Target) -> list[Case]:
    """Each layer with every kernel that computes this form: whole, by rows or from rings."""
    rng = np.random.default_rng(42)
    cases: list[Case] = []
    for optimize in ("speed", "ram"):
        context = context_of(target, kernels="tinyfuse", optimize=optimize)
        for op, kernel in [(each, kernel) for each in layers() for kernel in kernels_for(each)]:
            ours = kernel.name in KERNELS and kernel.accepts(op, context)
            if ours and "shifted" in kernel.path(op, True, context):
                data = random_input(op, rng, extreme=bool(rng.random() < 0.5))
                how = "whole" if kernel.whole else "rings" if rng.random() < 0.3 else "rows"
                cases.append(Case(op, kernel, [data], how, None, int(rng.integers(0, 4)), context))
    return cases


def test_every_accumulator_has_its_output() -> None:
    for op in layers():
        layer = shifted(op)
        assert layer is not None and bounded(op) is None
        facts = layer_facts(op)
        least, most = facts.least, facts.most
        multipliers, shifts = channel_multipliers(op)
        for channel in range(len(least)):
            ends = max(least[channel], -(2**23)), min(most[channel], 2**23 - 1)
            accumulators = np.unique(np.linspace(*ends, 5000).astype(np.int64).tolist() + list(range(-900, 900)))
            accumulators = accumulators[(least[channel] <= accumulators) & (accumulators <= most[channel])]
            scaled = multiply_by_quantized_multiplier(accumulators, multipliers[channel], shifts[channel])
            wanted = np.clip(scaled + op.output.zero_point, *clamp_range(op))
            packed = layer.channels[channel]
            if not layer.weights[channel].any():
                accumulators = np.full_like(accumulators, packed["bias"])
            left, right = int(packed["shift"]) >> 8, int(packed["shift"]) & 0xFF
            product = (accumulators << left) * int(packed["multiplier"]) + 2**30 >> 31
            value = 2 * product + (product >> 31) + ((2 * op.output.zero_point + 1) << right)
            assert not value.size or np.abs(value).max() < 2**31
            found = np.clip(np.clip(value >> right >> 1, -128, 127), *clamp_range(op))
            np.testing.assert_array_equal(found, wanted)


def test_sums_that_leave_lanes_have_no_such_form() -> None:
    multipliers = np.full(16, 0.8)
    multipliers[3] = 4e-6
    op = with_multipliers(make_op(SHAPES[0], np.random.default_rng(1)), multipliers, -128)
    assert shifted(op) is not None
    bias = op.operand(2).values.copy()
    bias[3] = 2**24
    assert shifted(replace(op, inputs=(*op.inputs[:2], replace(op.operand(2), data=bias)))) is None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
def test_one_large_multiplier_keeps_no_layer_from_its_kernel(target: str, shape: Shape) -> None:
    """The general kernel alone accepted it, at six times the instructions of large layers. Sums of both signs leave a
    depthwise layer no single rounding."""
    multipliers = np.random.default_rng(1).uniform(0.002, 0.01, shape.out_channels)
    multipliers[3] = 0.8
    op = with_multipliers(make_op(shape, np.random.default_rng(1)), multipliers, 3)
    context = Context(TARGETS[target], kernels="tinyfuse")
    assert any(kernel.accepts(op, context) for kernel in kernels_for(op) if kernel.name in KERNELS)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    cases = cases_of(TARGETS[target])
    assert {case.kernel.name for case in cases} == KERNELS
    assert_exact(cases, TARGETS[target], tmp_path)


@pytest.mark.parametrize(("compiler", "flags"), HARD_FLAGS)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
def test_assembly_is_exact_with_any_flags(target: str, compiler: str, flags: str, tmp_path: Path) -> None:
    skip_without(compiler)
    assert_some_exact(cases_of(TARGETS[target]), TARGETS[target], tmp_path, flags, compiler)
