"""Array types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tinyfuse.errors import InternalFault

#: array whose dtype is known only at run time: the one that a tensor names
Array: TypeAlias = npt.NDArray[Any]
#: integers of intermediate results, wide enough that nothing wraps unless the C does
Int64s: TypeAlias = npt.NDArray[np.int64]
#: products and sums of int8 values are exact in float64 as well, and numpy multiplies matrices of it fast
Float64s: TypeAlias = npt.NDArray[np.float64]


def given(array: Array | None) -> Array:
    """Return an operand's values, which the rules guarantee; InternalFault if there are none."""
    if array is None:
        raise InternalFault("a reference", "an operand that its operator needs was not given")
    return array


def all_given(arrays: Iterable[Array | None]) -> tuple[Array, ...]:
    """Return `given` of each array."""
    return tuple(map(given, arrays))
