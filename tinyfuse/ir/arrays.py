"""The types of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tinyfuse.errors import InternalFault

#: an array whose dtype is known when tinyfuse runs: the one that a tensor names
Array: TypeAlias = npt.NDArray[Any]
#: integers while they are computed with, wide enough that nothing wraps unless the C does
Int64s: TypeAlias = npt.NDArray[np.int64]
#: products and sums of int8 values are exact in float64 as well, and numpy multiplies matrices of it fast
Float64s: TypeAlias = npt.NDArray[np.float64]


def given(array: Array | None) -> Array:
    """An operand's values, which the rules want there; InternalFault where there are none."""
    if array is None:
        raise InternalFault("a reference", "an operand that its operator needs was not given")
    return array


def all_given(arrays: Iterable[Array | None]) -> tuple[Array, ...]:
    """`given` of each."""
    return tuple(map(given, arrays))
