"""Functions that compute a single element in registers; fused loops are made of them
(kernels/elementwise/fused_loop.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinyfuse.ir import Array, Op, Tensor


@dataclass(frozen=True, eq=False)
class Element:
    """C function that computes an operator's stored result from the stored values of its operands. It is declared in
    runtime_c/tinyfuse_fused_loop*.h or in a plugin's header.

    name        function's name between `prefix` and `suffix`; with Helium, NAME4 computes four elements.
    work        count of a cost table that the function adds to (kernels/elementwise/fused_loop.py).
    parameters  type and fields of the struct that it takes; None: no struct.
    table       int8 [256] or [channels, 256], in the order of ops/elementwise/table.py, that it looks results up in.
    numbers     arguments after the operands.
    suffix      end of the name, which tells the dtype.
    prefix      beginning of the name.
    fours       NAME4 exists.
    """

    name: str
    work: str
    parameters: tuple[str, Mapping[str, Any]] | None = None
    table: Array | None = None
    numbers: tuple[int, ...] = ()
    suffix: str = ""
    prefix: str = "tinyfuse_fused_loop_"
    fours: bool = True

    def function(self, four: bool) -> str:
        """Name of the C function for one element, or for four if `four`."""
        return f"{self.prefix}{self.name}{'4' if four else ''}{self.suffix}"

    def values_of(self, op: Op) -> tuple[Tensor, ...]:
        """Inputs of the operator that are operands of the function; a table is not one."""
        return op.operands if self.table is None else op.operands[:1]
