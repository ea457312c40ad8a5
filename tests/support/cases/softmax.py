"""SOFTMAX: to int8 and int16, of int16, betas, long rows."""

from __future__ import annotations

from hypothesis import strategies as st

from cases.common import broken_rules, f32, operator, scales, shapes, tensor, zero_points
from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.softmax import Softmax


def _op(shape, scale=0.1, zero_point=3, beta=1.0, out="int8", dtype="int8") -> Op:
    if dtype == "float32":
        floats = tensor(shape, None, dtype=dtype), tensor(shape, None, dtype=dtype)
        return operator("SOFTMAX", [floats[0]], floats[1], Softmax(f32(beta)))
    if dtype == "int16":
        wide = tensor(shape, scale, 0, dtype), tensor(shape, 1 / 32768, 0, dtype)
        return operator("SOFTMAX", [wide[0]], wide[1], Softmax(f32(beta)))
    output = tensor(shape, 1 / 256, -128) if out == "int8" else tensor(shape, 1 / 65536, -32768, "int16")
    return operator("SOFTMAX", [tensor(shape, scale, zero_point)], output, Softmax(f32(beta)))


@st.composite
def _random(draw) -> Op:
    shape = draw(shapes | st.tuples(st.integers(1, 3), st.integers(1, 300)))
    beta = draw(st.sampled_from([1.0, 1.0, 0.5, 2.0, 17.0]))
    dtypes = draw(st.sampled_from([("int8", "int8"), ("int16", "int8"), ("int16", "int16"), ("float32", "float32")]))
    return _op(shape, draw(scales), draw(zero_points), beta, *dtypes)


NAMED = {
    "SOFTMAX": {
        "ten classes": _op((1, 10)),
        "two classes": _op((1, 2), 0.05),
        "one class": _op((1, 1)),
        "rank 1": _op((12,)),
        "pixels": _op((1, 3, 4, 5)),
        "many values": _op((1, 9, 3, 33), 0.02),
        "many values, coarse": _op((1, 8, 70), 2.0),
        "many values, long": _op((2, 509), 2.0**-20),
        "to int16": _op((2, 12), out="int16"),
        "fine input": _op((1, 33), 1e-5),
        "finest input": _op((1, 33), 2.0**-25),
        "coarse input": _op((1, 33), 3.0),
        "beyond the clamp": _op((1, 33), 1e4),
        "beta of a half": _op((1, 12), beta=0.5),
        "beta of ten": _op((1, 12), beta=10.0, out="int16"),
        "as long as TFLM can": _op((1, 511), 2.0**-20),
        "long, to int16": _op((1, 4095), 2.0**-20, out="int16"),
        "rank 5": _op((1, 2, 3, 2, 4)),
        "floats, ten classes": _op((1, 10), dtype="float32"),
        "floats, one class": _op((3, 1), dtype="float32"),
        "floats, pixels": _op((1, 3, 4, 5), beta=0.3, dtype="float32"),
        "floats, long": _op((2, 300), beta=2.0, dtype="float32"),
        "int16, ten classes": _op((1, 10), 0.0005, dtype="int16"),
        "int16, one class": _op((1, 1), 0.0005, dtype="int16"),
        "int16, pixels": _op((1, 3, 4, 5), 0.001, beta=2.0, dtype="int16"),
        "int16, fine input": _op((1, 33), 1e-8, dtype="int16"),
        "int16, coarse input": _op((2, 33), 4.9, dtype="int16"),
        "int16, every step of the tables": _op((2, 4095), 10 / 65535, dtype="int16"),
        "int16, every second step": _op((2, 4095), 5 / 65535, dtype="int16"),
    }
}
RANDOM = {"SOFTMAX": _random().filter(lambda op: not broken_rules(op))}
