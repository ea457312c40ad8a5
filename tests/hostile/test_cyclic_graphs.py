"""Graphs that wait for themselves, and subgraphs that call themselves or each other, are refused in a few calls."""

from __future__ import annotations

import numpy as np
import pytest
from call_limit import at_most
from control_flow_models import flag, image, unary
from tflite_builder import ModelBuilder

from tinyfuse.errors import CompileError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite


def wired(
    *operators: tuple[list[int], list[int]], inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] = (2,)
) -> bytes:
    """ADD for two inputs, RELU for one, on tensors that are numbered."""
    model = ModelBuilder()
    for name in range(1 + max(max(ins + outs) for ins, outs in operators)):
        image(model, f"t{name}")
    for ins, outs in operators:
        if len(ins) == 2:
            model.op("ADD", ins, outs, fused_activation_function="NONE")
        else:
            model.op("RELU", ins, outs)
    return model.build(inputs, outputs)


CYCLES = {
    "an operator on its own output": wired(([1], [1]), ([1], [2])),
    "an operator in place": wired(([0], [1]), ([1], [1]), ([1], [2])),
    "an operator with its output as second input": wired(([0, 1], [1]), ([1], [2])),
    "two operators": wired(([0, 2], [1]), ([1], [2])),
    "a long cycle": wired(([0, 300], [1]), *(([n], [n + 1]) for n in range(1, 300)), outputs=(300,)),
    "operators in the wrong order": wired(([1], [2]), ([0], [1])),
    "a cycle that no output needs": wired(([0], [2]), ([3], [4]), ([4], [3])),
    "a tensor that two operators make": wired(([0], [1]), ([0], [1]), ([1], [2])),
    "an output that is an input": wired(([0], [0]), ([0], [2])),
    "a constant that is made": None,
}


def made_constant() -> bytes:
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    constant = model.tensor("c", (1, 4, 4, 2), scale=0.5, zero_point=3, data=np.ones((1, 4, 4, 2), np.int8))
    model.op("RELU", [x], [constant])
    model.op("RELU", [constant], [y])
    return model.build([x], [y])


@pytest.mark.parametrize("name", CYCLES)
def test_a_graph_that_waits_for_itself(name: str) -> None:
    data = CYCLES[name] or made_constant()
    with at_most(calls=300_000), pytest.raises(CompileError) as caught:
        check(read_tflite("m.tflite", data))
    assert caught.value.problems and all(problem.hint for problem in caught.value.problems), caught.value


def calling(then: int, otherwise: int) -> tuple[ModelBuilder, list[int], list[int]]:
    """Graph image -> image that calls subgraphs."""
    model = ModelBuilder()
    chosen, x, y = flag(model, "chosen", True), image(model, "x"), image(model, "y")
    model.op("IF", [chosen, x], [y], then_subgraph_index=then, else_subgraph_index=otherwise)
    return model, [x], [y]


def looping(condition: int, body: int) -> tuple[ModelBuilder, list[int], list[int]]:
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op("WHILE", [x], [y], cond_subgraph_index=condition, body_subgraph_index=body)
    return model, [x], [y]


def once(index: int) -> tuple[ModelBuilder, list[int], list[int]]:
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op("CALL_ONCE", [], [], init_subgraph_index=index)
    model.op("RELU", [x], [y])
    return model, [x], [y]


def of(main, *called) -> bytes:
    model, inputs, outputs = main
    return model.build(inputs, outputs, called=called)


RECURSIONS = {
    "IF of the graph itself": of(calling(0, 0)),
    "IF of a graph that calls itself": of(calling(1, 2), calling(1, 2), unary("RELU")),
    "two graphs that call each other": of(calling(1, 2), calling(2, 2), calling(1, 1)),
    "a graph that calls the main one": of(calling(1, 1), calling(0, 0)),
    "a loop whose body is the loop": of(looping(1, 0), unary("RELU")),
    "a loop whose condition is the loop": of(looping(0, 1), unary("RELU")),
    "a body that calls the main graph": of(looping(1, 2), unary("RELU"), calling(0, 0)),
    "CALL_ONCE of the graph itself": of(once(0)),
    "CALL_ONCE of a graph that calls it once": of(once(1), once(1)),
    "a subgraph that is not there": of(calling(1, 7), unary("RELU")),
    "a subgraph of a negative number": of(calling(-1, -1)),
    "a tree of 2^40 calls": of(*(calling(n + 1, n + 1) for n in range(40)), unary("RELU")),
}


@pytest.mark.parametrize("name", RECURSIONS)
def test_subgraphs_that_call_themselves(name: str) -> None:
    with at_most(calls=1_000_000), pytest.raises(CompileError) as caught:
        check(read_tflite("m.tflite", RECURSIONS[name]))
    assert caught.value.problems, caught.value
