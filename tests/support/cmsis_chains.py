"""Chains of layers that CMSIS-NN computes, each to be one group: what passes from one to the next lies in rings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from plan_parts import plan_groups, prepare
from random_graphs import Sketch, Value

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.context import with_objective
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.places import is_alias
from tinyfuse.targets import load_target

Chain = Callable[[Sketch], tuple[Value, Value]]


def _separable(s: Sketch) -> tuple[Value, Value]:
    """Odd height, strides 1 and 2, windows of 3 and 5 rows, both paddings: rings of one, three, five and more rows."""
    image = s.value((1, 23, 6, 3))
    x = s.conv(image, 8, (3, 3), (2, 1), activation="RELU")
    x = s.conv(s.depthwise(x, (3, 3)), 12, (1, 1), activation="RELU6")
    x = s.conv(s.depthwise(x, (5, 2), (2, 2), "VALID"), 5, (1, 1))
    return image, x


def _residual(s: Sketch) -> tuple[Value, Value]:
    """A ring with two readers, one of which lags: the sum reads rows that the convolution has already used."""
    image = s.value((1, 17, 5, 4))
    x = s.conv(image, 6, (1, 1))
    y = s.conv(s.conv(x, 6, (3, 3), activation="RELU"), 6, (3, 2))
    return image, s.conv(s.add(x, y), 7, (3, 1), (3, 1))


def _pooled(s: Sketch) -> tuple[Value, Value]:
    """Pools that overlap, skip rows, and begin in the padding."""
    image = s.value((1, 19, 7, 5))
    x = s.pool(s.conv(image, 8, (2, 3)), "MAX_POOL_2D", (3, 2), (2, 1), "SAME")
    x = s.pool(s.depthwise(x, (3, 1)), "AVERAGE_POOL_2D", (2, 2), (1, 2), "SAME")
    return image, s.pool(s.conv(x, 9, (1, 1)), "MAX_POOL_2D", (1, 1), (2, 1))


def _dilated(s: Sketch) -> tuple[Value, Value]:
    """Dilated windows, strides longer than windows, a depth multiplier."""
    image = s.value((1, 29, 4, 2))
    x = s.depthwise(image, (3, 3), dilation=(2, 1), multiplier=3)
    x = s.conv(x, 4, (3, 2), dilation=(3, 1), activation="RELU")
    return image, s.depthwise(s.conv(x, 6, (1, 1), (2, 1)), (4, 3), (1, 1))


def _column(s: Sketch) -> tuple[Value, Value]:
    """Rows of one pixel, and a last layer as high as its image."""
    image = s.value((1, 26, 1, 7))
    x = s.conv(s.conv(image, 9, (5, 1), (2, 1), "VALID"), 6, (2, 1))
    return image, s.depthwise(x, (x.shape[1], 1), padding="VALID")


CHAINS: dict[str, Chain] = {
    "separable": _separable, "residual": _residual, "pooled": _pooled, "dilated": _dilated, "column": _column,
}  # fmt: skip


def model_of(chain: Chain, seed: int = 5, dtype: str = "int8") -> bytes:
    """The .tflite of a chain."""
    sketch = Sketch(seed, dtype=dtype)
    image, last = chain(sketch)
    return sketch.build([image], [last])


def drawn_chain(rng: np.random.Generator) -> Chain:
    """A random chain of layers with minimal shapes."""

    def chain(s: Sketch) -> tuple[Value, Value]:
        image = x = s.value((1, int(rng.integers(3, 30)), int(rng.integers(1, 9)), int(rng.integers(1, 12))))
        older = [x]
        for _ in range(int(rng.integers(2, 7))):
            x = _drawn_layer(s, x, older, rng)
            older.append(x)
        return image, x

    return chain


def _drawn_layer(s: Sketch, x: Value, older: list[Value], rng: np.random.Generator) -> Value:
    kind = rng.choice(["conv", "depthwise", "pointwise", "pool", "add"])
    kernel = int(rng.integers(1, min(6, x.shape[1] + 1))), int(rng.integers(1, min(4, x.shape[2] + 1)))
    stride, padding = (int(rng.integers(1, 4)), int(rng.integers(1, 3))), str(rng.choice(["SAME", "VALID"]))
    activation, filters = str(rng.choice(["NONE", "RELU"])), int(rng.integers(1, 14))
    stride = stride if rng.random() < 0.4 else (1, 1)
    twins = [value for value in older[:-1] if value.shape == x.shape]
    if kind == "add" and twins:
        return s.add(x, twins[int(rng.integers(len(twins)))], activation)
    if kind == "pool":
        return s.pool(x, str(rng.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"])), kernel, stride, padding)
    if kind == "depthwise":
        return s.depthwise(x, kernel, stride, padding, activation=activation, multiplier=int(rng.choice([1, 1, 2])))
    if kind == "pointwise":
        return s.conv(x, filters, (1, 1), activation=activation)
    return s.conv(x, filters, kernel, stride, padding, activation=activation)


def one_group(data: bytes, target: str, name: str, at_once: int, optimize: str = "balanced", **options) -> Plan:
    """A plan with all operators in one group; a call makes up to `at_once` rows."""
    source, named = read_tflite("model.tflite", data), Options(name, kernels="cmsis-nn", optimize=optimize, **options)
    graph, context = prepare(source, load_target(target), named)
    ops = [op for op in graph.ops if not is_alias(op)]
    return plan_groups(source, graph, [ops], with_objective(context, at_once=at_once), named)
