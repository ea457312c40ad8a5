"""BATCH_MATMUL and TRANSPOSE_CONV: operands stored transposed, broadcasting, strides beyond kernels."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import (
    ACTIVATIONS,
    broken_rules,
    constant,
    f32,
    operator,
    random_data,
    scales,
    seeds,
    tensor,
    zero_points,
)  # fmt: skip
from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ops.layers.transpose_conv import TransposeConv
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul

# --- BATCH_MATMUL ----------------------------------------------------------------------------


#: scales and zero points of both operands and the output
_QUANTS = {
    "int8": ((0.05, 3), (0.04, -9), (0.09, 5)),
    "int16": ((0.0005, 0), (0.0004, 0), (0.002, 0)),
    "float32": ((None, 0),) * 3,
}


def _matmul(x, y, adj_x=False, adj_y=False, const=None, quants=None, dtype="int8") -> Op:
    """One BATCH_MATMUL. x, y: shapes as stored; `const`: index of a constant operand."""
    rng = np.random.default_rng(6)
    quants = quants or _QUANTS[dtype]

    def data(shape) -> np.ndarray:
        if dtype == "float32":  # above 0: infinities of both signs would sum up to a NaN, whose sign is the core's
            return rng.uniform(0.1, 2, shape).astype(dtype)
        return random_data(shape, rng, dtype)

    operands = [
        constant(data(shape), *quant) if i == const else tensor(shape, *quant, dtype)
        for i, (shape, quant) in enumerate(zip((x, y), quants, strict=False))
    ]
    left, right = ((*s[:-2], s[-1], s[-2]) if adj else s for s, adj in ((x, adj_x), (y, adj_y)))
    batches = np.broadcast_shapes(left[:-2], right[:-2])
    output = tensor((*batches, left[-2], right[-1]), *quants[2], dtype)
    return operator("BATCH_MATMUL", operands, output, BatchMatMul(adj_x, adj_y))


@st.composite
def _random_matmul(draw) -> Op:
    dims = st.integers(1, 5)
    rows, depth, columns = draw(dims), draw(st.integers(1, 40)), draw(dims)
    adj_x, adj_y = draw(st.booleans()), draw(st.booleans())
    batches = draw(st.lists(st.integers(1, 3), max_size=3))
    x, y = ((depth, rows) if adj_x else (rows, depth)), ((columns, depth) if adj_y else (depth, columns))
    leading = [[1 if draw(st.integers(0, 3)) == 0 else dim for dim in batches] for _ in range(2)]
    leading[1] = leading[1][draw(st.integers(0, len(batches))) :]
    dtype = draw(st.sampled_from(["int8", "int8", "int16", "float32"]))
    quants = [(draw(scales), draw(zero_points) if dtype == "int8" else 0) for _ in range(3)]
    quants = _QUANTS["float32"] if dtype == "float32" else quants
    const = draw(st.sampled_from([None, None, 1]))
    return _matmul((*leading[0], *x), (*leading[1], *y), adj_x, adj_y, const, quants, dtype)


# --- TRANSPOSE_CONV --------------------------------------------------------------------------


def transpose_conv(
    shape, filters, kernel, stride, padding="SAME", size=None, bias=True, per_channel=True, activation="NONE",
    seed=7, quants=((0.05, 3), (0.6, -5)),
) -> Op:  # fmt: skip
    """One TRANSPOSE_CONV. `size`: output rows and columns; None: as converters choose them."""
    rng = np.random.default_rng(seed)
    weight_scales = tuple(f32(s) for s in rng.uniform(0.002, 0.02, filters if per_channel else 1))
    weights = Tensor(
        "", (filters, *kernel, shape[3]), "int8", Quant(weight_scales, (0,) * len(weight_scales)),
        rng.integers(-127, 128, (filters, *kernel, shape[3])).astype(np.int8),
    )  # fmt: skip
    if size is None:
        grown = [dim * s for dim, s in zip(shape[1:3], stride, strict=True)]
        beyond = [max(k - s, 0) for k, s in zip(kernel, stride, strict=True)]
        size = grown if padding == "SAME" else [g + b for g, b in zip(grown, beyond, strict=True)]
    output = tensor((shape[0], *size, filters), *quants[1])
    inputs = [constant(np.array(output.shape, np.int32)), weights, tensor(shape, *quants[0])]
    if bias:
        inputs.append(
            constant(rng.integers(-3000, 3000, filters).astype(np.int32), f32(quants[0][0] * weight_scales[0]))
        )
    return operator("TRANSPOSE_CONV", inputs, output, TransposeConv(padding, tuple(stride), activation))


@st.composite
def _random_transpose_conv(draw) -> Op:
    dims = st.integers(1, 5)
    shape = (draw(st.sampled_from([1, 1, 1, 2])), draw(dims), draw(dims), draw(st.integers(1, 9)))
    kernel, stride = (draw(dims), draw(dims)), (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    # a file may ask for rows and columns that the input does not reach, or leave some out
    size = draw(st.none() | st.tuples(st.integers(1, 16), st.integers(1, 16)))
    return transpose_conv(
        shape, draw(st.integers(1, 6)), kernel, stride, draw(st.sampled_from(["SAME", "VALID"])), size,
        bias=draw(st.booleans()), per_channel=draw(st.booleans()), activation=draw(st.sampled_from(ACTIVATIONS)),
        seed=draw(seeds), quants=[(draw(scales), draw(zero_points)), (draw(scales), draw(zero_points))],
    )  # fmt: skip


NAMED = {
    "BATCH_MATMUL": {
        "matrices": _matmul((3, 7), (7, 5)),
        "batches": _matmul((2, 3, 8), (2, 8, 4)),
        "first transposed": _matmul((2, 8, 3), (2, 8, 4), adj_x=True),
        "second transposed": _matmul((2, 3, 8), (2, 4, 8), adj_y=True),
        "both transposed": _matmul((8, 3), (4, 8), adj_x=True, adj_y=True),
        "constant second": _matmul((2, 3, 8), (8, 4), const=1),
        "constant first": _matmul((3, 8), (2, 8, 4), const=0),
        "broadcast second": _matmul((4, 3, 8), (1, 8, 5)),
        "broadcast first": _matmul((1, 3, 8), (4, 8, 5)),
        "heads": _matmul((1, 4, 6, 8), (1, 4, 6, 8), adj_y=True),
        "three leading": _matmul((2, 1, 2, 3, 4), (1, 3, 2, 4, 2)),
        "a vector": _matmul((1, 33), (33, 9)),
        "one value": _matmul((1, 1), (1, 1)),
        "ends of the range": _matmul((2, 300), (300, 3), quants=((1.0, -128), (1.0, 127), (900.0, 0))),
        **{
            f"{name}, {dtype}": _matmul(*shapes, **how, dtype=dtype)
            for dtype in ("int16", "float32")
            for name, shapes, how in (
                ("matrices", ((3, 7), (7, 5)), {}),
                ("batches, first transposed", ((2, 8, 3), (2, 8, 4)), {"adj_x": True}),
                ("second transposed", ((2, 3, 8), (2, 4, 8)), {"adj_y": True}),
                ("both transposed, constant second", ((8, 3), (4, 8)), {"adj_x": True, "adj_y": True, "const": 1}),
                ("constant first", ((3, 8), (2, 8, 4)), {"const": 0}),
                ("broadcast second", ((4, 3, 8), (1, 8, 5)), {}),
                ("three leading", ((2, 1, 2, 3, 4), (1, 3, 2, 4, 2)), {}),
            )
        },
        "sums beyond 32 bits": _matmul((2, 300), (300, 3), quants=((1.0, 0), (1.0, 0), (9e5, 0)), dtype="int16"),
    },
    "TRANSPOSE_CONV": {
        "twice": transpose_conv((1, 3, 4, 5), 4, (2, 2), (2, 2)),
        "twice, three by three": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2)),
        "twice, four by four": transpose_conv((1, 4, 3, 8), 6, (4, 4), (2, 2)),
        "valid": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), "VALID"),
        "valid, wide": transpose_conv((1, 3, 4, 2), 3, (5, 4), (2, 1), "VALID"),
        "stride of one": transpose_conv((1, 5, 4, 3), 2, (3, 3), (1, 1)),
        "stride beyond the kernel": transpose_conv((1, 3, 4, 5), 2, (1, 2), (3, 3)),
        "one by one": transpose_conv((1, 3, 4, 5), 7, (1, 1), (1, 1)),
        "odd size": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), size=(5, 7)),
        "rows that no input reaches": transpose_conv((1, 3, 4, 5), 4, (3, 3), (1, 2), size=(6, 8)),
        "no bias": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), bias=False),
        "one weight scale": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), per_channel=False),
        "relu": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), activation="RELU"),
        "relu6": transpose_conv((1, 3, 4, 5), 4, (3, 3), (2, 2), activation="RELU6"),
        "many channels": transpose_conv((1, 2, 3, 33), 5, (2, 2), (2, 2)),
        "batch 3": transpose_conv((3, 3, 4, 5), 4, (3, 3), (2, 2), activation="RELU"),
        "twice, words": transpose_conv((1, 3, 4, 8), 4, (2, 2), (2, 2)),
        "twice, words, wide": transpose_conv((1, 2, 9, 20), 3, (2, 2), (2, 2), activation="RELU6"),
        "twice, words, small scales": transpose_conv(
            (1, 3, 6, 12), 4, (2, 2), (2, 2), quants=((0.02, -128), (3.0, -128))
        ),
        "twice, words, batch": transpose_conv((2, 3, 5, 16), 2, (2, 2), (2, 2), activation="RELU", per_channel=False),
        "three columns of words": transpose_conv((1, 3, 4, 8), 3, (1, 2), (1, 3), bias=False),
        "three rows of words": transpose_conv((1, 3, 5, 4), 2, (3, 1), (3, 1)),
        "one pixel": transpose_conv((1, 1, 1, 4), 3, (4, 4), (1, 1), "VALID"),
    },
}
RANDOM = {
    "BATCH_MATMUL": _random_matmul().filter(lambda op: not broken_rules(op)),
    "TRANSPOSE_CONV": _random_transpose_conv().filter(lambda op: not broken_rules(op)),
}
