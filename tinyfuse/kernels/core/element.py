"""How a kernel computes a single element in registers: what merged loops are made of
(kernels/elementwise/fused_loop.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinyfuse.ir import Array, Op, Tensor


@dataclass(frozen=True, eq=False)
class Element:
    """A function of runtime_c/tinyfuse_fused_loop*.h, or of a plugin's header: of the stored values of the operands the
    stored result.

    name        tinyfuse_fused_loop_NAME; with Helium tinyfuse_fused_loop_NAME4 does four, but of float32
    work        which counts of a cost table it belongs to (kernels/elementwise/fused_expression.py)
    parameters  type and fields of the struct that it takes, None for none
    table       int8 [256] or [channels, 256], in the order of a table (ops/elementwise/table.py), which it looks up in
    numbers     arguments after the operands
    suffix      what the names end in, where the function depends on the dtype
    prefix      what the names begin with
    fours       whether there is a function of four
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
        """The C function of one element, or of four."""
        return f"{self.prefix}{self.name}{'4' if four else ''}{self.suffix}"

    def values_of(self, op: Op) -> tuple[Tensor, ...]:
        """The operator's inputs that are operands of the function: its table, where it has one as an input, is none."""
        return op.operands if self.table is None else op.operands[:1]
