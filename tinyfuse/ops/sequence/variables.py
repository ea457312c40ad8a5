"""Operators on resource variables: READ_VARIABLE and ASSIGN_VARIABLE, whose input 0 is a state once
tinyfuse/frontend/variables.py has resolved the file's handles; VAR_HANDLE and CALL_ONCE, which that takes
out of the graph, so that no kernel has to run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given, given
from tinyfuse.ops.core.family import OpFamily, Rule


@dataclass(frozen=True)
class VarHandle:
    """Attributes of VAR_HANDLE: a variable's name. Handles with the same name are the same variable, in every
    subgraph."""

    shared_name: str = ""
    container: str = ""


@dataclass(frozen=True)
class CallOnce:
    """Attributes of CALL_ONCE: the subgraph that runs the first time that an inference reaches the operator."""

    init_subgraph_index: int = 0


class Resolved(OpFamily):
    """Operator that only exists while the file is read (VAR_HANDLE and others); no graph contains it."""

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        raise AssertionError(f"{op} is in a graph")


class VarHandleFamily(Resolved):
    """VAR_HANDLE: its output, a resource, stands for the variable with that name."""

    kind = "VAR_HANDLE"
    options_table = "VarHandleOptions"
    summary = "names a variable: state that outlives a run"

    def attributes(self, options: Mapping[str, Any]) -> VarHandle:
        return VarHandle(options.get("shared_name", ""), options.get("container", ""))


class CallOnceFamily(Resolved):
    """CALL_ONCE: no inputs and no outputs. Its subgraph is evaluated when the file is read."""

    kind = "CALL_ONCE"
    options_table = "CallOnceOptions"
    summary = "gives variables their initial values, by a subgraph that assigns constants"

    def attributes(self, options: Mapping[str, Any]) -> CallOnce:
        return CallOnce(options.get("init_subgraph_index", 0))


def _unlike(state: Tensor, value: Tensor) -> Tensor | None:
    return value if (value.dtype, value.elements) != (state.dtype, state.elements) else None


class ReadVariableFamily(OpFamily):
    """READ_VARIABLE: the output is a copy of the state's present value. It may have another shape and quantization."""

    kind = "READ_VARIABLE"
    resource = True
    summary = "what a variable holds"
    reads = (0,)
    rules = (
        Rule("the value has the variable's dtype and number of elements",
             lambda op: _unlike(op.input, op.output)),
    )  # fmt: skip

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]).reshape(op.output.shape),)


class AssignOnceFamily(OpFamily):
    """ASSIGN_ONCE: copies input 1, a constant, to input 0, a state, unless input 2, an int8 state, says that this was
    done."""

    kind = "ASSIGN_ONCE"
    summary = "gives a variable its initial value, the first time that a run comes by"
    in_files = False
    updates = (0, 2)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        state, value, done = all_given(inputs)
        return (state if done[0] else value.reshape(state.shape), np.ones_like(done))


class AssignVariableFamily(OpFamily):
    """ASSIGN_VARIABLE: copies input 1 to the state. It has no output."""

    kind = "ASSIGN_VARIABLE"
    resource = True
    summary = "gives a variable another value"
    updates = (0,)
    rules = (
        Rule("the value has the variable's dtype and number of elements",
             lambda op: _unlike(op.input, op.operand(1))),
    )  # fmt: skip

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[1]).reshape(op.input.shape),)
