"""Models whose IF and WHILE pass constants to their subgraphs: {name: bytes of a .tflite file}."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from control_flow_models import IMAGE, QUANT, Called, flag, image, number
from tflite_builder import ModelBuilder


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, IMAGE).astype(np.int8)


def of_two(kind: str) -> Called:
    """Graph image, image -> image: an elementwise operator."""
    model = ModelBuilder()
    x, c, y = image(model, "x"), image(model, "c"), image(model, "y")
    model.op(kind, [x, c], [y])
    return model, [x, c], [y]


def second() -> Called:
    """Graph image, image -> the second image."""
    model = ModelBuilder()
    x, c = image(model, "x"), image(model, "c")
    return model, [x, c], [c]


def to_a_choice(then: Called, otherwise: Called, calls: int = 1) -> bytes:
    """IF(flag, image, constant), `calls` times in sequence, each with its own constant."""
    model = ModelBuilder()
    chosen, x = flag(model, "chosen"), image(model, "x")
    last = x
    for call in range(calls):
        c, y = model.tensor(f"c{call}", IMAGE, data=values(call), **QUANT), image(model, f"y{call}")
        model.op("IF", [chosen, last, c], [y], then_subgraph_index=1, else_subgraph_index=2)
        last = y
    return model.build([chosen, x], [last], called=[then, otherwise])


def _loop_with(constant_changes: bool, given_back: bool) -> bytes:
    """Graph image, constant, number -> image + constant, the constant or another one, number + 1: three iterations."""
    condition = ModelBuilder()
    x0, c0, n0 = image(condition, "x"), image(condition, "c"), number(condition, "n")
    most, going_on = number(condition, "most", 3), flag(condition, "going_on")
    condition.op("LESS", [n0, most], [going_on])
    body = ModelBuilder()
    x1, c1, n1, one = image(body, "x"), image(body, "c"), number(body, "n"), number(body, "one", 1)
    y1, next_n, next_c = image(body, "y"), number(body, "next n"), image(body, "next c")
    body.op("ADD", [n1, one], [next_n])
    body.op("ADD", [x1, c1], [y1])
    if constant_changes:
        body.op("HARD_SWISH", [c1], [next_c])
    model = ModelBuilder()
    x, c, n = image(model, "x"), model.tensor("c", IMAGE, data=values(3), **QUANT), number(model, "n", 0)
    y, d, iterations, z = image(model, "y"), image(model, "d"), number(model, "t"), image(model, "z")
    model.op("WHILE", [x, c, n], [y, d, iterations], cond_subgraph_index=1, body_subgraph_index=2)
    model.op("ADD", [y, d], [z])
    called = [
        (condition, [x0, c0, n0], [going_on]),
        (body, [x1, c1, n1], [y1, next_c if constant_changes else c1, next_n]),
    ]
    return model.build([x], [z, d] if given_back else [z], called=called)


def _two_levels_down() -> bytes:
    """An IF that passes its constant on to another one."""
    middle = ModelBuilder()
    always, x, c, y = flag(middle, "always", True), image(middle, "x"), image(middle, "c"), image(middle, "y")
    middle.op("IF", [always, x, c], [y], then_subgraph_index=3, else_subgraph_index=4)
    model = ModelBuilder()
    chosen, a, b, z = flag(model, "chosen"), image(model, "x"), image(model, "y"), image(model, "z")
    constant = model.tensor("constant", IMAGE, data=values(5), **QUANT)
    model.op("IF", [chosen, a, constant], [b], then_subgraph_index=1, else_subgraph_index=2)
    model.op("RELU", [b], [z])
    called = [(middle, [x, c], [y]), of_two("ADD"), of_two("SUB"), second()]
    return model.build([chosen, a], [z], called=called)


def handed_weights() -> bytes:
    """Float weights of 4 KB that both graphs of an IF receive."""

    def dense(activation: str) -> Called:
        model = ModelBuilder()
        x, w = model.tensor("x", (1, 16), "float32"), model.tensor("w", (64, 16), "float32")
        y = model.tensor("y", (1, 64), "float32")
        model.op("FULLY_CONNECTED", [x, w, -1], [y], fused_activation_function=activation)
        return model, [x, w], [y]

    model, rng = ModelBuilder(), np.random.default_rng(1)
    x, c = model.tensor("x", (1, 16), "float32"), flag(model, "c")
    w = model.tensor("w", (64, 16), "float32", data=rng.normal(size=(64, 16)).astype(np.float32))
    y = model.tensor("y", (1, 64), "float32")
    model.op("IF", [c, x, w], [y], then_subgraph_index=1, else_subgraph_index=2)
    return model.build([x, c], [y], called=[dense("RELU"), dense("NONE")])


HANDED: dict[str, Callable[[], bytes]] = {
    "to one of two": lambda: to_a_choice(of_two("ADD"), of_two("SUB")),
    "to a graph that gives it back": lambda: to_a_choice(second(), of_two("ADD")),
    "to graphs of two choices": lambda: to_a_choice(of_two("ADD"), second(), calls=2),
    "to a loop": lambda: _loop_with(constant_changes=False, given_back=False),
    "to a loop that gives it back": lambda: _loop_with(constant_changes=False, given_back=True),
    "to a loop that changes it": lambda: _loop_with(constant_changes=True, given_back=True),
    "two levels down": _two_levels_down,
    "weights": handed_weights,
}
