"""Models with IF and WHILE, each for one difficulty: {name: bytes of a .tflite file}."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from cases.common import flexbuffer
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops.program.control_flow import called_graphs

IMAGE = (1, 4, 4, 2)
QUANT = {"scale": 0.5, "zero_point": 3}
#: a graph with its inputs and outputs, as ModelBuilder.build takes it
Called = tuple[ModelBuilder, Sequence[int], Sequence[int]]


def image(model: ModelBuilder, name: str) -> int:
    return model.tensor(name, IMAGE, **QUANT)


def flag(model: ModelBuilder, name: str, value: bool | None = None) -> int:
    return model.tensor(name, (1,), "bool", data=None if value is None else np.array([value]))


def number(model: ModelBuilder, name: str, value: int | None = None) -> int:
    return model.tensor(name, (1,), "int32", data=None if value is None else np.array([value], np.int32))


def unary(kind: str) -> Called:
    """Graph image -> image."""
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op(kind, [x], [y])
    return model, [x], [y]


def identity() -> Called:
    model = ModelBuilder()
    x = image(model, "x")
    return model, [x], [x]


def convolution(seed: int = 0) -> Called:
    """Graph image -> image, with weights of its own."""
    rng, model = np.random.default_rng(seed), ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    weights = rng.integers(-127, 128, (2, 3, 3, 2), np.int8, endpoint=False)
    w = model.tensor("w", weights.shape, scale=[0.02, 0.03], data=weights)
    b = model.tensor("b", (2,), "int32", scale=[0.01, 0.015], data=rng.integers(-99, 99, 2).astype(np.int32))
    model.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1)
    return model, [x], [y]


def below(limit: int) -> Called:
    """Graph image, number -> number < limit."""
    model = ModelBuilder()
    x, n, most, going_on = image(model, "x"), number(model, "n"), number(model, "most", limit), flag(model, "going_on")
    model.op("LESS", [n, most], [going_on])
    return model, [x, n], [going_on]


def iteration(kind: str = "HARD_SWISH") -> Called:
    """Graph image, number -> kind(image + image), number + 1."""
    model = ModelBuilder()
    x, n, one, next_n = image(model, "x"), number(model, "n"), number(model, "one", 1), number(model, "next n")
    twice, y = image(model, "twice"), image(model, "y")
    model.op("ADD", [n, one], [next_n])
    model.op("ADD", [x, x], [twice])
    model.op(kind, [twice], [y])
    return model, [x, n], [y, next_n]


def loop(condition: Called, body: Called, *more: Called, start: int = 0) -> bytes:
    """Model RELU(WHILE(image, start)), and the number of iterations."""
    model = ModelBuilder()
    x, n, y, iterations, z = (
        image(model, "x"),
        number(model, "n", start),
        image(model, "y"),
        number(model, "t"),
        image(model, "z"),
    )
    model.op("WHILE", [x, n], [y, iterations], cond_subgraph_index=1, body_subgraph_index=2)
    model.op("RELU", [y], [z])
    return model.build([x], [z, iterations], called=[condition, body, *more])


def choice(then: Called, otherwise: Called, *more: Called, constant: bool | None = None) -> bytes:
    """Model HARD_SWISH(IF(flag, image))."""
    model = ModelBuilder()
    chosen, x, y, z = flag(model, "chosen", constant), image(model, "x"), image(model, "y"), image(model, "z")
    model.op("IF", [chosen, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    model.op("HARD_SWISH", [y], [z])
    inputs = [x] if constant is not None else [chosen, x]
    return model.build(inputs, [z], called=[then, otherwise, *more])


def _swapping_iteration() -> Called:
    """Graph a, b, n -> b, a + b, n + 1."""
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
    x, n0, c, d, iterations = (
        image(model, "x"),
        number(model, "n", 0),
        image(model, "c"),
        image(model, "d"),
        number(model, "t"),
    )
    y = image(model, "y")
    model.op("LEAKY_RELU", [x], [y], alpha=0.3)
    model.op("WHILE", [x, y, n0], [c, d, iterations], cond_subgraph_index=1, body_subgraph_index=2)
    return model.build([x], [c, d], called=[(condition, [a, b, n], [going_on]), _swapping_iteration()])


def _one_iteration() -> bytes:
    """A loop whose condition is one of its values. The body sets it to a constant and passes the image on."""
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
    """A loop that runs another graph in every second iteration."""
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
    """Graphs that return only constants."""

    def constant(seed: int) -> Called:
        model = ModelBuilder()
        x, value = image(model, "x"), np.random.default_rng(seed).integers(-128, 128, IMAGE).astype(np.int8)
        return model, [x], [model.tensor("c", IMAGE, data=value, **QUANT)]

    return choice(constant(0), constant(1))


def resource(model: ModelBuilder, name: str) -> int:
    return model.tensor(name, (1,), "resource")


def accumulating(handed: bool = False, to: str = "v") -> Called:
    """Graph [handle,] image -> the variable after the image was added to it. `handed`: the caller passes the handle."""
    model = ModelBuilder()
    handle, x, before, after = resource(model, "h"), image(model, "x"), image(model, "before"), image(model, "after")
    if not handed:
        model.op("VAR_HANDLE", [], [handle], shared_name=to, container="")
    model.op("READ_VARIABLE", [handle], [before])
    model.op("ADD", [before, x], [after])
    model.op("ASSIGN_VARIABLE", [handle, after], [])
    return model, [handle, x] if handed else [x], [after]


def initializing(*names: str, value: int = 7) -> Called:
    """A graph that initializes variables."""
    model = ModelBuilder()
    for number, name in enumerate(names):
        handle = resource(model, f"h{number}")
        data = np.full(IMAGE, value + number, np.int8)
        model.op("VAR_HANDLE", [], [handle], shared_name=name, container="")
        model.op("ASSIGN_VARIABLE", [handle, model.tensor(f"c{number}", IMAGE, **QUANT, data=data)], [])
    return model, [], []


def accumulating_from(subgraph: int, kind: str = "RELU", once: bool = True) -> Called:
    """Model image -> `kind` of the variable after the image was added to it. CALL_ONCE runs a subgraph first."""
    model = ModelBuilder()
    handle, x, before, after, y = (
        resource(model, "h"), image(model, "x"), image(model, "before"), image(model, "after"), image(model, "y"),
    )  # fmt: skip
    if once:
        model.op("CALL_ONCE", [], [], init_subgraph_index=subgraph)
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("READ_VARIABLE", [handle], [before])
    model.op("ADD", [before, x], [after])
    model.op("ASSIGN_VARIABLE", [handle, after], [])
    model.op(kind, [after], [y])
    return model, [x], [y]


def initialized_late() -> bytes:
    """A main graph that uses its variables before it initializes them."""
    model = ModelBuilder()
    x, y, handle = image(model, "x"), image(model, "y"), resource(model, "h")
    before, after, last = image(model, "before"), image(model, "after"), image(model, "last")
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("READ_VARIABLE", [handle], [before])
    model.op("ADD", [before, x], [after])
    model.op("ASSIGN_VARIABLE", [handle, after], [])
    model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    model.op("READ_VARIABLE", [handle], [last])
    model.op("ADD", [last, after], [y])
    return model.build([x], [y], called=[initializing("v", "w")])


def initialized_in_a_loop() -> bytes:
    """A WHILE whose body initializes, in every iteration, the variable that it adds to."""
    body, (x,), (y,) = accumulating_from(3)
    n, one, next_n = number(body, "n"), number(body, "one", 1), number(body, "next n")
    body.op("ADD", [n, one], [next_n])
    return loop(below(3), (body, [x, n], [y, next_n]), initializing("v"))


def with_handle(called: Called) -> Called:
    """A graph that also gets a handle, which it doesn't use."""
    model, inputs, outputs = called
    return model, [resource(model, "unused"), *inputs], outputs


