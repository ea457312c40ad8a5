"""Operators whose axes, paddings, crops or blocks a run computes, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from cases import NAMED
from computed_operand_models import ALONG, PADDED, along, computing
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.errors import CompileError
from tinyfuse.ops.pooling_reduce.at_axes import ALONG_AXES


@pytest.mark.parametrize("name", ALONG)
def test_references_along_computed_axes_are_tflms(name: str) -> None:
    assert_reference_is_tflm(ALONG[name])


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "cortex-m55"])
def test_every_case_along_computed_axes_is_exact(target: str) -> None:
    cases = [computing(op, 1) for kind in ALONG_AXES for op in NAMED[kind].values()]
    for data in cases:
        assert_reference_is_tflm(data)
    assert_all_exact([plan_of(data, target, f"net{i}") for i, data in enumerate(cases)])


@pytest.mark.parametrize("axes", [(0,), (3,), (-4,), (2**31 - 1,), (-(2**31),)])
def test_axes_that_do_not_make_the_output_end_the_run(axes: tuple[int, ...]) -> None:
    module = tinyfuse.compile(along((2, 3, 5), (2, 5), (1,)), "host")
    with pytest.raises(tinyfuse.TinyfuseError, match="run returned"):
        module.run({"x": np.zeros((2, 3, 5), np.int8), "axes": np.array(axes, np.int32)}, emulator="host")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (along((2, 3, 5), (2, 4), (1,)), "some make the output's elements"),
        (along((2, 3, 5), (2, 5), (7,)), "int32 and at most six"),
        (along((2, 2, 2, 2, 2, 2), (2, 2, 2), (3,)), "at most two runs of neighbours"),
    ],
)
def test_computed_axes_that_nothing_can_be_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        plan_of(data)


@pytest.mark.parametrize("name", PADDED)
def test_references_of_computed_padding_are_tflms(name: str) -> None:
    assert_reference_is_tflm(PADDED[name])


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_are_exact(target: str) -> None:
    """Runs all of them on the host, and some of each kind on a core."""
    every = [*ALONG.values(), *PADDED.values()]
    models = every if target == "host" else every[::3]
    assert_all_exact([plan_of(data, target, f"net{i}") for i, data in enumerate(models)])


def padded(kind: str, shape, output, operands: dict[str, tuple[int, ...]], **options) -> bytes:
    """A model of one int8 operator. Its int32 operands, with these names and shapes, are inputs of the model."""
    model = ModelBuilder()
    x, y = model.tensor("x", shape, "int8", 0.5, 0), model.tensor("y", output, "int8", 0.5, 0)
    others = [model.tensor(name, operand, "int32") for name, operand in operands.items()]
    model.op(kind, [x, *others], [y], **options)
    return model.build([x, *others], [y])


BLOCK = {"block": (2,), "around": (2, 2)}


@pytest.mark.parametrize(
    ("kind", "shape", "output", "operands"),
    [
        ("MIRROR_PAD", (4, 3), (6, 3), {"paddings": [(-1, 3), (0, 0)]}),
        ("MIRROR_PAD", (4, 3), (6, 3), {"paddings": [(4, 0), (0, 0)]}),
        ("MIRROR_PAD", (4, 3), (6, 3), {"paddings": [(0, 2), (2**31 - 1, 0)]}),
        *(
            (kind, shape, output, {"block": block, "around": around})
            for kind, shape, output in (
                ("SPACE_TO_BATCH_ND", (1, 4, 4, 2), (4, 2, 2, 2)), ("BATCH_TO_SPACE_ND", (4, 2, 2, 2), (1, 4, 4, 2)),
            )
            for block, around in (
                ((0, 4), [(0, 0), (0, 0)]), ((3, 1), [(0, 0), (0, 0)]), ((-2, -2), [(0, 0), (0, 0)]),
                ((2**31 - 1, 2**31 - 1), [(0, 0), (0, 0)]), ((2, 2), [(-1, 1), (0, 0)]),
                ((2, 2), [(0, 0), (2**31 - 1, 0)]),
            )
        ),
        ("BATCH_TO_SPACE_ND", (4, 2, 2, 2), (1, 4, 4, 2), {"block": (2, 2), "around": [(0, 0), (1, 0)]}),
    ],
)  # fmt: skip
def test_paddings_and_blocks_that_do_not_fit_end_the_run(kind: str, shape, output, operands) -> None:
    values = {name: np.array(value, np.int32) for name, value in operands.items()}
    options = {"mode": 0} if kind == "MIRROR_PAD" else {}
    data = padded(kind, shape, output, {name: value.shape for name, value in values.items()}, **options)
    module = tinyfuse.compile(data, "host")
    with pytest.raises(tinyfuse.TinyfuseError, match="run returned"):
        module.run({"x": np.zeros(shape, np.int8), **values}, emulator="host")


def test_a_computed_block_that_nothing_can_be_is_refused() -> None:
    with pytest.raises(CompileError, match="block shape and crops make the output's shape"):
        plan_of(padded("BATCH_TO_SPACE_ND", (5, 2, 2, 1), (1, 3, 3, 1), BLOCK))
