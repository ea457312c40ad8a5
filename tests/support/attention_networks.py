"""Blocks of transformers as converters write them: heads split and merged by RESHAPE and TRANSPOSE, layer normalization
of MEAN, SQUARED_DIFFERENCE and RSQRT, GELU by a logistic function, embeddings by GATHER. And random ones.

`Blocks` holds how a converter writes what has several forms: which dimensions tokens have around dense layers, how keys
are transposed, whether scores are scaled and masked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from random_graphs import Sketch, Value
from stream_models import add_handle


@dataclass(frozen=True)
class Form:
    """flat: dense layers take [T, D], behind a RESHAPE, as litert-torch writes them, else [1, T, D], as Keras' do.
    keys: "adjoint" (adj_y), or "transposed" with their matrices' dimensions changed by the TRANSPOSE of the heads, or
    by one of their own ("twice"). scaled: what is multiplied by a constant, "scores" or "queries". mask: a constant is
    added to the scores."""

    flat: bool = False
    keys: str = "adjoint"
    scaled: str = ""
    mask: bool = False


#: as Keras writes them
PLAIN = Form()


class Blocks:
    """Layers over [1, T, D], written in one form."""

    def __init__(self, seed: int, dtype: str = "int8", form: Form = PLAIN):
        self.sketch, self.form = Sketch(seed, dtype=dtype), form

    def dense(self, x: Value, units: int) -> Value:
        s = self.sketch
        if not self.form.flat:
            return s.dense(x, units)
        _, tokens, width = x.shape
        return s.reshape(s.dense(s.reshape(x, (tokens, width)), units), (1, tokens, units))

    def heads(self, x: Value, heads: int, order=(0, 2, 1, 3)) -> Value:
        """[1, T, D] -> [1, heads, T, D / heads], or in another order."""
        _, tokens, width = x.shape
        return self.sketch.transpose(self.sketch.reshape(x, (1, tokens, heads, width // heads)), order)

    def attention(self, x: Value, heads: int, memory: Value | None = None) -> Value:
        """Attention of x to itself, or to other vectors."""
        s, f, (_, tokens, width) = self.sketch, self.form, x.shape
        memory = memory or x
        query = self.heads(self.dense(x, width), heads)
        if f.scaled == "queries":
            query = s.with_constant(query, "MUL")
        key = self.dense(memory, width)
        key = self.heads(key, heads, (0, 2, 3, 1) if f.keys == "transposed" else (0, 2, 1, 3))
        key = s.transpose(key, (0, 1, 3, 2)) if f.keys == "twice" else key
        scores = s.matmul(query, key, adj_y=f.keys == "adjoint")
        if f.scaled == "scores":
            scores = s.with_constant(scores, "MUL")
        if f.mask:
            scores = s.with_constant(scores, "ADD", (1, 1, *scores.shape[2:]))
        mixed = s.matmul(s.softmax(scores), self.heads(self.dense(memory, width), heads))
        return self.dense(s.reshape(s.transpose(mixed, (0, 2, 1, 3)), (1, tokens, width)), width)

    def normalized(self, x: Value) -> Value:
        """Layer normalization."""
        s, shape = self.sketch, (*x.shape[:-1], 1)
        mean = self.mean(x, s.value(shape, x.scale, x.zero_point))
        spread = s.value(x.shape, float(np.float32(x.scale**2 * 100)), -128)
        s.model.op("SQUARED_DIFFERENCE", [x.index, mean.index], [spread.index])
        variance = self.mean(spread, s.value(shape, spread.scale, -128))
        variance = self.plus(variance, spread.scale)
        deviation = s.value(shape, float(np.float32(1 / np.sqrt(spread.scale) / 250)), -128)
        s.model.op("RSQRT", [variance.index], [deviation.index])
        centred = s.value(x.shape, x.scale, 0)
        s.model.op("SUB", [x.index, mean.index], [centred.index], fused_activation_function="NONE")
        result = s.value(x.shape, 0.03, 0)
        s.model.op("MUL", [centred.index, deviation.index], [result.index], fused_activation_function="NONE")
        return s.scale_channels(s.scale_channels(result, "MUL"), "ADD")

    def plus(self, x: Value, constant: float) -> Value:
        """Adds a constant to x (the epsilon of a variance), quantized as finely as x."""
        s = self.sketch
        number = Value(len(s.model._tensors), (), constant, 0, x.dtype)
        if x.dtype == "float32":
            s.model.tensor(f"epsilon{number.index}", (), x.dtype, data=np.full((), constant, np.float32))
        else:
            one = np.ones((), x.dtype)
            s.model.tensor(f"epsilon{number.index}", (), x.dtype, scale=number.stored_scale, zero_point=0, data=one)
        y = s.value(x.shape, x.scale, x.zero_point)
        s.model.op("ADD", [x.index, number.index], [y.index], fused_activation_function="NONE")
        return y

    def mean(self, x: Value, y: Value, axes=(2,)) -> Value:
        s = self.sketch
        keep = len(x.shape) == len(y.shape)
        s.model.op("MEAN", [x.index, s.constant(list(axes))], [y.index], keep_dims=keep)
        return y

    def gelu(self, x: Value) -> Value:
        """GELU, approximated as x times a logistic function of a multiple of x."""
        s = self.sketch
        return s.add(x, s.unary(s.with_constant(x, "MUL"), "LOGISTIC"), kind="MUL")

    def block(self, x: Value, heads: int, wider: int = 4) -> Value:
        """Attention and two dense layers, each behind a normalization and with a residual."""
        s, width = self.sketch, x.shape[-1]
        x = s.add(x, self.attention(self.normalized(x), heads))
        return s.add(x, self.dense(self.gelu(self.dense(self.normalized(x), wider * width)), width))


def vision(side: int = 6, width: int = 16, heads: int = 2, dtype: str = "int8", form: Form = PLAIN, seed: int = 5) -> bytes:  # fmt: skip
    """A ViT: patches of an image with sides of side * 4 pixels, positions, a block, the mean of all tokens, a
    classifier."""
    b = Blocks(seed, dtype, form)
    s = b.sketch
    image = s.value((1, 4 * side, 4 * side, 3))
    x = s.reshape(s.conv(image, width, (4, 4), (4, 4), "VALID"), (1, side * side, width))
    x = b.block(s.with_constant(x, "ADD", x.shape), heads)
    pooled = b.mean(b.normalized(x), s.value((1, width)), (1,))
    return s.build([image], [s.fully_connected(pooled, 5)])


def text(tokens: int = 24, width: int = 16, heads: int = 2, dtype: str = "int8", form: Form = PLAIN, words: int = 50, seed: int = 7) -> bytes:  # fmt: skip
    """A language model: token numbers become vectors, positions, a block, and for each token a prediction of the next
    one."""
    b = Blocks(seed, dtype, form)
    s = b.sketch
    table = s.rng.integers(-127, 128, (words, width))
    number = Value(len(s.model._tensors), (1, tokens), 1.0, 0, "int32")
    s.model.tensor("words", number.shape, "int32")
    rows = Value(len(s.model._tensors), (words, width), 0.03, 0, dtype)
    if dtype == "float32":
        s.model.tensor("table", rows.shape, dtype, data=np.asarray(table * np.float32(0.03), np.float32))
    else:
        s.model.tensor("table", rows.shape, dtype, scale=rows.stored_scale, zero_point=0, data=table.astype(dtype))
    x = s.value((1, tokens, width), rows.scale, 0)
    s.model.op("GATHER", [rows.index, number.index], [x.index], axis=0)
    x = b.block(s.with_constant(x, "ADD", x.shape), heads)
    return s.build([number], [b.dense(b.normalized(x), 9)])


def attention(tokens: int = 9, width: int = 12, heads: int = 3, dtype: str = "int8", form: Form = PLAIN, seed: int = 7) -> bytes:  # fmt: skip
    """An attention layer and its residual."""
    b = Blocks(seed, dtype, form)
    x = b.sketch.value((1, tokens, width))
    return b.sketch.build([x], [b.sketch.add(x, b.attention(x, heads))])


def feed_forward(tokens: int = 5, width: int = 8, dtype: str = "int8", form: Form = PLAIN, seed: int = 7) -> bytes:
    """A normalization, two dense layers and their residual, and the mean of all tokens."""
    b = Blocks(seed, dtype, form)
    s = b.sketch
    x = s.value((1, tokens, width))
    y = s.add(x, b.dense(b.gelu(b.dense(b.normalized(x), 2 * width)), width))
    return s.build([x], [y, b.mean(y, s.value((1, width)), (1,))])


def decoder(most: int = 12, width: int = 8, heads: int = 2, dtype: str = "int8", seed: int = 11, tokens: int = 1) -> bytes:  # fmt: skip
    """A decoder step: inputs are vectors of one or several tokens, their position and a mask; keys and values of all
    tokens so far are kept in variables."""
    b = Blocks(seed, dtype)
    s = b.sketch
    token = s.value((1, tokens, width))
    where = Value(len(s.model._tensors), (3,), 1.0, 0, "int32")
    s.model.tensor("where", (3,), "int32")
    mask = s.value((1, 1, tokens, most))
    y = b.normalized(token)
    query = b.heads(b.dense(y, width), heads)
    key, value = (_kept(b, name, b.dense(y, width), where, most) for name in ("keys", "values"))
    scores = s.add(s.matmul(query, b.heads(key, heads), adj_y=True), mask)
    mixed = s.matmul(s.softmax(scores), b.heads(value, heads))
    merged = s.reshape(s.transpose(mixed, (0, 2, 1, 3)), (1, tokens, width))
    return s.build([token, where, mask], [s.add(token, b.dense(merged, width))])


def _kept(b: Blocks, name: str, new: Value, where: Value, most: int) -> Value:
    """A variable [1, most, D] of all vectors so far, with the new one at its position."""
    s, handle = b.sketch, add_handle(b.sketch.model, name)
    before, after = (s.value((1, most, new.shape[2]), new.scale, new.zero_point) for _ in range(2))
    s.model.op("READ_VARIABLE", [handle], [before.index])
    s.model.op("DYNAMIC_UPDATE_SLICE", [before.index, new.index, where.index], [after.index], table=False)
    s.model.op("ASSIGN_VARIABLE", [handle, after.index], [])
    return after


FORMS = (
    Form(), Form(flat=True), Form(keys="transposed", scaled="scores"), Form(flat=True, keys="twice", mask=True),
    Form(scaled="queries", mask=True),
)  # fmt: skip


@st.composite
def attention_networks(draw) -> bytes:
    """A few blocks over vectors, in a random form."""
    form = Form(
        draw(st.booleans()), draw(st.sampled_from(["adjoint", "transposed", "twice"])),
        draw(st.sampled_from(["", "scores", "queries"])), draw(st.booleans()),
    )  # fmt: skip
    b = Blocks(draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(["int8", "int8", "int8", "float32"])), form)
    heads, tokens = draw(st.integers(1, 4)), draw(st.integers(1, 19))
    width = heads * draw(st.integers(1, 9))
    s = b.sketch
    x = first = s.value((1, tokens, width))
    inputs = [x]
    for _ in range(draw(st.integers(1, 3))):
        layer = draw(st.sampled_from(["attention", "cross", "normalized", "dense", "gelu", "block"]))
        if layer == "attention":
            x = s.add(x, b.attention(x, heads)) if draw(st.booleans()) else b.attention(x, heads)
        elif layer == "cross":
            memory = s.value((1, draw(st.integers(1, 19)), width))
            inputs.append(memory)
            x = b.attention(x, heads, memory)
        elif layer == "normalized":
            x = b.normalized(x)
        elif layer == "dense":
            x = s.add(x, b.dense(x, width), kind=draw(st.sampled_from(["ADD", "MUL"])))
        elif layer == "gelu":
            x = b.gelu(x)
        else:
            x = b.block(x, heads, draw(st.integers(1, 3)))
    outputs = [x]
    if draw(st.booleans()):
        outputs.append(b.mean(x, s.value((1, width)), (1,)))
    return s.build(inputs, outputs if x is not first else [s.relu(x)])
