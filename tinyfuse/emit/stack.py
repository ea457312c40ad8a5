"""C for groups whose rings lie in a stack (plan/stack.py, runtime_c/tinyfuse_stack.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Tensor
from tinyfuse.plan import Group
from tinyfuse.plan.rows import row_bytes

#: C variables: the stack's buffer, offset of each ring, bytes of the ring above that a row overwrites
STACK, AT, TAKEN = "stack", "at", "taken"


class StackWriter:
    """C expressions and statements for a group's stack; the group may have none.

    rows   tensor -> C variable with the number of rows made
    first  tensor -> C variable with the number of its ring's first row; not for an output, which is lowest
    """

    def __init__(self, group: Group, rows: Mapping[Tensor, str], first: Mapping[Tensor, str]):
        self._rings, self._rows, self._first = group.stack, rows, first
        self._number = {ring.tensor: i for i, ring in enumerate(group.stack)}
        self._stack = f"{STACK}, {AT}, {len(group.stack)}"

    def __bool__(self) -> bool:
        return bool(self._rings)

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._number

    def pointer(self, tensor: Tensor, ctype: str) -> str:
        """C expression for the address of a tensor's ring."""
        return f"(({ctype} *)(void *)({STACK} + {AT}[{self._number[tensor]}]))"

    def scratch(self) -> str:
        """C expression for the address of the running stage's scratch."""
        return f"tinyfuse_stack_top({self._stack})"

    def set_offsets(self) -> list[str]:
        """C statements that set the offset of each ring, from the rows that it holds."""
        lines, end = [f"int32_t {AT}[{len(self._rings) + 1}];"], "0"
        for i, ring in enumerate(self._rings):
            lines.append(f"{AT}[{i}] = {end};")
            rows = self._rows[ring.tensor]
            held = f"({rows} - {self._first[ring.tensor]})" if ring.tensor in self._first else rows
            end = f"{AT}[{i}] + {held} * {row_bytes(ring.tensor)}"
        return [*lines, f"{AT}[{len(self._rings)}] = {end};"]

    def may_overwrite(self, tensor: Tensor, source: Tensor | None) -> bool:
        """Tells whether rows of `tensor` may overwrite the first row of `source`."""
        above = self._number.get(tensor, len(self._rings)) + 1
        return above < len(self._rings) and self._rings[above].taken > 0 and self._rings[above].tensor is source

    def make_room(self, tensor: Tensor, rows: str, oldest: tuple[Tensor, str] | None) -> list[str]:
        """C statements that make room for `rows` more rows of a tensor.

        `oldest` is the tensor whose first row they may overwrite, and a C expression for its oldest row needed after
        the call.
        """
        size, above = row_bytes(tensor), self._number[tensor] + 1
        if oldest is None:
            return [f"tinyfuse_stack_open({self._stack}, {above}, {rows} * {size});"]
        source, needed = oldest
        taken = self._rings[above].taken
        return [
            f"const int32_t {TAKEN} = {needed} > {self._first[source]} ? {taken} : 0;",
            f"tinyfuse_stack_open({self._stack}, {above}, {size} - {TAKEN});",
        ]

    def move_output(self, tensor: Tensor, place: str, up: bool) -> str:
        """C statement that moves an output from the bottom of the stack, whose rings are empty, to its place: a higher
        (`up`) or lower address."""
        return f"tinyfuse_move_{'up' if up else 'down'}({place}, {STACK}, {tensor.bytes});"

    def drop(self, tensor: Tensor, needed: str, taken: bool) -> str:
        """C statement that drops the rows of a ring before row `needed`."""
        first, left = self._first[tensor], TAKEN if taken else "0"
        arguments = f"{self._number[tensor]}, {first}, {needed}, {row_bytes(tensor)}, {left}"
        return f"{first} = tinyfuse_stack_drop({self._stack}, {arguments});"