def handed_variable() -> bytes:
    """A variable that is assigned by the main graph and by one of two graphs, which gets its handle."""
    model = ModelBuilder()
    chosen, x, y, handle = flag(model, "chosen"), image(model, "x"), image(model, "y"), resource(model, "h")
    z, kept = image(model, "z"), image(model, "kept")
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("IF", [chosen, handle, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    model.op("READ_VARIABLE", [handle], [kept])
    model.op("RELU", [kept], [z])
    model.op("ASSIGN_VARIABLE", [handle, z], [])
    return model.build([chosen, x], [y, kept], called=[accumulating(handed=True), with_handle(unary("HARD_SWISH"))])


def _stored_alone() -> Called:
    """Graph image -> the same image, which it also stores."""
    model = ModelBuilder()
    handle, x = resource(model, "h"), image(model, "x")
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("ASSIGN_VARIABLE", [handle, x], [])
    return model, [x], [x]


def _loop_on_a_handle() -> bytes:
    """A loop of three iterations; each adds the image to a variable whose handle is a value of the loop."""
    condition = ModelBuilder()
    h, x, n, most, going_on = (
        resource(condition, "h"), image(condition, "x"), number(condition, "n"), number(condition, "most", 3),
        flag(condition, "going_on"),
    )  # fmt: skip
    condition.op("LESS", [n, most], [going_on])
    body, (handle, y), (after,) = accumulating(handed=True)
    m, one, next_m = number(body, "n"), number(body, "one", 1), number(body, "next n")
    body.op("ADD", [m, one], [next_m])
    model = ModelBuilder()
    a, x0, n0, kept = resource(model, "a"), image(model, "x"), number(model, "n", 0), image(model, "kept")
    b, x1, iterations, last = resource(model, "b"), image(model, "y"), number(model, "iterations"), image(model, "last")
    model.op("VAR_HANDLE", [], [a], shared_name="v", container="")
    model.op("READ_VARIABLE", [a], [kept])
    model.op("ASSIGN_VARIABLE", [a, kept], [])
    model.op("WHILE", [a, x0, n0], [b, x1, iterations], cond_subgraph_index=1, body_subgraph_index=2)
    model.op("READ_VARIABLE", [b], [last])
    called = [(condition, [h, x, n], [going_on]), (body, [handle, y, m], [handle, after, next_m])]
    return model.build([x0], [x1, iterations, last], called=called)


def _filtering() -> Called:
    """Graph image -> image by an SVDF, which keeps its inputs."""
    rng, model = np.random.default_rng(4), ModelBuilder()
    x, flat, y = image(model, "x"), model.tensor("flat", (1, 32), **QUANT), image(model, "y")
    feature = model.tensor("f", (32, 32), scale=0.02, data=rng.integers(-127, 128, (32, 32)).astype(np.int8))
    time = model.tensor("t", (32, 3), "int16", scale=0.001, data=rng.integers(-9999, 9999, (32, 3)).astype(np.int16))
    state = model.tensor("state", (1, 96), "int16", scale=0.01, zero_point=0, is_variable=True)
    model.op("RESHAPE", [x], [flat], new_shape=(1, 32))
    out = model.tensor("out", (1, 32), **QUANT)
    bias = model.tensor("bias", (32,), "int32", scale=1e-5, data=rng.integers(-999, 999, 32).astype(np.int32))
    model.op("SVDF", [flat, feature, time, bias, state], [out], rank=1, fused_activation_function="RELU")
    model.op("RESHAPE", [out], [y], new_shape=IMAGE)
    return model, [x], [y]


def _state_two_levels_down() -> bytes:
    """Nested IFs with the same variable on all levels."""
    middle = ModelBuilder()
    always, x, y = flag(middle, "always", True), image(middle, "x"), image(middle, "y")
    middle.op("IF", [always, x], [y], then_subgraph_index=3, else_subgraph_index=4)
    return choice((middle, [x], [y]), accumulating(), accumulating(), unary("RELU"))


#: whose graphs keep states: streams of one frame after the other
STREAMS: dict[str, Callable[[], bytes]] = {
    "a variable of a graph": lambda: choice(accumulating(), unary("RELU")),
    "a variable of two graphs": lambda: choice(accumulating(), accumulating()),
    "two variables": lambda: choice(accumulating(), accumulating(to="w")),
    "a variable whose handle is handed on": handed_variable,
    "a graph that stores alone": lambda: choice(_stored_alone(), accumulating()),
    "a loop on a handle": _loop_on_a_handle,
    "an SVDF or nothing": lambda: choice(_filtering(), identity()),
    "a variable two levels down": _state_two_levels_down,
    "initialized in one of two graphs": lambda: choice(accumulating_from(3), unary("RELU"), initializing("v")),
    "initialized by the second of two": lambda: choice(
        accumulating_from(3, once=False), accumulating_from(3), initializing("v")
    ),
    "initialized by both, each once": lambda: choice(
        accumulating_from(3), accumulating_from(4, "HARD_SWISH"), initializing("v"), initializing("w", "v", value=-9)
    ),
    "initialized in a loop": initialized_in_a_loop,
    "initialized after its use": initialized_late,
}

MODELS: dict[str, Callable[[], bytes]] = {
    "a loop of five iterations": lambda: loop(below(5), iteration()),
    "a loop of no iteration": lambda: loop(below(5), iteration(), start=7),
    "values that change places": _swapped,
    "a condition that is a value": _one_iteration,
    "one of two": lambda: choice(unary("RELU"), unary("HARD_SWISH")),
    "a convolution or nothing": lambda: choice(convolution(), identity()),
    "nothing or nothing": lambda: choice(identity(), identity()),
    "constants": _constants,
    "a constant condition": lambda: choice(convolution(), unary("RELU"), constant=True),
    "a choice in a loop": _choice_in_loop,
    "graphs that are shared": _shared,
}


def of_kinds() -> dict[str, list[str]]:
    """Kind -> names of the models with such operators, in the main graph or in subgraphs."""
    found: dict[str, list[str]] = {"IF": [], "WHILE": []}
    for name, make in (MODELS | STREAMS).items():
        graph = read_tflite(name, make())
        kinds = {op.kind for op in graph.ops}
        kinds |= {op.kind for outer in graph.ops for _, called in called_graphs(outer) for op in called.ops}
        for kind in kinds & set(found):
            found[kind].append(name)
    return found


# --- graphs that wait for more inputs --------------------------------------------------------


def _window(model: ModelBuilder, x: int, cycles: int) -> int:
    """The first rows of the last four images, as an image: a CIRCULAR_BUFFER."""
    ends = [
        model.tensor(n, (4,), "int32", data=np.array(v, np.int32)) for n, v in (("b", (0,) * 4), ("s", (1, 1, 4, 2)))
    ]
    part, frame = model.tensor("part", (1, 1, 4, 2), **QUANT), model.tensor("frame", (1, 1, 1, 8), **QUANT)
    kept, y = model.tensor("kept", (1, 4, 1, 8), **QUANT, is_variable=True), image(model, "window")
    model.op("SLICE", [x, *ends], [part])
    model.op("RESHAPE", [part], [frame], new_shape=(1, 1, 1, 8))
    options = flexbuffer({"cycles_max": cycles})
    model.op("CUSTOM", [frame], [kept], table=False, custom_code="CIRCULAR_BUFFER", custom_options=options)
    model.op("RESHAPE", [kept], [y], new_shape=(1, 4, 4, 2))
    return y


def waiting(cycles: int = 2) -> Called:
    """Graph image -> the window, which has a result every few runs."""
    model = ModelBuilder()
    x = image(model, "x")
    return model, [x], [_window(model, x, cycles)]


def _iteration_that_waits() -> Called:
    """Graph image, number -> RELU(window), number + 1."""
    model = ModelBuilder()
    x, n, one, next_n = image(model, "x"), number(model, "n"), number(model, "one", 1), number(model, "next n")
    y = image(model, "y")
    model.op("ADD", [n, one], [next_n])
    model.op("RELU", [_window(model, x, 2)], [y])
    return model, [x, n], [y, next_n]


def _choice_of(first: int, second: int) -> Called:
    """Graph image -> IF(true, image) with these graphs, after a variable that counts."""
    model = ModelBuilder()
    chosen, x, y, z = flag(model, "chosen", True), image(model, "x"), image(model, "y"), image(model, "z")
    model.op("RELU", [x], [y])
    model.op("IF", [chosen, y], [z], then_subgraph_index=first, else_subgraph_index=second)
    return model, [x], [z]


AWAITING: dict[str, Callable[[], bytes]] = {
    "one of two": lambda: choice(unary("RELU"), waiting()),
    "both": lambda: choice(waiting(3), waiting()),
    "a loop": lambda: loop(below(3), _iteration_that_waits()),
    "two levels down": lambda: choice(unary("RELU"), _choice_of(3, 1), waiting()),
}
