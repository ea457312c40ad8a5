"""Operators to be measured that find elements by numbers, or take by a run what others have for constants."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from cost_tensors import CHANNELS, SIZES, image, like, operator, tensor

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.update_state import UpdateState

Draw = Callable[[random.Random, str], Op]


def numbers(values, dtype: str = "int32") -> Tensor:
    """A constant without scale."""
    data = np.array(values, dtype)
    return tensor(data.shape, 0.0, 0, dtype, data)


def _given(shape) -> Tensor:
    """Indexes that a run computes."""
    return tensor(shape, 0.0, 0, "int32")


def _data(rng: random.Random, shape) -> Tensor:
    """In a dtype whose elements are of one byte or four."""
    return tensor(shape, 0.05, 3) if rng.random() < 0.6 else tensor(shape, 0.0, 0, "float32")


def draw_gather(rng: random.Random, kind: str) -> Op:
    x = _data(rng, image(rng)[1:])
    axis, count = rng.choice([0, 0, 1, 2]), rng.choice(SIZES)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return operator(kind, [x, _given((count,))], replace(like(x), shape=shape), axis=axis, batch_dims=0)


def draw_gather_nd(rng: random.Random, kind: str) -> Op:
    x = _data(rng, image(rng)[1:])
    count, depth = rng.choice((*SIZES, 50, 100)), rng.choice([1, 1, 2, 3])
    return operator(kind, [x, _given((count, depth))], replace(like(x), shape=(count, *x.shape[depth:])))


def draw_embedding(rng: random.Random, kind: str) -> Op:
    """Of int8, one in two as floats."""
    rows, columns, count = rng.choice(CHANNELS), rng.choice(CHANNELS), rng.choice(SIZES)
    data = np.random.default_rng(rng.randrange(2**31)).integers(-127, 128, (rows, columns)).astype(np.int8)
    table = tensor((rows, columns), 0.05, 0, data=data)
    output = tensor((count, columns), 0.05, 0) if rng.random() < 0.5 else tensor((count, columns), 0.0, 0, "float32")
    return operator(kind, [_given((count,)), table], output)


def draw_update(rng: random.Random, kind: str) -> Op:
    """Where a run says, or at a place that is known; one in two replaces rows, which lie together."""
    x = _data(rng, image(rng))
    part = tuple(rng.randint(1, dim) for dim in x.shape)
    if rng.random() < 0.5:
        part = (1, rng.choice([1, 1, part[1]]), *x.shape[2:])
    start = numbers([rng.randint(0, dim - size) for dim, size in zip(x.shape, part, strict=True)])
    start = _given((4,)) if rng.random() < 0.5 else start
    update = replace(like(x), shape=part)
    if kind == "UPDATE_STATE":
        state = replace(x, initial=np.zeros(x.shape, x.dtype), index=-1)
        return Op(kind, (state, update, start), (), UpdateState(x.shape))
    return operator(kind, [x, update, start], like(x))


def draw_shapes(rng: random.Random, kind: str) -> Op:
    ranks = rng.choice([1, 2, 3, 4, 5]), rng.choice([1, 2, 3, 4, 5])
    inputs = [_given((rank,)) for rank in ranks]
    return operator(kind, inputs, tensor((max(ranks),), 0.0, 0, "int32"))


def draw_scatter(rng: random.Random, kind: str) -> Op:
    shape, depth, count = image(rng)[1:], rng.choice([1, 2, 3]), rng.choice((*SIZES, 50))
    updates = tensor((count, *shape[depth:]), 0.05, 3)
    return operator(kind, [_given((count, depth)), updates, numbers(shape)], replace(like(updates), shape=shape))


def draw_one_hot(rng: random.Random, kind: str) -> Op:
    count, depth = rng.choice(SIZES), rng.choice((*CHANNELS, 200))
    dtype = rng.choice(["int8", "int8", "int32", "float32"])
    scale = 0.05 if dtype == "int8" else 0.0
    values = [tensor((), scale, 0, dtype) for _ in range(2)]
    output = tensor((count, depth), scale, 0, dtype)
    return operator(kind, [_given((count,)), numbers(depth), values[0], replace(like(values[0]))], output, axis=-1)


def draw_reversal(rng: random.Random, kind: str) -> Op:
    _, batches, steps, depth = image(rng)
    dtype = rng.choice(["int16", "float32"])
    x = tensor((batches, steps, depth), 0.0, 0, dtype)
    return operator(kind, [x, _given((batches,))], like(x), seq_dim=1, batch_dim=0)


def draw_batches(rng: random.Random, kind: str) -> Op:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND of blocks of 2, without borders one in two."""
    _, rows, columns, depth = image(rng)
    border = rng.choice([0, 0, 1])
    x, small = (1, 2 * rows, 2 * columns, depth), (4, rows + border, columns + border, depth)
    shapes = (x, small) if kind == "SPACE_TO_BATCH_ND" else (small, x)
    data = _data(rng, shapes[0])
    around = numbers([[border, border], [border, border]])
    return operator(kind, [data, numbers([2, 2]), around], replace(like(data), shape=shapes[1]))


