"""Models that keep caches in variables and replace parts of them, at places that a run is told or that are constant.

Random ones read old and new contents before and after an update, with products of matrices and otherwise, update a
variable several times in a run, assign it as a whole, read it again, and give its contents back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from random_graphs import Sketch, Value
from stream_models import add_handle, initialization

#: what a random model does, one after the other
ACTIONS = (
    "update", "update", "update", "update twice", "in another shape", "dropped", "read", "assign", "scores", "scores",
    "mixed", "mixed", "left", "heads", "heads", "out", "added", "both",
)  # fmt: skip


@dataclass(frozen=True)
class Cache:
    """A variable [1, length, width]."""

    name: str
    handle: int
    like: Value


class Caches:
    """A model under construction. `held`: contents of variables that were read or written; `results`: outputs of the
    model."""

    def __init__(self, seed: int, dtype: str = "int8", rows: int = 1, wide: bool = False, initialized: bool = False):
        self.sketch, self.rows, self.wide = Sketch(seed, dtype=dtype), rows, wide
        self.inputs: list[Value] = []
        self.held: list[Value] = []
        self.results: list[Value] = []
        self.caches: list[Cache] = []
        self.initial: dict[str, tuple[np.ndarray, float, int]] | None = {} if initialized else None
        if initialized:
            self.sketch.model.op("CALL_ONCE", [], [], init_subgraph_index=1)

    def cache(self, length: int, width: int) -> Cache:
        s, name = self.sketch, f"cache{len(self.caches)}"
        like = s.value((1, length, width))
        if self.initial is not None:
            dtype = np.dtype(like.dtype)
            self.initial[name] = s.rng.integers(-99, 99, like.shape).astype(dtype), like.stored_scale, like.zero_point
        self.caches.append(Cache(name, add_handle(s.model, name), like))
        return self.caches[-1]

    def input(self, *shape: int) -> Value:
        self.inputs.append(self.sketch.value(shape))
        return self.inputs[-1]

    def like(self, x: Value, shape=None) -> Value:
        return self.sketch.value(shape or x.shape, x.scale, x.zero_point)

    def starts(self, room: tuple[int, ...], constant: bool = False) -> int:
        """Start indexes of a part: from an input, or constant, some of them out of range."""
        model, dtype = self.sketch.model, "int64" if self.wide else "int32"
        if constant:
            data = np.array([self.sketch.rng.integers(-2, each + 3) for each in room], dtype)
            return model.tensor(f"starts{len(model._tensors)}", data.shape, dtype, data=data)
        where = Value(len(model._tensors), (len(room),), 1.0, 0, dtype)
        model.tensor(f"where{where.index}", where.shape, dtype)
        self.inputs.append(where)
        return where.index

    def read(self, cache: Cache) -> Value:
        value = self.like(cache.like)
        self.sketch.model.op("READ_VARIABLE", [cache.handle], [value.index])
        return value

    def replaced(self, data: Value, constant: bool = False, shape: tuple[int, ...] = ()) -> Value:
        """The contents with one part replaced, by default of random size and most often whole rows."""
        s = self.sketch
        if not shape and s.rng.random() < 0.6:
            shape = (1, min(self.rows, data.shape[1]), *data.shape[2:])
        shape = shape or tuple(int(s.rng.choice([1, dim, s.rng.integers(1, dim + 1)])) for dim in data.shape)
        part, result = s.value(shape, data.scale, data.zero_point), self.like(data)
        self.inputs.append(part)
        starts = self.starts(tuple(np.subtract(data.shape, shape)), constant)
        s.model.op("DYNAMIC_UPDATE_SLICE", [data.index, part.index, starts], [result.index], table=False)
        return result

    def assign(self, cache: Cache, value: Value) -> None:
        self.sketch.model.op("ASSIGN_VARIABLE", [cache.handle, value.index], [])

    def update(self, cache: Cache, constant: bool = False) -> Value:
        value = self.replaced(self.read(cache), constant)
        self.assign(cache, value)
        return value

    # --- readers -------------------------------------------------------------------------------------

    def scores(self, x: Value) -> Value:
        return self.sketch.matmul(self.input(1, self.rows, x.shape[2]), x, adj_y=True)

    def mixed(self, x: Value) -> Value:
        return self.sketch.matmul(self.input(1, self.rows, x.shape[1]), x)

    def left(self, x: Value) -> Value:
        return self.sketch.matmul(x, self.input(1, x.shape[2], 3))

    def heads(self, x: Value) -> Value:
        """Scores of several heads, which are adjacent in each row."""
        s, (_, length, width) = self.sketch, x.shape
        count = next(n for n in (3, 2, 1) if width % n == 0)
        query = s.reshape(self.input(1, self.rows, width), (1, self.rows, count, width // count))
        keys = s.transpose(s.reshape(x, (1, length, count, width // count)), (0, 2, 1, 3))
        scores = s.matmul(s.transpose(query, (0, 2, 1, 3)), keys, adj_y=True)
        return s.matmul(scores, keys)

    def build(self) -> bytes:
        called = [] if self.initial is None else [initialization(self.initial)]
        ins, outs = ([v.index for v in values] for values in (self.inputs, dict.fromkeys(self.results)))
        return self.sketch.model.build(ins, outs, called=called)


def do(c: Caches, action: str, number: int) -> None:
    """Performs the action of a number on a cache and its contents."""
    s, cache = c.sketch, c.caches[number % len(c.caches)]
    held = c.held[number % len(c.held)] if c.held else None
    if action == "update":
        c.held.append(c.update(cache, constant=number % 3 == 0))
    elif action == "update twice":
        between = c.replaced(c.read(cache))
        c.held += [between] * (number % 2)
        c.held.append(c.replaced(between))
        c.assign(cache, c.held[-1])
    elif action == "in another shape":
        _, length, width = cache.like.shape
        value = c.replaced(s.reshape(c.read(cache), (length, 1, width)))
        c.assign(cache, s.reshape(value, cache.like.shape))
        c.held.append(s.reshape(value, cache.like.shape))
    elif action == "dropped":
        c.held.append(c.replaced(c.read(cache)))
    elif action == "read":
        c.held.append(c.read(cache))
    elif action == "assign":
        value = c.input(*cache.like.shape)
        c.assign(cache, value)
    elif held is None:
        do(c, "read", number)
    elif action == "out":
        c.results.append(held)
    elif action == "added":
        c.results.append(s.with_constant(held, "ADD"))
    elif action == "both":
        c.results.append(s.matmul(held, held, adj_y=True))
    else:
        c.results.append(getattr(c, action)(held))


def caches(seed: int, dtype: str = "int8", rows: int = 1, wide: bool = False, initialized: bool = False) -> bytes:
    """A random model: one to three caches, all assigned, and at least one result."""
    c = Caches(seed, dtype, rows, wide, initialized)
    rng = c.sketch.rng
    for _ in range(rng.integers(1, 4)):
        c.cache(int(rng.integers(2, 9)), int(rng.integers(1, 9)))
    for _ in range(rng.integers(2, 10)):
        do(c, str(rng.choice(ACTIONS)), int(rng.integers(0, 30)))
    for number in range(len(c.caches)):
        do(c, "update", number)
    do(c, "scores", int(rng.integers(0, 30)))
    return c.build()


def replacements() -> bytes:
    """Replaces contiguous and strided parts in caches and in copies of their contents."""
    c = Caches(2)
    for shape in ((1, 1, 8), (1, 3, 5)):
        kept, read = c.cache(6, 8), c.cache(6, 8)
        value = c.replaced(c.read(kept), shape=shape)
        c.assign(kept, value)
        c.update(read, constant=True)
        c.results += [c.scores(value), c.sketch.with_constant(c.replaced(c.read(read), shape=shape), "ADD")]
    return c.build()


@st.composite
def cache_models(draw, dtypes=("int8", "int8", "int16", "float32")) -> bytes:
    """Draws models of `caches`."""
    return caches(
        draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(dtypes)), draw(st.sampled_from([1, 1, 2, 5])),
        draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip
