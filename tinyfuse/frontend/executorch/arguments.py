"""Arguments of a call by name, each checked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyfuse.frontend.executorch.program import Argument, Call, Value
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused
from tinyfuse.ir import Array

_HINT_RELEASE = "make the program with executorch 1.5"
#: numbers up to this are finite in float32, too
_MOST_REAL = 3e38
#: zero points and bounds of int8
INT8 = (-128, 127)


class Arguments:
    """A call's arguments by the names in its operator's signature. The first result is "out"."""

    def __init__(self, call: Call, names: Sequence[str]):
        # a call lists its result again at the end; several results are one list
        results = len(names) - names.index("out")
        found = call.arguments if len(call.arguments) == len(names) else call.arguments[:-1]
        complete = len(found) == len(names)
        if not complete or (call.arguments[-1] is not found[-1] and call.arguments[-1] != found[-results:]):
            raise Refused(f"it has {len(call.arguments)} arguments, not {len(names) + 1}", _HINT_RELEASE)
        self.call = call
        self._named: dict[str, Argument] = dict(zip(names, found, strict=True))

    @property
    def out(self) -> Value:
        return self.value("out")

    def value(self, name: str) -> Value:
        """Return a tensor argument that has at least one element."""
        found = self._named[name]
        if not isinstance(found, Value):
            raise Refused(f"its argument {name} is not a tensor, or of a dtype that is not supported", _HINT_RELEASE)
        if found.elements < 1:
            raise Refused(f"its argument {name} has no elements", HINT_UNSOUND, str(found))
        return found

    def require_int8(self, name: str) -> None:
        """Raise Refused unless a tensor is int8."""
        value = self.value(name)
        if value.dtype != "int8":
            raise Refused(f"its argument {name} is {value.dtype}", "quantize activations to int8", str(value))

    def has(self, name: str) -> bool:
        """Tell whether the operator's signature has an argument of that name."""
        return name in self._named

    def optional(self, name: str) -> Value | None:
        """A tensor; None where it is left out."""
        return None if self._named[name] is None else self.value(name)

    def values(self, name: str) -> tuple[Value, ...]:
        """The tensors of a list."""
        found = self._named[name]
        values = tuple(v for v in found if isinstance(v, Value)) if isinstance(found, tuple) else ()
        if not values or any(value.elements < 1 for value in values):
            raise Refused(f"its argument {name} is not a list of tensors", _HINT_RELEASE)
        return values

    def integer(self, name: str, ends: tuple[int, int] = (-(2**31), 2**31 - 1)) -> int:
        """An integer from `ends`."""
        found = self._named[name]
        if not isinstance(found, int) or not ends[0] <= found <= ends[1]:
            raise Refused(f"its argument {name} is {found}, not an integer from {ends[0]} to {ends[1]}", _HINT_RELEASE)
        return found

    def optional_integer(self, name: str) -> int | None:
        """Return an integer argument; None if it is None in the call."""
        return None if self._named[name] is None else self.integer(name)

    def number(self, name: str) -> float:
        """A finite number."""
        found = self._named[name]
        if not isinstance(found, (int, float)) or not abs(found) < _MOST_REAL:
            raise Refused(f"its argument {name} is {found}, not a number", _HINT_RELEASE)
        return float(found)

    def optional_number(self, name: str) -> float | None:
        """A finite number; None where it is left out."""
        return None if self._named[name] is None else self.number(name)

    def optional_numbers(self, name: str, count: int) -> tuple[float, ...] | None:
        """A list of positive numbers, `count` of them; None where it is left out."""
        found = self._named[name]
        if found is None:
            return None
        listed = found if isinstance(found, tuple) else ()
        numbers = tuple(n for n in listed if isinstance(n, float) and 0 < n < _MOST_REAL)
        if len(numbers) != count:
            raise Refused(f"its argument {name} is {found}, not a list of {count} positive numbers", _HINT_RELEASE)
        return numbers

    def integers(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """A list of integers, `count` of them."""
        found = self._named[name]
        numbers = tuple(n for n in found if isinstance(n, int)) if isinstance(found, tuple) else None
        if numbers is None or (count is not None and len(numbers) != count) or any(abs(n) >= 2**31 for n in numbers):
            raise Refused(f"its argument {name} is {found}, not a list of integers", _HINT_RELEASE)
        return numbers

    def pair(self, name: str) -> tuple[int, int]:
        rows, columns = self.integers(name, 2)
        return rows, columns

    def scale(self, name: str) -> float:
        """A scale as kernels use it: a float32 number, positive."""
        found = self._named[name]
        number = float(np.float32(found)) if isinstance(found, float) and abs(found) < _MOST_REAL else math.nan
        if not number > 0:
            raise Refused(f"its argument {name} is {found}, not a positive number", _HINT_RELEASE)
        return number

    def clamp(self, low: str = "activation_min", high: str = "activation_max") -> tuple[int, int]:
        """The bounds of an activation, within int8."""
        bounds = self.integer(low, INT8), self.integer(high, INT8)
        if bounds[0] > bounds[1]:
            raise Refused(f"it clamps to {bounds[0]} to {bounds[1]}", _HINT_RELEASE)
        return bounds

    def constant(self, name: str, dtype: str) -> Array:
        """The elements of a constant of that dtype, in its shape."""
        value = self.value(name)
        if value.data is None or value.dtype != dtype or not value.lies_as(range(len(value.sizes))):
            raise Refused(f"its argument {name} is not a constant {dtype}", _HINT_RELEASE, str(value))
        return value.data.reshape(value.sizes)

    def multiplier(self, prefix: str) -> tuple[int, int]:
        """(multiplier, shift) from the arguments PREFIX_multiplier and PREFIX_shift."""
        multiplier, shift = self.integer(f"{prefix}_multiplier"), self.integer(f"{prefix}_shift")
        require_multipliers((multiplier,), (shift,))
        return multiplier, shift


def require_multipliers(multipliers: Sequence[int], shifts: Sequence[int]) -> None:
    """Raise Refused unless multipliers are 0 or from 2^30 to 2^31 - 1, and shifts are CMSIS-NN's."""
    normal = all(m == 0 or 2**30 <= m < 2**31 for m in multipliers) and all(-31 <= shift <= 30 for shift in shifts)
    if not normal or len(multipliers) != len(shifts):
        raise Refused("a multiplier or shift is not normalized", _HINT_RELEASE)


def real(multiplier: int, shift: int) -> float:
    """Return exactly the real number that multiplier and shift stand for: multiplier * 2^(shift - 31)."""
    return multiplier * 2.0 ** (shift - 31)
