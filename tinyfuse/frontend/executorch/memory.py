"""Finds values that share memory. A view is a value that no call computes and whose memory is that of another value.

ExecuTorch removes reshaping calls when it plans memory. Here each view becomes a call again.
"""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.frontend.executorch.program import Call, Program, Value
from tinyfuse.frontend.tensors import HINT_UNSOUND, Problems

#: kind of the call that copies a view's source, (source, view)
VIEW = "view"


def with_views(program: Program, problems: Problems) -> tuple[Call, ...]:
    """Return the program's calls, with a VIEW call before the first call that reads a view; at the end for outputs.

    Notes a problem for each value that is read without being in memory, or is written twice.
    """
    return _Memory(problems).calls(program)


class _Memory:
    def __init__(self, problems: Problems):
        self.require = problems.require
        #: memory -> (first byte, byte behind, value) of what lies there
        self.ranges: dict[int, list[tuple[int, int, Value]]] = {}
        self.written: set[Value] = set()
        #: view -> the value whose bytes it has
        self.sources: dict[Value, Value] = {}
        self.missing: set[Value] = set()
        self.found: list[Call] = []

    def calls(self, program: Program) -> tuple[Call, ...]:
        for value in program.inputs:
            self.write(value, f"input {value}")
        for call in program.calls:
            *inputs, out = call.arguments or (None,)
            # a call returns its last argument, which is listed twice
            results = set(values_among((out,)))
            for value in values_among(inputs):
                if value not in results:
                    self.read(value, call)
            for value in results:
                self.write(value, str(call))
            self.found.append(call)
        for value in program.outputs:
            self.read(value, None)
        return tuple(self.found)

    def write(self, value: Value, place: str) -> None:
        """Record that a value's bytes are in memory, and that those of the values that it overlaps are lost."""
        once = value.place is not None and value not in self.written
        if not self.require(once, f"{value} is written a second time, or is a constant", HINT_UNSOUND, place):
            return
        assert value.place is not None, "checked above"
        memory, begin = value.place
        end = begin + value.bytes
        self.ranges[memory] = [*self.beside(memory, begin, end), (begin, end, value)]
        self.written.add(value)

    def beside(self, memory: int, begin: int, end: int) -> list[tuple[int, int, Value]]:
        """Return the ranges of a memory that do not overlap begin..end."""
        return [entry for entry in self.ranges.get(memory, []) if entry[1] <= begin or end <= entry[0]]

    def read(self, value: Value, call: Call | None) -> None:
        """Require that a value's bytes are in memory; add a VIEW if another value put them there."""
        if value.place is None or value in self.missing or value.elements == 0:
            return
        memory, begin = value.place
        end = begin + value.bytes
        if call is not None and value.dtype == "uint8" and value not in self.written:
            self.ranges[memory] = self.beside(memory, begin, end)  # scratch memory
            return
        here = next((v for first, behind, v in self.ranges.get(memory, []) if (first, behind) == (begin, end)), None)
        if here is not None and here is self.sources.get(value, value):
            return
        sound = here is not None and value not in self.written and here.dtype == value.dtype
        if not self.require(sound, f"{value} is read, but its bytes are not there", HINT_UNSOUND, call):
            self.missing.add(value)
            return
        assert here is not None, "checked above"
        self.found.append(Call(-1, VIEW, (here, value)))
        self.written.add(value)
        self.sources[value] = here


def values_among(arguments: object) -> Iterator[Value]:
    """The tensors among arguments."""
    if isinstance(arguments, Value):
        yield arguments
    elif isinstance(arguments, (tuple, list)):
        for argument in arguments:
            yield from values_among(argument)
