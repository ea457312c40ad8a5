"""Differences between a module's outputs and the oracle's."""

from __future__ import annotations

import numpy as np
import pytest
from executors import plan_of
from test_oracle import add_and_relu

from tinyfuse.verify.comparison import compare


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_module_with_another_number_of_outputs_is_wrong(count: int) -> None:
    """For example after its header was edited. Regression: this ended in a traceback."""
    plan = plan_of(add_and_relu())
    expected = [[np.zeros((1, 2, 3, 4), np.int8)] * 2] * 2
    assert compare(plan, expected, [[bytes(24)] * 2] * 2).mismatches == 0
    found = compare(plan, expected, [[bytes(24)] * count, [bytes(24)] * 2])
    assert (found.elements, found.mismatches) == (96, 48)
