"""Depthwise convolutions with multipliers from 1e-4 to 4: single rounding with per-channel shifts
(tinyfuse/kernels/requantize/single_rounding.py) in every kernel, on the host under sanitizers and on emulated cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contexts import context_of
from conv_cases import Shape, make_op, of_int4, random_input, with_multipliers
from op_harness import Case, assert_exact, assert_some_exact
from test_conv_kernels import HARD_FLAGS, skip_without, skip_without_tools

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import any_single_rounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import channel_multipliers, clamp_range
from tinyfuse.schedule.kernel_choice.select import kernel_for
from tinyfuse.targets import Target, load_target

TARGETS = {name: load_target(name) for name in ("host", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")}
TARGETS["host-dsp-twins"] = replace(TARGETS["host"], dsp=True)

#: both strides, odd and even counts of outputs, groups of channels that overlap, padding of each sort; windows that are
#: no 3x3, along a line or not
SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", height, width, channels, channels, kernel, stride, (1, 1), padding)
    for height, width, channels, kernel, stride, padding in (
        (5, 5, 8, (3, 3), (1, 1), "SAME"), (4, 8, 15, (3, 3), (1, 1), "SAME"), (5, 9, 7, (3, 3), (2, 2), "SAME"),
        (4, 8, 12, (3, 3), (2, 2), (0, 1, 0, 1)), (6, 3, 9, (5, 2), (1, 1), "SAME"),
        (9, 2, 12, (4, 1), (1, 1), "VALID"), (3, 6, 8, (1, 3), (1, 1), "SAME"), (7, 7, 4, (2, 2), (3, 1), "SAME"),
    )
)  # fmt: skip


def drawn_multipliers(channels: int, rng: np.random.Generator) -> np.ndarray:
    """Multipliers from 1e-4 to 4: one of at least 1/2, and some next to powers of two."""
    found = 10.0 ** rng.uniform(-4, np.log10(4), channels)
    found[rng.integers(channels)] = rng.choice([0.5, 0.8, 1.0, 2.5, 4.0])
    near = rng.random(channels) < 0.3
    return np.where(near, 2.0 ** np.rint(np.log2(found)) * (1 + rng.choice([-1e-6, 0, 1e-6], channels)), found)


def layers() -> list[Op]:
    """Layers with outputs on one or both sides of their zero point, over the full int8 range or clamped."""
    rng = np.random.default_rng(31)
    found = []
    for shape in (*SHAPES, *SHAPES, *map(of_int4, SHAPES[:2])):
        for activation, zero_point in (("NONE", -128), ("RELU6", -128), ("RELU", -90), ("NONE", 127)):
            plain = make_op(replace(shape, activation=activation), rng)
            found.append(with_multipliers(plain, drawn_multipliers(shape.channels, rng), zero_point))
    return found


def cases_of(target: Target) -> list[Case]:
    """Each layer with every kernel that computes it with single rounding: whole, by rows or from rings."""
    rng = np.random.default_rng(32)
    cases: list[Case] = []
    for weights, found in (("packed", layers()), ("unpacked", layers())):
        context = context_of(target, kernels="tinyfuse", weights=weights, optimize="speed")
        for op, kernel in [(each, kernel) for each in found for kernel in kernels_for(each)]:
            ours = kernel.library == "tinyfuse" and kernel.accepts(op, context)
            if ours and "own_shifts" in kernel.path(op, True, context):
                data = random_input(op, rng, extreme=bool(rng.random() < 0.5))
                how = "whole" if kernel.whole else "rings" if rng.random() < 0.3 else "rows"
                cases.append(Case(op, kernel, [data], how, None, int(rng.integers(0, 4)), context))
    return cases


def test_lines_of_own_shifts_give_every_accumulator_its_output() -> None:
    found = [(op, line) for op in layers() if (line := single_rounding(op, own_shifts=True)) is not None]
    assert len(found) == len(layers())
    assert not any(bounded(op) for op, _ in found), "one channel is beyond the bounded form"
    for op, line in found[::3]:
        facts = layer_facts(op)
        least, most = facts.least, facts.most
        multipliers, shifts = channel_multipliers(op)
        more = line.bias - 256 * facts.bias
        for channel in range(len(least)):
            accumulators = np.arange(least[channel], most[channel] + 1)
            scaled = multiply_by_quantized_multiplier(accumulators, multipliers[channel], shifts[channel])
            wanted = np.clip(scaled + op.output.zero_point, *clamp_range(op))
            sums = 256 * accumulators + more[channel]
            if not line.weights[channel].any():
                sums = np.full_like(sums, line.bias[channel])
            assert np.abs(sums).max() < 2**31
            outputs = np.clip((sums * int(line.multiplier[channel]) >> 32) >> line.shift[channel], -128, 127)
            np.testing.assert_array_equal(np.clip(outputs, *clamp_range(op)), wanted)


def test_layers_that_wrap_or_have_outputs_of_both_signs_have_no_line() -> None:
    """The one where it is shifted to the left, the others where halves go away from zero."""
    plain = make_op(SHAPES[0], np.random.default_rng(1))
    multipliers = np.full(8, 4.0)
    on_line = with_multipliers(plain, multipliers, -128)
    bias = np.full(8, 2**28, np.int32)
    wraps = replace(on_line, inputs=(*on_line.inputs[:2], replace(on_line.inputs[2], data=bias)))
    both_signs = with_multipliers(plain, np.linspace(0.1, 0.8, 8), 3)
    assert (
        any_single_rounding(on_line) is not None
        and any_single_rounding(wraps) is None
        and any_single_rounding(both_signs) is None
    )


def test_one_large_multiplier_keeps_no_layer_from_its_kernel() -> None:
    """Regression: the general kernel computed the layer, at thirteen instructions for each multiply-accumulate."""
    multipliers = np.full(8, 0.01)
    multipliers[3] = 0.8
    op = with_multipliers(make_op(SHAPES[0], np.random.default_rng(1)), multipliers, -128)
    for target in ("cortex-m0plus", "cortex-m4"):
        kernel, _ = kernel_for(op, Context(load_target(target), kernels="tinyfuse"), None)
        assert kernel.name != "tinyfuse_depthwise_row_s8"


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    core = TARGETS[target]
    cases = cases_of(core)
    sorts = {"3x3_row_s8", "packed_row_s8"}
    sorts |= {"weight_stationary_row_s8", "1d_s8"} if core.dsp and not core.mve else set()
    sorts |= set() if core.dsp else {"paired_row_s8"}
    assert {case.kernel.name for case in cases} == {f"tinyfuse_depthwise_{sort}" for sort in sorts}
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize(("compiler", "flags"), HARD_FLAGS)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
def test_assembly_is_exact_with_any_flags(target: str, compiler: str, flags: str, tmp_path: Path) -> None:
    skip_without(compiler)
    assert_some_exact(cases_of(TARGETS[target]), TARGETS[target], tmp_path, flags, compiler)
