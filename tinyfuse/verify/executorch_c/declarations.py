"""Declares what the calls of an ExecuTorch program need: planned memory, constants, functions of CMSIS-NN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.program import Value
from tinyfuse.ir import Array, Int64s

CTYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
          "float32": "float", "bool": "uint8_t"}  # fmt: skip
NHWC = (0, 2, 3, 1)


class Declarations:
    """Gathers declarations, and returns the expressions that use them.

    functions  names of CMSIS-NN's functions that are called
    """

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self._constants: dict[str, str] = {}
        self._memory: dict[int, int] = {}

    def lines(self) -> list[str]:
        """Return C that declares memory and constants."""
        memory = [
            f"static uint8_t memory_{number}[{size}] __attribute__((aligned(16)));"
            for number, size in sorted(self._memory.items())
        ]
        return [*memory, *self._constants.values()]

    def pointer(self, value: Value) -> str:
        """Return a pointer to a value's elements."""
        ctype = CTYPES[value.dtype]
        if value.place is None:
            assert value.data is not None
            return self.constant(f"value_{value.number}", value.data, ctype)
        memory, offset = value.place
        self._memory[memory] = max(self._memory.get(memory, 16), offset + value.bytes)
        return f"(({ctype} *)(void *)(memory_{memory} + {offset}))"

    def constant(self, name: str, values: Array, ctype: str) -> str:
        """Declare an array of constants, and return its name."""
        if name not in self._constants:
            flat = np.ascontiguousarray(values).reshape(-1)
            numbers = ",".join(_number(v, ctype) for v in flat.tolist())
            self._constants[name] = f"static const {ctype} {name}[] __attribute__((aligned(16))) = {{{numbers}}};"
        return name

    def index(self, a: Arguments, places: Int64s, name: str) -> str:
        """Return a C expression, in `i`, of the i-th of `places`, which are indexes of elements in memory.

        name  part of the name of a constant that lists the places, if one is needed; unique within a call
        """
        flat = np.ascontiguousarray(places).reshape(-1)
        if np.array_equal(flat, np.arange(flat.size)):
            return "i"
        if (flat == flat[0]).all():
            return f"{flat[0]}"
        return f"{self.constant(f'places_{a.call.index}_{name}', flat, 'uint32_t')}[i]"

    def checked_call(self, name: str, *arguments: str) -> str:
        """Return a statement that calls a function of CMSIS-NN and notes its failure."""
        self.functions.add(name)
        return f"failed |= {name}({', '.join(arguments)}) != ARM_CMSIS_NN_SUCCESS;"

    def scratch_bytes(self, name: str, *arguments: str) -> str:
        """Return a call of a function of CMSIS-NN that returns a size of scratch memory."""
        self.functions.add(name)
        return f"{name}({', '.join(arguments)})"


#: writes a call as lines of C
Writer = Callable[[Declarations, Arguments], list[str]]


def loop(count: int, *statements: str) -> list[str]:
    """Return a loop that runs statements for each `i` below `count`."""
    return [f"for (int32_t i = 0; i < {count}; ++i) {{", *(f"    {text}" for text in statements), "}"]


def memory_places(value: Value) -> Int64s:
    """Return the places in memory of a value's elements, as an array of its logical dimensions."""
    memory = np.arange(value.elements).reshape([value.sizes[d] for d in value.dim_order])
    return memory.transpose(np.argsort(value.dim_order))


def float_literal(number: float | np.float32) -> str:
    """Return a float32 number in C."""
    return f"{float(np.float32(number))!r}f"


def _number(number: float, ctype: str) -> str:
    if ctype == "float":
        return float_literal(number)
    return "(-2147483647 - 1)" if number == -(2**31) else str(int(number))