def draw_mirror(rng: random.Random, kind: str) -> Op:
    x = _data(rng, image(rng))
    amounts = [(0, 0), *((rng.randrange(min(3, dim)), rng.randrange(min(3, dim))) for dim in x.shape[1:3]), (0, 0)]
    shape = [dim + sum(pair) for dim, pair in zip(x.shape, amounts, strict=True)]
    return operator(kind, [x, numbers(amounts)], replace(like(x), shape=tuple(shape)), mode="REFLECT")


def draw_bilinear(rng: random.Random, kind: str) -> Op:
    _, height, width, channels = image(rng)
    size, x = rng.choice([(2 * height, 2 * width), (height + 1, width + 3)]), tensor((1, height, width, channels))
    output = replace(like(x), shape=(1, *size, channels))
    return operator(kind, [x, numbers(size)], output, align_corners=False, half_pixel_centers=rng.random() < 0.5)


def draw_slice(rng: random.Random, kind: str) -> Op:
    x = _data(rng, image(rng))
    size = tuple(rng.randint(1, dim) for dim in x.shape)
    start = numbers([rng.randint(0, dim - part) for dim, part in zip(x.shape, size, strict=True)])
    return operator(kind, [x, start, numbers(size)], replace(like(x), shape=size))


def draw_pad_value(rng: random.Random, kind: str) -> Op:
    x = _data(rng, image(rng))
    amounts = [(0, 0), (rng.randrange(3), rng.randrange(3)), (rng.randrange(3), rng.randrange(3)), (0, 0)]
    shape = tuple(dim + sum(pair) for dim, pair in zip(x.shape, amounts, strict=True))
    value = replace(like(x), shape=(), data=np.array(1, x.dtype))
    return operator(kind, [x, numbers(amounts), value], replace(like(x), shape=shape))


#: an operator of ours that takes an operand from a run -> that with a constant, and the places of what is computed
_COMPUTED: dict[str, tuple[str, Draw, tuple[int, ...]]] = {
    "SLICE_AT": ("SLICE", draw_slice, (1,)),
    "PAD_WITH": ("PADV2", draw_pad_value, (2,)),
    "MIRROR_PAD_AT": ("MIRROR_PAD", draw_mirror, (1,)),
    "SPACE_TO_BATCH_AT": ("SPACE_TO_BATCH_ND", draw_batches, (2,)),
    "BATCH_TO_SPACE_AT": ("BATCH_TO_SPACE_ND", draw_batches, (2,)),
}


def draw_computed(rng: random.Random, kind: str) -> Op:
    """An operator whose operands a run computes (rewrite/computed_operands.py)."""
    of, draw, places = _COMPUTED[kind]
    op = draw(rng, of)
    given = tuple(t and replace(t, data=None) if i in places else t for i, t in enumerate(op.inputs))
    return FAMILIES[of].computing(replace(op, inputs=given)) or draw_computed(rng, kind)


def as_in_file(op: Op) -> Op:
    """The operator that it was in a file: what values a run may compute for it is known of that one."""
    if op.kind not in _COMPUTED:
        return op
    operands = (*op.inputs, numbers(op.output.shape)) if op.kind == "SLICE_AT" else op.inputs
    kind = _COMPUTED[op.kind][0]
    return replace(op, kind=kind, inputs=operands)


def draw_all(rng: random.Random, kind: str) -> Op:
    """REDUCE_ALL over rows and columns, or over channels."""
    shape = image(rng)
    axes = rng.choice([(1, 2), (3,)])
    kept = [dim for axis, dim in enumerate(shape) if axis not in axes]
    return operator(kind, [tensor(shape, 0.0, 0, "bool"), numbers(axes)], tensor(kept, 0.0, 0, "bool"), keep_dims=False)


DRAWS: dict[str, Draw] = {
    "GATHER": draw_gather,
    "GATHER_ND": draw_gather_nd,
    "EMBEDDING_LOOKUP": draw_embedding,
    "DYNAMIC_UPDATE_SLICE": draw_update,
    "UPDATE_STATE": draw_update,
    "BROADCAST_ARGS": draw_shapes,
    "SCATTER_ND": draw_scatter,
    "ONE_HOT": draw_one_hot,
    "REVERSE_SEQUENCE": draw_reversal,
    "SPACE_TO_BATCH_ND": draw_batches,
    "BATCH_TO_SPACE_ND": draw_batches,
    "MIRROR_PAD": draw_mirror,
    "RESIZE_BILINEAR": draw_bilinear,
    "REDUCE_ALL": draw_all,
    **dict.fromkeys(_COMPUTED, draw_computed),
}
#: kinds whose draws have their own dtypes
OWN_DTYPES = [kind for kind in DRAWS if kind not in ("SCATTER_ND", "RESIZE_BILINEAR")]
