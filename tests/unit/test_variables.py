"""Variables of a file: they become states, and files whose variables are inconsistent are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from stream_models import add_handle, initialization
from test_hostile_files import assert_clear
from tflite_builder import ModelBuilder

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.targets import load_target

_QUANT = {"scale": 0.5, "zero_point": -9}


def problems_of(data: bytes) -> list[str]:
    """Problems of the file as users see them, one in each line."""
    with pytest.raises(CompileError) as caught:
        compile_graph(read_tflite("m.tflite", data), load_target("host"), Options("net"))
    assert_clear(caught.value)
    return [str(problem) for problem in caught.value.problems]


class _Sum:
    """sum = sum + x, in parts that a test can omit or change."""

    def __init__(self) -> None:
        self.model = ModelBuilder()
        self.x = self.model.tensor("x", (1, 4), **_QUANT)
        self.y = self.model.tensor("y", (1, 4), **_QUANT)
        self.called: list[ModelBuilder] = []

    def call(self, index: int = 1) -> None:
        self.model.op("CALL_ONCE", [], [], init_subgraph_index=index)

    def read(self, handle: int, shape=(1, 4), dtype: str = "int8") -> int:
        value = self.model.tensor("value", shape, dtype, **_QUANT)
        self.model.op("READ_VARIABLE", [handle], [value])
        return value

    def add(self, value: int) -> None:
        self.model.op("ADD", [self.x, value], [self.y])

    def assign(self, handle: int, value: int | None = None) -> None:
        self.model.op("ASSIGN_VARIABLE", [handle, self.y if value is None else value], [])

    def build(self) -> bytes:
        return self.model.build([self.x], [self.y], called=self.called)

    def graph(self) -> Graph:
        return read_tflite("m.tflite", self.build())


def _initial(data: np.ndarray | None = None) -> ModelBuilder:
    return initialization({"sum": (np.full((1, 4), 3, np.int8) if data is None else data, 0.5, -9)})


def test_handles_and_calls_are_gone() -> None:
    net = _Sum()
    net.call()
    handle = add_handle(net.model, "sum")
    net.add(net.read(handle))
    net.assign(handle)
    net.called = [_initial(np.array([[1, 2, 3, 4]], np.int8))]
    graph = net.graph()
    assert [op.kind for op in graph.ops] == ["READ_VARIABLE", "ADD", "ASSIGN_VARIABLE"]
    (state,) = graph.states
    assert state.name == "sum" and state.initial.tolist() == [[1, 2, 3, 4]]
    assert graph.ops[0].input is state is graph.ops[2].input and graph.warnings == ()


def test_without_a_call_a_variable_begins_with_the_zero_point_of_what_is_assigned() -> None:
    net = _Sum()
    handle = add_handle(net.model, "sum")
    net.add(net.read(handle))
    net.assign(handle)
    assert set(net.graph().states[0].initial.reshape(-1)) == {-9}


def test_an_int16_state_begins_with_zeros_whatever_its_zero_point() -> None:
    model = ModelBuilder()
    state = model.tensor("state", (2, 3), "int16", scale=0.5, zero_point=7, is_variable=True)
    x, y = model.tensor("x", (1, 2), **_QUANT), model.tensor("y", (1, 2), **_QUANT)
    model.op("CUSTOM", [x, state], [y], custom_code="mine")
    (found,) = read_tflite("m.tflite", model.build([x], [y])).states
    assert not found.initial.any() and found.initial.shape == (2, 3)


def test_initial_values_may_be_quantized_in_the_subgraph() -> None:
    net = _Sum()
    net.call()
    handle = add_handle(net.model, "sum")
    net.add(net.read(handle))
    net.assign(handle)
    init = ModelBuilder()
    real = init.tensor("real", (1, 4), "float32", data=np.array([[0, 0.5, 1, 1e6]], np.float32))
    stored = init.tensor("stored", (1, 4), **_QUANT)
    init.op("QUANTIZE", [real], [stored])
    init.op("ASSIGN_VARIABLE", [add_handle(init, "sum"), stored], [])
    net.called = [init]
    assert net.graph().states[0].initial.tolist() == [[-9, -8, -7, 127]]


# --- files that make no sense --------------------------------------------------------------------


def _never_assigned(net: _Sum) -> None:
    net.add(net.read(add_handle(net.model, "sum")))


def _with(call: int | None = None, called: Callable[[], ModelBuilder] | None = None, **read) -> Callable:
    """A sound sum except for the called subgraph, or for the shape and dtype of what is read."""

    def make(net: _Sum) -> None:
        if call is not None:
            net.call(call)
        handle = add_handle(net.model, "sum")
        value = net.read(handle, **read)
        net.add(net.x if read else value)
        net.assign(handle)
        if called:
            net.called = [called()]

    return make


def _nested_call() -> ModelBuilder:
    model = _initial()
    model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    return model


def _computed() -> ModelBuilder:
    model = ModelBuilder()
    a = model.tensor("a", (1, 4), **_QUANT)
    model.op("ASSIGN_VARIABLE", [add_handle(model, "sum"), a], [])
    return model


def _adding() -> ModelBuilder:
    model = ModelBuilder()
    a, b = (model.tensor(name, (1, 4), data=np.zeros((1, 4), np.int8), **_QUANT) for name in "ab")
    model.op("ADD", [a, b], [model.tensor("c", (1, 4), **_QUANT)])
    return model


def _two_containers(net: _Sum) -> None:
    handle = add_handle(net.model, "sum")
    net.add(net.read(handle))
    other = net.model.tensor("other", (), "resource")
    net.model.op("VAR_HANDLE", [], [other], shared_name="sum", container="elsewhere")
    net.assign(other)


def _nameless(net: _Sum) -> None:
    handle = add_handle(net.model, "")
    net.add(net.read(handle))
    net.assign(handle)


def _no_handle(net: _Sum) -> None:
    handle = net.model.tensor("handle", (), "resource")
    net.add(net.read(handle))


def _handle_in_arithmetic(net: _Sum) -> None:
    net.add(add_handle(net.model, "sum"))


def _value_in_place_of_handle(net: _Sum) -> None:
    net.add(net.read(net.x))


def _handle_as_output(net: _Sum) -> None:
    net.add(net.x)
    net.y = add_handle(net.model, "sum")


def _handle_as_input(net: _Sum) -> None:
    net.add(net.x)
    net.x = net.model.tensor("handle", (), "resource")


def _variable_in_arithmetic(net: _Sum) -> None:
    net.add(net.model.tensor("v", (1, 4), is_variable=True, **_QUANT))


def _variable_as_output(net: _Sum) -> None:
    net.y = net.model.tensor("v", (1, 4), is_variable=True, **_QUANT)
    net.add(net.x)


def _variable_as_input(net: _Sum) -> None:
    net.x = net.model.tensor("v", (1, 4), is_variable=True, **_QUANT)
    net.add(net.x)


def _variable_with_data(net: _Sum) -> None:
    net.add(net.model.tensor("v", (1, 4), is_variable=True, data=np.zeros((1, 4), np.int8), **_QUANT))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_never_assigned, "variable 'sum' has no value: nothing assigns it"),
        (_with(call=5, called=_initial), "it calls subgraph 5, of 2"),
        (_with(call=-1, called=_initial), "it calls subgraph -1, of 2"),
        (_with(call=2**31 - 1), "it calls subgraph 2147483647, of 1"),
        (_with(call=0, called=_initial), "it calls the subgraph that it is in"),
        (_with(call=1, called=_nested_call), "subgraph 1 has CALL_ONCE, which initializes no variable"),
        (_with(call=1, called=_adding), "subgraph 1 has ADD, which initializes no variable"),
        (_with(call=1, called=_computed), "gives 'sum' a value that is not a constant"),
        (_with(call=1, called=lambda: _initial(np.zeros((1, 5), np.int8))), "another dtype or size"),
        (_with(call=1, called=lambda: _initial(np.zeros((1, 4), np.int16))), "another dtype or size"),
        (_with(shape=(1, 5)), "the value has the variable's dtype and number of elements"),
        (_with(shape=(1, 2), dtype="int16"), "the value has the variable's dtype and number of elements"),
        (_two_containers, "variable 'sum' is in two containers"),
        (_nameless, "the variable has no name"),
        (_no_handle, "nothing has made its resource"),
        (_handle_in_arithmetic, "it can't use a resource"),
        (_value_in_place_of_handle, "it must have a resource and a value"),
        (_handle_as_output, "is an output of the graph, but nothing computes it"),
        (_handle_as_input, "is an input of the graph, but a resource"),
        (_variable_in_arithmetic, "a variable can't be its input"),
        (_variable_as_output, "is computed, but a variable"),
        (_variable_as_input, "is an input of the graph, but a variable"),
        (_variable_with_data, "is a variable, but has constant data"),
    ],
)  # fmt: skip
def test_refused(make: Callable[[_Sum], None], message: str) -> None:
    net = _Sum()
    make(net)
    told = problems_of(net.build())
    assert any(message in line for line in told), told


def test_a_state_that_is_no_variable() -> None:
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2), **_QUANT), model.tensor("y", (1, 1), **_QUANT)
    weights = model.tensor("w", (1, 2), scale=0.1, zero_point=0, data=np.ones((1, 2), np.int8))
    bias = model.tensor("b", (1,), "int32", scale=0.1, zero_point=0, data=np.ones(1, np.int32))
    model.op("SVDF", [x, weights, weights, bias, x], [y], rank=1)
    assert "its input 4 must be a variable" in problems_of(model.build([x], [y]))[0]
