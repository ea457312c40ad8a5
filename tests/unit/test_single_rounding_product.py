"""int8 MUL with single rounding: found if it exists, and only if all 65,536 results agree."""

from __future__ import annotations

import numpy as np
from cases.common import broken_rules, operator, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyfuse.ir import Op
from tinyfuse.kernels.elementwise.single_rounding import fit_product
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary, FloatBinary
from tinyfuse.ops.core.convolution import clamp_range

VALUES = np.arange(-128, 128, dtype=np.int8)


def multiply(scales, zero_points, activation: str = "NONE", offset: int = 0) -> Op:
    """A product of tensors a and b with these scales and zero points, and those of the output."""
    a, b, out = (tensor((256, 256), scale, zero) for scale, zero in zip(scales, zero_points, strict=True))
    return operator("MUL", [a, b], out, FloatBinary(activation, offset=offset))


def results_on_the_line(op: Op) -> np.ndarray:
    """Results [a, b] as the C computes them, in int32 that must not overflow."""
    found, (low, high) = fit_product(op), clamp_range(op)
    (x, y), values = op.operands, VALUES.astype(np.int64)
    product = (values[:, None] - x.zero_point) * (values - y.zero_point)
    assert 0 < found.multiplier < 2**29 and np.abs(product).max() * 32768 < 2**31
    upper, lower = product * (found.multiplier >> 15), product * (found.multiplier & 0x7FFF)
    floor = product * 32768 * (4 * found.multiplier) >> 32
    np.testing.assert_array_equal(upper + (lower >> 15), floor)
    for part in (upper, lower, floor, floor + found.offset):
        assert np.abs(part).max() < 2**31
    return np.clip(floor + found.offset >> found.shift, low, high)


def assert_exact(op: Op) -> None:
    a, b = np.meshgrid(VALUES, VALUES, indexing="ij")
    np.testing.assert_array_equal(FAMILIES[op.kind].reference(op, a, b)[0], results_on_the_line(op))


def test_scales_of_squeeze_and_excitation_have_a_line() -> None:
    """Drawn as quantizers find them: of 40 such products most have one."""
    rng, found = np.random.default_rng(5), 0
    for number in range(40):
        zero_points = (int(rng.choice([-128, rng.integers(-128, 128)])), -128, int(rng.integers(-128, 128)))
        op = multiply((rng.uniform(0.01, 0.2), 1 / 255, rng.uniform(0.01, 0.2)), zero_points, offset=128 * (number % 2))
        if fit_product(op) is not None:
            assert_exact(op)
            found += 1
    assert found >= 32


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_whatever_is_found_is_exact(data) -> None:
    scales = [2.0 ** data.draw(st.floats(-20, 12)) for _ in range(3)]
    zero_points = [data.draw(st.integers(-128, 127)) for _ in range(3)]
    op = multiply(
        scales, zero_points, data.draw(st.sampled_from(["NONE", "RELU", "RELU6"])), data.draw(st.sampled_from([0, 128]))
    )
    if not broken_rules(op) and fit_product(op) is not None:
        assert_exact(op)


def test_ties_that_round_both_ways_have_none() -> None:
    """Products of a quarter: 0.5 becomes 0, 1.5 becomes 2, 2.5 becomes 2."""
    assert fit_product(multiply((0.5, 0.5, 1.0), (0, 0, 0))) is None


def test_other_arithmetic_has_none() -> None:
    a, b, out = (tensor((8, 8), scale, -128) for scale in (0.05, 1 / 255, 0.04))
    assert fit_product(operator("MUL", [a, b], out, Binary("NONE"))) is None
