"""C of a group whose rings lie in a stack (plan/stack.py, runtime_c/tinyfuse_stack.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Tensor
from tinyfuse.plan import Group
from tinyfuse.plan.rows import row_bytes

#: the C variables: the buffer, where each ring begins, and how many bytes of the ring above a row is written over
STACK, AT, TAKEN = "stack", "at", "taken"


class StackWriter:
    """The expressions and statements for the stack of a group, which may have none. `rows` and `first`: the C variables
    that count the rows made of each tensor, and that say with which row its ring begins; an output, the lowest, has no
    such one."""

    def __init__(self, group: Group, rows: Mapping[Tensor, str], first: Mapping[Tensor, str]):
        self._rings, self._rows, self._first = group.stack, rows, first
        self._number = {ring.tensor: i for i, ring in enumerate(group.stack)}
        self._stack = f"{STACK}, {AT}, {len(group.stack)}"

    def __bool__(self) -> bool:
        return bool(self._rings)

    def __contains__(self, tensor: object) -> bool:
        return tensor in self._number

    def pointer(self, tensor: Tensor, ctype: str) -> str:
        """Where the ring of a tensor begins."""
        return f"(({ctype} *)(void *)({STACK} + {AT}[{self._number[tensor]}]))"

    def scratch(self) -> str:
        """Where the scratch of the stage that runs begins."""
        return f"tinyfuse_stack_top({self._stack})"

    def set_offsets(self) -> list[str]:
        """Where each ring begins, by the rows that it holds."""
        lines, end = [f"int32_t {AT}[{len(self._rings) + 1}];"], "0"
        for i, ring in enumerate(self._rings):
            lines.append(f"{AT}[{i}] = {end};")
            rows = self._rows[ring.tensor]
            held = f"({rows} - {self._first[ring.tensor]})" if ring.tensor in self._first else rows
            end = f"{AT}[{i}] + {held} * {row_bytes(ring.tensor)}"
        return [*lines, f"{AT}[{len(self._rings)}] = {end};"]

    def may_overwrite(self, tensor: Tensor, source: Tensor | None) -> bool:
        """Whether the rows of a tensor may be written over the first of this one's."""
        above = self._number.get(tensor, len(self._rings)) + 1
        return above < len(self._rings) and self._rings[above].taken > 0 and self._rings[above].tensor is source

    def make_room(self, tensor: Tensor, rows: str, oldest: tuple[Tensor, str] | None) -> list[str]:
        """Room for `rows` rows behind those of a tensor that there are. `oldest`: the tensor over whose first row they
        may be written, and C for the oldest row that is needed of it after the call."""
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
        """The statement that moves an output from below all rings, which are empty, to its place, which is further `up`
        or further down."""
        return f"tinyfuse_move_{'up' if up else 'down'}({place}, {STACK}, {tensor.bytes});"

    def drop(self, tensor: Tensor, needed: str, taken: bool) -> str:
        """The statement after which a ring has no more rows than are needed, from row `needed` on."""
        first, left = self._first[tensor], TAKEN if taken else "0"
        arguments = f"{self._number[tensor]}, {first}, {needed}, {row_bytes(tensor)}, {left}"
        return f"{first} = tinyfuse_stack_drop({self._stack}, {arguments});"
