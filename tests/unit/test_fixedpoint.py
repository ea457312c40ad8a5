"""Fixed-point functions on arrays give the same as on each value."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tinyfuse.ir.fixedpoint import quantize_multiplier, quantize_multipliers

ENDS = [0.0, 1.0, 2.0**-31, 2.0**-32, 2.0**-33, 1 - 2.0**-32, 1 - 2.0**-33, 5e-324, math.inf]


@given(st.lists(st.floats(0, allow_nan=False) | st.floats(0, 1) | st.sampled_from(ENDS), min_size=1))
def test_multipliers_of_all_channels_are_those_of_each(reals: list[float]) -> None:
    multipliers, shifts = quantize_multipliers(reals)
    assert list(zip(multipliers.tolist(), shifts.tolist(), strict=True)) == [quantize_multiplier(r) for r in reals]
