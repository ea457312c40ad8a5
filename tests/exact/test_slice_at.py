"""SLICEs that begin where a run says, or whose size it computes, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from control_flow_models import choice, image
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.errors import CompileError


def sliced(
    shape=(1, 6, 7, 4),
    size=(1, 3, 5, 4),
    dtype="int8",
    begins="int32",
    constant=False,
    packed=None,
    sizes="constant",
    counts=None,
) -> bytes:
    """A slice at a start that is computed. `packed`: the start is a PACK of an input, at this index, and zeros.
    `sizes`: "constant" or "computed". `counts`: sizes other than the output's shape."""
    model = ModelBuilder()
    quant = (0.1, 3) if dtype == "int8" else (1e-3, 0) if dtype == "int16" else (None, None)
    x = model.tensor("x", shape, dtype, *quant)
    inputs = [x]
    if constant:
        x = model.tensor("table", shape, dtype, *quant, data=np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    begin = model.tensor("begin", (len(shape),), begins)
    if packed is None:
        inputs.append(begin)
    else:
        inputs.append(model.tensor("index", (), begins))
        zero = model.tensor("zero", (), begins, data=np.zeros((), begins))
        parts = [inputs[-1] if d == packed else zero for d in range(len(shape))]
        model.op("PACK", parts, [begin], values_count=len(shape), axis=0)
    counts = model.tensor("size", (len(shape),), begins, data=np.array(counts or size, begins))
    if sizes == "computed":  # of the begin: begin - begin + size
        zeros, made = model.tensor("zeros", (len(shape),), begins), model.tensor("sizes", (len(shape),), begins)
        model.op("SUB", [begin, begin], [zeros])
        model.op("ADD", [zeros, counts], [made])
        counts = made
    y = model.tensor("y", size, dtype, *quant)
    model.op("SLICE", [x, begin, counts], [y])
    return model.build(inputs, [y])


def _slice_of_an_image():
    """Graph image -> image: its rows from a computed one on, and the image itself."""
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    begin, parts = model.tensor("begin", (4,), "int32"), []
    best = model.tensor("best", (1,), "int32")
    flat, axis = model.tensor("flat", (1, 32), scale=0.5), model.tensor("axis", (1,), "int32", data=np.array([1], "i4"))
    model.op("RESHAPE", [x], [flat], new_shape=(1, 32))
    model.op("ARG_MAX", [flat, axis], [best])
    two = model.tensor("two", (1,), "int32", data=np.array([2], "i4"))
    row, zero = model.tensor("row", (1,), "int32"), model.tensor("0", (1,), "int32", data=np.array([0], "i4"))
    model.op("MINIMUM", [best, two], [row])
    model.op("CONCATENATION", [zero, row, zero, zero], [begin], axis=0)
    size = model.tensor("size", (4,), "int32", data=np.array([1, 2, 4, 2], "i4"))
    half = model.tensor("half", (1, 2, 4, 2), scale=0.5, zero_point=3)
    model.op("SLICE", [x, begin, size], [half])
    parts = [half, half]
    model.op("CONCATENATION", parts, [y], axis=1)
    return model, [x], [y]


MODELS = {
    "rows and columns": lambda: sliced(size=(1, 3, 5, 3)),
    "runs of rows": lambda: sliced(shape=(4, 6), size=(2, 3)),
    "float32": lambda: sliced(dtype="float32", shape=(9, 3, 4), size=(5, 2, 1)),
    "int16, int64 begins": lambda: sliced(dtype="int16", begins="int64", size=(1, 2, 2, 2)),
    "int32, rank 1": lambda: sliced(dtype="int32", shape=(20,), size=(7,)),
    "bool, rank 5": lambda: sliced(dtype="bool", shape=(3, 2, 4, 3, 5), size=(2, 1, 3, 2, 2)),
    "all of it": lambda: sliced(size=(1, 6, 7, 4)),
    "of a constant": lambda: sliced(shape=(8, 8), size=(3, 4), constant=True),
    "an index of a dimension": lambda: sliced(shape=(9, 7), size=(2, 3), packed=1),
    "a computed size": lambda: sliced(shape=(5, 6), size=(2, 3), sizes="computed"),
    "to the end of some dimensions": lambda: sliced(shape=(5, 6, 4), size=(2, 3, 2), counts=(2, -1, -1)),
    "in a graph that IF runs": lambda: choice(_slice_of_an_image(), _slice_of_an_image()),
}


@pytest.mark.parametrize("name", MODELS)
def test_references_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MODELS[name]())


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_are_exact(target: str) -> None:
    assert_all_exact([plan_of(make(), target, f"net{i}") for i, make in enumerate(MODELS.values())])


def test_a_slice_to_the_end_that_is_not_the_outputs_ends_the_run() -> None:
    module = tinyfuse.compile(sliced(shape=(5, 6), size=(2, 3), counts=(2, -1)), "host")
    with pytest.raises(tinyfuse.TinyfuseError, match="run returned"):
        module.run({"x": np.zeros((5, 6), np.int8), "begin": np.array((1, 2), np.int32)}, emulator="host")


def test_a_size_beyond_the_data_is_refused() -> None:
    with pytest.raises(CompileError, match="what is constant of them is a range inside the input"):
        plan_of(sliced(shape=(5, 6), size=(2, 7), counts=(2, 7)))


@pytest.mark.parametrize("begin", [(-1, 0), (0, 4), (4, 0), (2**31 - 1, 2**31 - 1)])
def test_a_slice_that_is_not_inside_ends_the_run(begin: tuple[int, int]) -> None:
    module = tinyfuse.compile(sliced(shape=(5, 6), size=(2, 3)), "host")
    with pytest.raises(tinyfuse.TinyfuseError, match="run returned"):
        module.run({"x": np.zeros((5, 6), np.int8), "begin": np.array(begin, np.int32)}, emulator="host")
