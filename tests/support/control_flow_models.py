"""Models with IF and WHILE, one a difficulty: {name: bytes of a .tflite file}."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops.control_flow import called_graphs

IMAGE = (1, 4, 4, 2)
_QUANT = {"scale": 0.5, "zero_point": 3}
#: a graph with its inputs and outputs, as ModelBuilder.build takes it
Called = tuple[ModelBuilder, Sequence[int], Sequence[int]]


def image(model: ModelBuilder, name: str) -> int:
    return model.tensor(name, IMAGE, **_QUANT)


def flag(model: ModelBuilder, name: str, value: bool | None = None) -> int:
    return model.tensor(name, (1,), "bool", data=None if value is None else np.array([value]))


def number(model: ModelBuilder, name: str, value: int | None = None) -> int:
    return model.tensor(name, (1,), "int32", data=None if value is None else np.array([value], np.int32))


def unary(kind: str) -> Called:
    """image -> image."""
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op(kind, [x], [y])
    return model, [x], [y]


def identity() -> Called:
    model = ModelBuilder()
    x = image(model, "x")
    return model, [x], [x]


def convolution(seed: int = 0) -> Called:
    """image -> image, with weights of its own."""
    rng, model = np.random.default_rng(seed), ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    weights = rng.integers(-127, 128, (2, 3, 3, 2), np.int8, endpoint=False)
    w = model.tensor("w", weights.shape, scale=[0.02, 0.03], data=weights)
    b = model.tensor("b", (2,), "int32", scale=[0.01, 0.015], data=rng.integers(-99, 99, 2).astype(np.int32))
    model.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1)
    return model, [x], [y]


def below(limit: int) -> Called:
    """image, number -> number < limit."""
    model = ModelBuilder()
    x, n, most, going_on = image(model, "x"), number(model, "n"), number(model, "most", limit), flag(model, "going_on")
    model.op("LESS", [n, most], [going_on])
    return model, [x, n], [going_on]


def turn(kind: str = "HARD_SWISH") -> Called:
    """image, number -> kind(image + image), number + 1."""
    model = ModelBuilder()
    x, n, one, next_n = image(model, "x"), number(model, "n"), number(model, "one", 1), number(model, "next n")
    twice, y = image(model, "twice"), image(model, "y")
    model.op("ADD", [n, one], [next_n])
    model.op("ADD", [x, x], [twice])
    model.op(kind, [twice], [y])
    return model, [x, n], [y, next_n]


def loop(condition: Called, body: Called, *more: Called, start: int = 0) -> bytes:
    """RELU(WHILE(image, start)), and the number of turns."""
    model = ModelBuilder()
    x, n, y, turns, z = (
        image(model, "x"),
        number(model, "n", start),
        image(model, "y"),
        number(model, "t"),
        image(model, "z"),
    )
    model.op("WHILE", [x, n], [y, turns], cond_subgraph_index=1, body_subgraph_index=2)
    model.op("RELU", [y], [z])
    return model.build([x], [z, turns], called=[condition, body, *more])


def choice(then: Called, otherwise: Called, *more: Called, constant: bool | None = None) -> bytes:
    """HARD_SWISH(IF(flag, image))."""
    model = ModelBuilder()
    chosen, x, y, z = flag(model, "chosen", constant), image(model, "x"), image(model, "y"), image(model, "z")
    model.op("IF", [chosen, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    model.op("HARD_SWISH", [y], [z])
    inputs = [x] if constant is not None else [chosen, x]
    return model.build(inputs, [z], called=[then, otherwise, *more])


def _swapping_turn() -> Called:
    """a, b, n -> b, a + b, n + 1."""
    model = ModelBuilder()
    a, b, n, one = image(model, "a"), image(model, "b"), number(model, "n"), number(model, "one", 1)
    both, next_n = image(model, "both"), number(model, "next n")
    model.op("ADD", [a, b], [both])
    model.op("ADD", [n, one], [next_n])
    return model, [a, b, n], [b, both, next_n]


def _swapped() -> bytes:
    condition = ModelBuilder()
    a, b, n, most, going_on = (
        image(condition, "a"), image(condition, "b"), number(condition, "n"), number(condition, "most", 4),
        flag(condition, "going_on"),
    )  # fmt: skip
    condition.op("LESS", [n, most], [going_on])
    model = ModelBuilder()
    x, n0, c, d, turns = (
        image(model, "x"),
        number(model, "n", 0),
        image(model, "c"),
        image(model, "d"),
        number(model, "t"),
    )
    y = image(model, "y")
    model.op("LEAKY_RELU", [x], [y], alpha=0.3)
    model.op("WHILE", [x, y, n0], [c, d, turns], cond_subgraph_index=1, body_subgraph_index=2)
    return model.build([x], [c, d], called=[(condition, [a, b, n], [going_on]), _swapping_turn()])


def _one_turn() -> bytes:
    """The condition is a value of the loop itself, the body sets it to a constant, and hands on the image."""
    condition = ModelBuilder()
    going_on, x = flag(condition, "going_on"), image(condition, "x")
    body = ModelBuilder()
    flag(body, "before")
    x1, y1, stop = image(body, "x"), image(body, "y"), flag(body, "stop", False)
    body.op("RELU", [x1], [y1])
    model = ModelBuilder()
    wanted, x0, left, y0 = flag(model, "wanted"), image(model, "x"), flag(model, "left"), image(model, "y")
    model.op("WHILE", [wanted, x0], [left, y0], cond_subgraph_index=1, body_subgraph_index=2)
    return model.build(
        [wanted, x0], [y0, left], called=[(condition, [going_on, x], [going_on]), (body, [0, x1], [stop, y1])]
    )


def _choice_in_loop() -> bytes:
    """Every other turn another graph."""
    body = ModelBuilder()
    x, n, one, next_n = image(body, "x"), number(body, "n"), number(body, "one", 1), number(body, "next n")
    two, early, y = number(body, "two", 2), flag(body, "early"), image(body, "y")
    body.op("ADD", [n, one], [next_n])
    body.op("LESS", [n, two], [early])
    body.op("IF", [early, x], [y], then_subgraph_index=3, else_subgraph_index=4)
    return loop(below(4), (body, [x, n], [y, next_n]), convolution(1), unary("RELU6"))


def _shared() -> bytes:
    """Two IFs that run the same graphs."""
    model = ModelBuilder()
    a, b, x, y, z = flag(model, "a"), flag(model, "b"), image(model, "x"), image(model, "y"), image(model, "z")
    model.op("IF", [a, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    model.op("IF", [b, y], [z], then_subgraph_index=2, else_subgraph_index=1)
    return model.build([a, b, x], [z], called=[convolution(2), identity()])


def _constants() -> bytes:
    """Graphs that give back constants alone."""

    def constant(seed: int) -> Called:
        model = ModelBuilder()
        x, value = image(model, "x"), np.random.default_rng(seed).integers(-128, 128, IMAGE).astype(np.int8)
        return model, [x], [model.tensor("c", IMAGE, data=value, **_QUANT)]

    return choice(constant(0), constant(1))


MODELS: dict[str, Callable[[], bytes]] = {
    "a loop of five turns": lambda: loop(below(5), turn()),
    "a loop of no turn": lambda: loop(below(5), turn(), start=7),
    "values that change places": _swapped,
    "a condition that is a value": _one_turn,
    "one of two": lambda: choice(unary("RELU"), unary("HARD_SWISH")),
    "a convolution or nothing": lambda: choice(convolution(), identity()),
    "nothing or nothing": lambda: choice(identity(), identity()),
    "constants": _constants,
    "a constant condition": lambda: choice(convolution(), unary("RELU"), constant=True),
    "a choice in a loop": _choice_in_loop,
    "graphs that are shared": _shared,
}


def of_kinds() -> dict[str, list[str]]:
    """Kind -> the names of the models that have such operators, in the main graph or in others."""
    found: dict[str, list[str]] = {"IF": [], "WHILE": []}
    for name, make in MODELS.items():
        graph = read_tflite(name, make())
        kinds = {op.kind for op in graph.ops}
        kinds |= {op.kind for outer in graph.ops for _, called in called_graphs(outer) for op in called.ops}
        for kind in kinds & set(found):
            found[kind].append(name)
    return found
