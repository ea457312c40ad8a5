"""Models of one operator whose axes, paddings, crops, blocks or value are computed at run time: {name: bytes of a
.tflite}."""

from __future__ import annotations

from dataclasses import replace

from cases import NAMED
from cases.common import model_of
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op
from tinyfuse.ops.pooling_reduce.at_axes import ALONG_AXES


def computing(op: Op, *places: int) -> bytes:
    """A model of one operator; its inputs at these indexes are inputs of the model."""
    inputs = tuple(t and replace(t, data=None) if i in places else t for i, t in enumerate(op.inputs))
    return model_of(replace(op, inputs=inputs))


def of_each_dtype(kinds) -> list[tuple[str, Op]]:
    """Two named cases of every kind and dtype."""
    known: dict[tuple[str, str], list[tuple[str, Op]]] = {}
    for kind in kinds:
        for name, op in NAMED[kind].items():
            known.setdefault((kind, op.input.dtype), []).append((f"{kind}, {name}", op))
    return [case for cases in known.values() for case in cases[1:3] or cases]


def along(shape, output, axes, kind="SUM", **options) -> bytes:
    """A model of one operator from int8 `shape` to `output`; its second input holds `axes` axes."""
    model = ModelBuilder()
    x, a, y = (
        model.tensor("x", shape, "int8", 0.5, 3), model.tensor("axes", axes, "int32"),
        model.tensor("y", output, "int32" if "ARG" in kind else "int8", 0.5, 3),
    )  # fmt: skip
    model.op(kind, [x, a], [y], **options)
    return model.build([x, a], [y])


#: operators along axes
ALONG = {name: computing(op, 1) for name, op in of_each_dtype(ALONG_AXES)} | {
    "any of three": along((2, 4, 4, 4), (2, 4, 4), (1,)),
    "one or two of them": along((4, 1, 4), (4,), (2,)),
    "a scalar": along((3, 3), (3,), (), "ARG_MAX"),
    "an output of another shape": along((4, 4), (2, 2), (1,), "REDUCE_MAX"),
    "only one is left": along((2, 3, 5), (2, 1, 5), (1,), "MEAN", keep_dims=True),
    "dimensions of one element": along((1, 4, 1), (4, 1), (1,), "REDUCE_MIN"),
}


#: operators whose paddings, blocks, crops or value are computed, or two of them
PADDED = {
    f"{name}, input {' and '.join(map(str, places))}": computing(op, *places)
    for kind, all_places in {
        "PADV2": [(2,)], "MIRROR_PAD": [(1,)],
        "BROADCAST_ARGS": [(0,), (0, 1)],
        "SPACE_TO_BATCH_ND": [(1,), (2,), (1, 2)], "BATCH_TO_SPACE_ND": [(1,), (2,), (1, 2)],
    }.items()
    for places in all_places
    for name, op in of_each_dtype([kind])
}  # fmt: skip
