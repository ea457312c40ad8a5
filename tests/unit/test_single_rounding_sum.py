"""int8 ADD and SUB with single rounding: found if it exists, and only if all 65,536 results agree."""

from __future__ import annotations

import numpy as np
import pytest
from cases.common import broken_rules, operator, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyfuse.ir import Op
from tinyfuse.kernels.elementwise.single_rounding import fit_plane
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary
from tinyfuse.ops.core.convolution import clamp_range

VALUES = np.arange(-128, 128, dtype=np.int8)


def add(scales, zero_points, kind: str = "ADD", activation: str = "NONE") -> Op:
    """An operator on tensors a, b and out with these scales and zero points."""
    a, b, out = (tensor((256, 256), scale, zero) for scale, zero in zip(scales, zero_points, strict=True))
    return operator(kind, [a, b], out, Binary(activation))


def results_on_the_plane(op: Op) -> np.ndarray:
    """Results [a, b] as the C computes them, in int32 that must not overflow."""
    found, (low, high) = fit_plane(op), clamp_range(op)
    a, b = VALUES.astype(np.int64)[:, None], VALUES.astype(np.int64)
    first = a * found.a_factor + found.offset
    total = first + b * found.b_factor
    for part in (first, total, 256 * found.a_factor, 256 * found.b_factor):
        assert np.abs(part).max() < 2**31
    return np.clip(total >> found.shift, low, high)


def assert_exact(op: Op) -> None:
    a, b = np.meshgrid(VALUES, VALUES, indexing="ij")
    np.testing.assert_array_equal(FAMILIES[op.kind].reference(op, a, b)[0], results_on_the_plane(op))


@pytest.mark.parametrize("kind", ["ADD", "SUB"])
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
def test_scales_of_residual_blocks_have_a_plane(kind: str, activation: str) -> None:
    """Drawn as quantizers find them: of 12 such sums nearly all have one."""
    rng, found = np.random.default_rng(5), 0
    for _ in range(12):
        a, b = rng.uniform(0.01, 0.2, 2)
        zero_points = (*rng.integers(-128, 128, 2), -128 if activation != "NONE" else rng.integers(-60, 60))
        op = add((a, b, max(a, b) * rng.uniform(0.7, 2.2)), map(int, zero_points), kind, activation)
        if fit_plane(op) is not None:
            assert_exact(op)
            found += 1
    assert found >= 11


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_whatever_is_found_is_exact(data) -> None:
    scales = [2.0 ** data.draw(st.floats(-30, 20)) for _ in range(3)]
    zero_points = [data.draw(st.integers(-128, 127)) for _ in range(3)]
    op = add(
        scales, zero_points, data.draw(st.sampled_from(["ADD", "SUB"])), data.draw(st.sampled_from(["NONE", "RELU"]))
    )
    if not broken_rules(op) and fit_plane(op) is not None:
        assert_exact(op)


def test_halves_that_go_away_from_zero_lie_on_a_plane_that_is_steeper() -> None:
    """0.5 becomes 1, and -0.5 becomes -1."""
    op = add((0.1, 0.1, 0.2), (0, 0, 0))
    assert fit_plane(op).a_factor > 0.5 * 2 ** fit_plane(op).shift
    assert_exact(op)


def test_where_int32_has_too_few_bits_some_have_none() -> None:
    found = [fit_plane(add((0.083, 0.1, 0.1 / 6), (zero_point, 5, -128))) for zero_point in range(0, 80, 8)]
    assert None in found


def test_a_sum_that_is_one_value_has_a_plane() -> None:
    op = add((1e-6, 1e-6, 1.0), (3, 4, 5))
    assert fit_plane(op) is not None
    assert_exact(op)
