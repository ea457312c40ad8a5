"""The operator families but the convolutions': numpy references against TFLM's interpreter, options
read back from files, and rules. Their C is in test_op_kernels.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import NAMED, RANDOM, activations, batch_space, elementwise, indexed, movement, places, repeated, signal
from cases.common import broken_rules, f32, inputs_of, model_of, references, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Quant
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary
from tinyfuse.ops.elementwise.activations import LeakyRelu
from tinyfuse.ops.layers.transpose_conv import TransposeConv
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.gather import Gather
from tinyfuse.ops.movement.mirror_pad import MirrorPad
from tinyfuse.ops.movement.one_hot import OneHot
from tinyfuse.ops.movement.pack import Pack
from tinyfuse.ops.movement.resize import Resize
from tinyfuse.ops.movement.reverse_sequence import Sequences
from tinyfuse.ops.movement.slice import StridedSlice
from tinyfuse.ops.movement.space_depth import Block
from tinyfuse.ops.movement.split import Unpack
from tinyfuse.ops.movement.squeeze import Squeeze
from tinyfuse.ops.pooling_reduce.l2_normalization import L2Norm
from tinyfuse.ops.pooling_reduce.pooling import Pool2D
from tinyfuse.ops.pooling_reduce.reduce import Reducer
from tinyfuse.ops.pooling_reduce.softmax import Softmax
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.comparison import same_bits, ulp_distance

_NAMED = [pytest.param(op, id=f"{kind}-{name}") for kind, ops in NAMED.items() for name, op in ops.items()]


def assert_reference_is_tflm(op: Op, seed: int = 0) -> None:
    """Checks our reference against TFLM's interpreter, or against LiteRT if TFLM lacks the operator."""
    assert broken_rules(op) == []
    family = FAMILIES[op.kind]
    pytest.importorskip("tflite_micro" if family.in_tflm else "ai_edge_litert")
    interpreter = oracle_worker.tflm if family.in_tflm else oracle_worker.litert
    infer = interpreter(model_of(op), 1 << 20)
    for inputs in inputs_of(op, seed):
        computed = family.settled(op, infer(inputs))
        for got, wanted, tensor in zip(references(op, inputs), computed, op.outputs, strict=True):
            assert (got.dtype, got.shape) == (tensor.dtype, tensor.shape)
            bound = FAMILIES[op.kind].ulp(op)
            if bound is None:
                assert same_bits(np.asarray(got), np.asarray(wanted)).all(), f"{op} {op.attributes}: {got} not {wanted}"
            else:
                distance = ulp_distance(got, wanted, FAMILIES[op.kind].ulp_of)
                assert distance.max() <= bound, f"{op} {op.attributes}: {got} not {wanted}"


@pytest.mark.parametrize("op", _NAMED)
def test_reference_equals_tflm(op: Op) -> None:
    assert_reference_is_tflm(op)


@pytest.mark.parametrize("kind", RANDOM)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_reference_equals_tflm(kind: str, data) -> None:
    assert_reference_is_tflm(data.draw(RANDOM[kind]), data.draw(seeds))


@pytest.mark.parametrize("op", [param for param in _NAMED if param.values[0].activations])
def test_options_are_read_back(op: Op) -> None:
    graph = read_tflite("model.tflite", model_of(op))
    assert (graph.ops[0].kind, graph.ops[0].attributes) == (op.kind, op.attributes)


def test_absent_options_take_the_schemas_defaults() -> None:
    absent = {kind: FAMILIES[kind].attributes({}) for kind in NAMED}
    assert absent["AVERAGE_POOL_2D"] == Pool2D("SAME", (0, 0), (0, 0)) == absent["MAX_POOL_2D"]
    assert absent["ADD"] == Binary("NONE") == absent["MUL"] == absent["SUB"]
    assert absent["SOFTMAX"] == Softmax(0.0)
    assert absent["MEAN"] == Reducer(False)
    assert absent["LEAKY_RELU"] == LeakyRelu(0.0)
    assert absent["STRIDED_SLICE"] == StridedSlice()
    assert (absent["MIRROR_PAD"], absent["GATHER"]) == (MirrorPad(""), Gather())
    assert absent["RESIZE_NEAREST_NEIGHBOR"] == Resize() == absent["RESIZE_BILINEAR"]
    assert (absent["BATCH_MATMUL"], absent["TRANSPOSE_CONV"]) == (BatchMatMul(), TransposeConv())
    assert absent["L2_NORMALIZATION"] == L2Norm()
    assert (absent["SQUEEZE"], absent["PACK"], absent["UNPACK"]) == (Squeeze(), Pack(), Unpack())
    assert absent["SPACE_TO_DEPTH"] == Block() == absent["DEPTH_TO_SPACE"]
    assert (absent["ONE_HOT"], absent["REVERSE_SEQUENCE"]) == (OneHot(), Sequences())
    assert absent["CONCATENATION"] == Concatenation(0, "NONE")
    assert absent["PAD"] is absent["RELU"] is absent["QUANTIZE"] is absent["RESHAPE"] is None


# --- rules -----------------------------------------------------------------------------------


def _case(kind: str) -> Op:
    return next(iter(NAMED[kind].values()))


def _input(kind: str, index: int = 0, **changes) -> Op:
    """A case with some changed fields of input `index`."""
    op = _case(kind)
    inputs = list(op.inputs)
    inputs[index] = replace(inputs[index], **changes)
    return replace(op, inputs=tuple(inputs))


def _output(kind: str, **changes) -> Op:
    op = _case(kind)
    return replace(op, outputs=(replace(op.output, **changes),))


def _attributes(kind: str, **changes) -> Op:
    op = _case(kind)
    return replace(op, attributes=replace(op.attributes, **changes))


def _numbers(kind: str, index: int, values) -> Op:
    """A case with other values in its constant int32 input `index`."""
    data = np.array(values, np.int32)
    return _input(kind, index, data=data, shape=data.shape)


def _axes(*axes: int) -> Op:
    return _numbers("MEAN", 1, axes)


def _of_int16(kind: str, scale: float, zero_point: int) -> Op:
    """An int16 case with another input quantization."""
    op = next(op for op in NAMED[kind].values() if op.input.dtype == "int16")
    return replace(op, inputs=(replace(op.input, quant=Quant((scale,), (zero_point,))), *op.inputs[1:]))


def _wide_window() -> Op:
    """An average over more int16 values than sums of 32 bits hold."""
    op = NAMED["AVERAGE_POOL_2D"]["int16, two by two"]
    source, result = replace(op.input, shape=(1, 300, 300, 1)), replace(op.output, shape=(1, 1, 1, 1))
    return replace(op, inputs=(source,), outputs=(result,), attributes=replace(op.attributes, filter=(300, 300)))


def _between_runs() -> Op:
    """A MEAN over every second of five dimensions."""
    op = _axes(0, 2, 4)
    source = replace(op.input, shape=(2, 3, 2, 3, 2))
    return replace(op, inputs=(source, op.inputs[1]), outputs=(replace(op.output, shape=(3, 3)),))


def _named_axes(count: int) -> Op:
    """A MEAN of floats that names an axis more than once."""
    op = NAMED["MEAN"]["float32, everything"]
    axes = replace(op.inputs[1], shape=(count,), data=np.arange(count, dtype=np.int32) % 2)
    return replace(op, inputs=(op.input, axes))


def _all_padded() -> Op:
    """A PAD on all sides of five dimensions."""
    op = _input("PAD", 1, shape=(5, 2), data=np.ones((5, 2), np.int32))
    source, result = replace(op.input, shape=(2,) * 5), replace(op.output, shape=(4,) * 5)
    return replace(op, inputs=(source, op.inputs[1]), outputs=(result,))


def _all_mirrored() -> Op:
    """A MIRROR_PAD on all sides of five dimensions."""
    op = _input("MIRROR_PAD", 1, shape=(5, 2), data=np.ones((5, 2), np.int32))
    source, result = replace(op.input, shape=(2,) * 5), replace(op.output, shape=(4,) * 5)
    return replace(op, inputs=(source, op.inputs[1]), outputs=(result,))


def _outputs(kind: str, *shapes) -> Op:
    """A case with outputs of these shapes."""
    op = _case(kind)
    return replace(op, outputs=tuple(replace(op.output, shape=shape) for shape in shapes))


def _resized_to(rows: int) -> Op:
    """A RESIZE_BILINEAR of one row to many."""
    op = _numbers("RESIZE_BILINEAR", 1, (rows, 1))
    inputs = (replace(op.input, shape=(1, 1, 1, 3)), op.inputs[1])
    return replace(op, inputs=inputs, outputs=(replace(op.output, shape=(1, rows, 1, 3)),))


def _source(kind: str) -> int:
    """Index of the input whose elements a kind moves."""
    return 1 if kind == "SPLIT" else 0


def _shrunk(begin: int, stride: int) -> Op:
    """A STRIDED_SLICE that drops its second dimension."""
    op = _numbers("STRIDED_SLICE", 1, (0, begin, 0, 0))
    strides = replace(op.inputs[3], data=np.array((1, stride, 1, 1), np.int32))
    attributes = replace(op.attributes, shrink_axis_mask=2)
    return replace(op, inputs=(*op.inputs[:3], strides), attributes=attributes)


def _zero_point_of_int32(name: str) -> Op:
    op = NAMED["QUANTIZE"][name]
    return replace(op, outputs=(replace(op.output, quant=Quant((0.1,), (1,))),))


def _fused(kind: str, activation: str) -> Op:
    """An activation whose bounds don't fit int32 in the tensors' scale."""
    op, quant = _attributes(kind, activation=activation), Quant((2e-9,), (0,))
    return replace(
        op, inputs=tuple(replace(t, quant=quant) for t in op.inputs), outputs=(replace(op.output, quant=quant),)
    )


def _alternating(kind: str) -> Op:
    """Operands that repeat in every second dimension, so that no two dimensions can be merged."""
    op = _case(kind)
    a, b = op.inputs
    operands = (replace(a, shape=(2, 1, 2, 1, 2)), replace(b, shape=(1, 2, 1, 2, 1)))
    return replace(op, inputs=operands, outputs=(replace(op.output, shape=(2, 2, 2, 2, 2)),))


def _deep(kind: str) -> Op:
    """Operands of seven dimensions, one of which has a single value."""
    op = _case(kind)
    deep = (1, 1, 1, *op.output.shape)
    inputs = (*(replace(t, shape=deep) for t in op.inputs[:-1]), replace(op.inputs[-1], shape=(1,)))
    return replace(op, inputs=inputs, outputs=(replace(op.output, shape=deep),))


#: kinds that never look at their output's quantization
_ANY_QUANTIZATION = {
    "DEQUANTIZE", "RESHAPE", "RESIZE_BILINEAR", "L2_NORMALIZATION", "ARG_MAX", "ARG_MIN", *movement.NAMED, *indexed.NAMED,
    *repeated.NAMED, *places.NAMED, *signal.NAMED, *batch_space.NAMED,
}  # fmt: skip
_PER_CHANNEL = Quant((0.1,) * 5, (0,) * 5, 3)
_STORED_VALUES = ("MAXIMUM", "MINIMUM", *elementwise.COMPARISONS, *elementwise.LOGIC, "LOGICAL_NOT",
                  "CAST", *activations.FLOATS, "EXP", "LOG", "SIN", "COS", "FLOOR_DIV", "FLOOR_MOD", "SELECT_V2",
                  "L2_POOL_2D", "REDUCE_ALL")  # fmt: skip
_UNARY_KINDS = ("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "ELU", "ABS", "RSQRT")
_INT8_KINDS = (
    *_UNARY_KINDS, *elementwise.INT8, "AVERAGE_POOL_2D", "MAX_POOL_2D", "PAD", "PADV2", "MEAN", "SUM", "REDUCE_MAX",
    "REDUCE_MIN", "CONCATENATION", "BATCH_MATMUL", "LOG_SOFTMAX", "L2_NORMALIZATION", "ARG_MAX", "ARG_MIN",
    "RESIZE_BILINEAR",
)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "message"),
    [
        *((_input(kind, dtype="int16"), "int8") for kind in _INT8_KINDS),
        *((_output(kind, quant=None), "scale") for kind in NAMED
          if _case(kind).output.quant and kind not in (*_ANY_QUANTIZATION, *_STORED_VALUES)),
        *((replace(_case(kind), inputs=()), "input") for kind in NAMED),
        *((replace(_case(kind), inputs=(None, None)), "input") for kind in NAMED),
        *((replace(_case(kind), outputs=()), "output") for kind in NAMED),
        *((_input(kind, quant=_PER_CHANNEL), "one scale") for kind in ("ADD", "SUB", "PRELU", "LESS", "SQUARED_DIFFERENCE")),
        *((_input(kind, shape=(1, 3, 4, 2)), "broadcast") for kind in (*elementwise.INT8, *elementwise.LOGIC)),
        *((_output(kind, dtype="int8"), "bool") for kind in (*elementwise.COMPARISONS, *elementwise.LOGIC, "LOGICAL_NOT")),
        *((_input(kind, dtype="int8"), "bool") for kind in (*elementwise.LOGIC, "LOGICAL_NOT")),
        *((_input(kind, quant=Quant((1.0,), (0,))), "below 1") for kind in elementwise.COMPARISONS),
        *((_input(kind, 1, dtype="int32"), "int8") for kind in elementwise.INT8),
        (replace(NAMED["ADD"]["int32, equal shapes"], attributes=Binary("RELU")), "int32 has no fused"),
        (_alternating("ADD"), "at most 4 loops"),
        (_deep("MAXIMUM"), "at most 6 dimensions"),
        (_deep("SELECT_V2"), "at most 6 dimensions"),
        (_output("SUB", quant=Quant((1e-9,), (0,))), "above 2^-19"),
        (_output("SQUARED_DIFFERENCE", quant=Quant((1e-9,), (0,))), "above 2^-12"),
        (_output("PRELU", quant=Quant((1e-9,), (0,))), "below 2^21"),
        (_input("PRELU", 1, quant=Quant((1e9,), (0,))), "below 2^15"),
        *((_input(kind, quant=_PER_CHANNEL), "one scale") for kind in _UNARY_KINDS),
        *((_output(kind, shape=(4, 8, 8)), "same shape") for kind in _UNARY_KINDS),
        (_input("RELU", quant=Quant((3e38,), (0,))), "below 2^21 times"),
        *((_output(kind, quant=Quant((1e-45,), (0,))), "below 2^21 times") for kind in ("RELU", "LEAKY_RELU", "ELU", "ABS")),
        (_attributes("LEAKY_RELU", alpha=3e6), "alpha times"),
        (_attributes("LEAKY_RELU", alpha=float("nan")), "alpha times"),
        (_output("HARD_SWISH", quant=Quant((1e-5,), (0,))), "to 128 times"),
        (_output("HARD_SWISH", quant=Quant((1e5,), (0,))), "from 2^-9 to 128"),
        (_input("HARD_SWISH", quant=Quant((1e-8,), (0,))), "from 2^-22"),
        (_output("ELU", quant=Quant((1e-7,), (0,))), "above 2^-21"),
        (replace(_input("ELU", quant=Quant((1e31,), (0,))), outputs=_output("ELU", quant=Quant((1e31,), (0,))).outputs),
         "below 2^100"),
        (_output("TANH", quant=Quant((1 / 128,), (-128,))), "1/128"),
        (_input("TANH", quant=Quant((1e10,), (0,))), "to 2^30"),
        (_input("RSQRT", quant=Quant((1.0,), (-127,))), "zero point is -128"),
        (_output("RSQRT", quant=Quant((1e-30,), (0,))), "above 2^-30"),
        (_input("RELU6", quant=Quant((1e-9,), (0,))), "above 2^-28"),
        (_output("LOGISTIC", quant=Quant((1 / 256,), (0,))), "1/256"),
        (_output("LOGISTIC", quant=Quant((1 / 128,), (-128,))), "1/256"),
        (_input("LOGISTIC", quant=Quant((1e-9,), (0,))), "from 2^-28"),
        (_input("LOGISTIC", quant=Quant((1e10,), (0,))), "to 2^30"),
        (_output("ADD", shape=(1, 3, 4, 6)), "broadcast"),
        (_output("ADD", quant=Quant((1e-9,), (0,))), "above 2^-19"),
        (_attributes("MUL", activation="TANH"), "fused activation"),
        *((_fused(kind, activation), "above 2^-28") for kind in ("MUL", "MAX_POOL_2D", "AVERAGE_POOL_2D")
          for activation in ("RELU6", "RELU_N1_TO_1")),
        (_output("MUL", quant=Quant((1e-9,), (0,))), "below 2^15"),
        (_input("AVERAGE_POOL_2D", shape=(6, 8, 5)), "rank 4"),
        (_input("AVERAGE_POOL_2D", shape=(2, 6, 8, 5)), "the input's batch"),
        (_attributes("AVERAGE_POOL_2D", stride=(0, 1)), "from 1"),
        (_attributes("MAX_POOL_2D", filter=(1 << 20, 1)), "to 32767"),
        (_attributes("MAX_POOL_2D", filter=(9, 1)), "dimensions"),
        (_output("MAX_POOL_2D", quant=Quant((0.1,), (3,))), "same scale"),
        (_output("MAX_POOL_2D", shape=(1, 3, 4, 6)), "dimensions"),
        (_attributes("MAX_POOL_2D", activation="SIGN_BIT"), "fused activation"),
        *((_input(kind, dtype="int8"), "are float32") for kind in ("L2_POOL_2D",)),
        (_input("REDUCE_ALL", dtype="int8"), "are bool"),
        (replace(NAMED["AVERAGE_POOL_2D"]["float32, two by two"], outputs=_output("AVERAGE_POOL_2D").outputs), "same dtype"),
        (_output("AVERAGE_POOL_2D", dtype="int16"), "same dtype"),
        (_wide_window(), "65535 pixels"),
        (_between_runs(), "two runs"),
        (_named_axes(5), "at most four axes"),
        (_all_padded(), "one is not padded"),
        (_all_mirrored(), "leave four"),
        (_input("PADV2", 2, dtype="int16"), "the input's dtype"),
        (_input("PAD", 1, data=None), "constant"),
        (_input("PAD", 1, shape=(2, 4), data=np.zeros((2, 4), np.int32)), "constant [rank, 2]"),
        (_input("PAD", 1, data=np.full((4, 2), -1, np.int32)), "from 0"),
        (_output("PAD", shape=(1, 3, 4, 5)), "padded shape"),
        (_output("SUM", quant=Quant((1e-9,), (0,))), "fits 30 bits"),
        (_output("REDUCE_MAX", quant=Quant((0.2,), (3,))), "same quantization"),
        (_output("REDUCE_MIN", quant=Quant((0.1,), (4,))), "same quantization"),
        (_axes(4), "one of the input's"),
        (_axes(-5), "one of the input's"),
        (_axes(1), "without the reduced"),
        (_attributes("MEAN", keep_dims=True), "without the reduced"),
        (_output("MEAN", quant=Quant((1e-9,), (0,))), "fits 30 bits"),
        (_input("CONCATENATION", 1, quant=Quant((0.1,), (4,))), "scale and zero point"),
        (_input("CONCATENATION", 1, shape=(1, 3, 5, 7)), "shapes agree"),
        (_output("CONCATENATION", shape=(1, 3, 4, 8)), "shapes agree"),
        (_attributes("CONCATENATION", axis=4), "axis"),
        (_attributes("CONCATENATION", axis=-5), "axis"),
        (_attributes("CONCATENATION", activation="RELU"), "no fused activation"),
        (_input("RESHAPE", 1, data=None), "shape is constant"),
        (_output("RESHAPE", shape=(1, 61)), "number of elements"),
        (_output("RESHAPE", dtype="uint8"), "same dtype"),
        *((_input(kind, _source(kind), dtype="uint8"), "same dtype") for kind in movement.NAMED if kind != "SHAPE"),
        *((_input(kind, 1, data=None), "constant") for kind in ("EXPAND_DIMS", "STRIDED_SLICE", "TRANSPOSE")),
        (_attributes("SQUEEZE", dims=(2,)), "of size 1"),
        (_attributes("SQUEEZE", dims=(4,)), "of size 1"),
        (_output("SQUEEZE", shape=(1, 6)), "other dimensions"),
        (_numbers("EXPAND_DIMS", 1, 3), "dimension of the output"),
        (_output("EXPAND_DIMS", shape=(4, 1, 5)), "size 1 more"),
        (_numbers("SLICE", 1, (0, 4, 2, 3)), "inside the input"),
        (_numbers("SLICE", 1, (0, -1, 2, 3)), "inside the input"),
        (_numbers("SLICE", 2, (1, 2, 4, 2)), "inside the input"),
        (_numbers("SLICE", 2, (1, 2, 0, 2)), "inside the input"),
        (_numbers("SLICE", 2, (1, 2, 3)), "inside the input"),
        (_output("SLICE", shape=(1, 2, 3, 3)), "sizes give"),
        (_numbers("STRIDED_SLICE", 3, (1, 2, 0, 1)), "no stride 0"),
        (_numbers("STRIDED_SLICE", 1, (0, 0, 0)), "one per dimension"),
        (_numbers("STRIDED_SLICE", 2, (1, 0, 5, 6)), "begin, end and strides give"),
        (_attributes("STRIDED_SLICE", ellipsis_mask=1), "no ellipsis"),
        (_attributes("STRIDED_SLICE", new_axis_mask=2), "no ellipsis"),
        (_attributes("STRIDED_SLICE", offset=True), "no ellipsis"),
        (_attributes("STRIDED_SLICE", shrink_axis_mask=1), "begin, end and strides give"),
        (_shrunk(begin=9, stride=1), "index inside"),
        (_shrunk(begin=2, stride=-1), "index inside"),
        (_numbers("SPLIT", 0, 4), "dimension of the input"),
        (_numbers("SPLIT", 0, 2), "cut along the axis"),
        (_outputs("SPLIT", (1, 4, 5, 1), (1, 4, 5, 2), (1, 4, 5, 3)), "same shape"),
        (_outputs("SPLIT", (1, 4, 5, 2), (1, 4, 5, 2)), "cut along the axis"),
        (_outputs("SPLIT", (1, 4, 5, 2), (1, 4, 5, 2), (20, 2)), "cut along the axis"),
        (_numbers("SPLIT_V", 2, -5), "dimension of the input"),
        (_outputs("SPLIT_V", (1, 4, 5, 3), (1, 4, 5, 4)), "cut along the axis"),
        (_attributes("UNPACK", axis=4), "axis"),
        (_attributes("UNPACK", num=3), "one output per index"),
        (_attributes("PACK", axis=-4), "axis"),
        (_attributes("PACK", values_count=2), "number of values"),
        (_input("PACK", 1, shape=(4, 3)), "same shape"),
        (_output("PACK", shape=(3, 3, 5)), "same shape"),
        (_numbers("TRANSPOSE", 1, (0, 2, 2, 3)), "every dimension once"),
        (_numbers("TRANSPOSE", 1, (0, 2, 1, 4)), "every dimension once"),
        (_output("TRANSPOSE", shape=(1, 4, 5, 6)), "permuted shape"),
        (_attributes("SPACE_TO_DEPTH", size=0), "block size"),
        (_attributes("SPACE_TO_DEPTH", size=3), "blocks of pixels"),
        (_output("DEPTH_TO_SPACE", shape=(1, 4, 6, 4)), "blocks of pixels"),
        (_output("SHAPE", dtype="int64"), "is int32"),
        (_input("BATCH_MATMUL", 1, shape=(6, 5)), "fit each other"),
        (_output("BATCH_MATMUL", shape=(3, 6)), "fit each other"),
        (_input("BATCH_MATMUL", shape=(7,)), "rank 2 to 5"),
        (_output("BATCH_MATMUL", quant=Quant((1e-20,), (0,))), "below 2^31"),
        (_input("BATCH_MATMUL", quant=_PER_CHANNEL), "one scale"),
        (_input("TRANSPOSE_CONV", 0, data=None), "shape is constant"),
        (_input("TRANSPOSE_CONV", 1, data=None, dtype="int16"), "weights, constant or computed"),
        (_input("TRANSPOSE_CONV", 2, dtype="int16"), "int8"),
        (_input("TRANSPOSE_CONV", 2, shape=(1, 3, 4, 6)), "input channels"),
        (_input("TRANSPOSE_CONV", 3, shape=(3,)), "the bias is absent"),
        (_output("TRANSPOSE_CONV", shape=(1, 6, 8, 5)), "input channels"),
        (_attributes("TRANSPOSE_CONV", stride=(0, 1)), "strides"),
        (_attributes("TRANSPOSE_CONV", activation="TANH"), "fused activation"),
        (_output("LOG_SOFTMAX", quant=Quant((1 / 8,), (127,))), "1/16"),
        (_output("LOG_SOFTMAX", shape=(10,)), "same shape"),
        (_input("LOG_SOFTMAX", quant=Quant((2.0**-26,), (0,))), "above 2^-26"),
        (_input("L2_NORMALIZATION", quant=None), "one scale"),
        (_output("L2_NORMALIZATION", shape=(8, 4)), "same shape"),
        (_attributes("L2_NORMALIZATION", activation="RELU"), "no fused activation"),
        *((_output(kind, dtype="int64"), "output is int32") for kind in ("ARG_MAX", "ARG_MIN")),
        (_numbers("ARG_MAX", 1, 2), "dimension of the input"),
        (_output("ARG_MIN", shape=(10,)), "without the axis"),
        (_numbers("RESIZE_BILINEAR", 1, (8, 9)), "output's rows and columns"),
        (_attributes("RESIZE_BILINEAR", align_corners=True, half_pixel_centers=True), "corners are not aligned"),
        (_resized_to(62), "beyond the input"),
        *((_input(kind, dtype="uint8"), "same dtype") for kind in indexed.NAMED),
        *((_input(kind, 1, data=None), "constant") for kind in ("RESIZE_NEAREST_NEIGHBOR", "PADV2")),
        (_input("PADV2", 2, quant=Quant((0.1,), (3,))), "scale and zero point"),
        (_numbers("MIRROR_PAD", 1, [(0, 0), (4, 0), (2, 1), (0, 0)]), "there is to reflect"),
        (_numbers("MIRROR_PAD", 1, [(0, 0), (-1, 0), (2, 1), (0, 0)]), "there is to reflect"),
        (_output("MIRROR_PAD", shape=(1, 7, 8, 5)), "padded shape"),
        (_attributes("MIRROR_PAD", mode=""), "whether the border is repeated"),
        (_numbers("RESIZE_NEAREST_NEIGHBOR", 1, (8, 9)), "output's rows and columns"),
        (_numbers("RESIZE_NEAREST_NEIGHBOR", 1, (8, 10, 6)), "constant int32"),
        (_input("RESIZE_NEAREST_NEIGHBOR", shape=(1, 1 << 15, 1, 6)), "to 16384"),
        (_input("GATHER", 1, dtype="int16"), "int32"),
        (_attributes("GATHER", axis=2), "axis is one"),
        (_attributes("GATHER", batch_dims=1), "axis is one"),
        (_output("GATHER", shape=(3, 5)), "in place of the axis"),
        (_numbers("GATHER", 1, (0, 9, 1)), "inside the axis"),
        (_numbers("GATHER", 1, (0, -1, 1)), "inside the axis"),
        *((_input(kind, dtype="uint8"), "same dtype") for kind in ("GATHER_ND", "DYNAMIC_UPDATE_SLICE", "ZEROS_LIKE")),
        *((_output(kind, dtype="uint8"), "same dtype") for kind in ("BROADCAST_TO", "TILE", "REVERSE_V2", "FILL")),
        *((_input(kind, 1, data=None), "constant") for kind in ("BROADCAST_TO", "TILE")),
        *((_output(kind, shape=(1, 4, 5, 7)), "same shape")
          for kind in ("REVERSE_V2", "REVERSE_SEQUENCE", "ZEROS_LIKE", "DYNAMIC_UPDATE_SLICE")),
        (_input("FILL", 0, data=None), "a constant"),
        (_numbers("BROADCAST_ARGS", 1, (3, 2, 1)), "one of them is 1"),
        (_output("BROADCAST_ARGS", shape=(4,)), "as long as the longer"),
        (_numbers("BROADCAST_TO", 1, (1, 4, 5, 7)), "shape is the output's"),
        (_input("BROADCAST_TO", shape=(5,)), "broadcasts to the output"),
        (_input("BROADCAST_TO", shape=(1, 1, 4, 5, 6)), "broadcasts to the output"),
        (_numbers("TILE", 1, (1, 1, 1, 0)), "from 1"),
        (_numbers("TILE", 1, (1, 1, 1, 2)), "times its multiple"),
        (_numbers("REVERSE_V2", 1, (1, 3)), "without one between"),
        (_numbers("REVERSE_V2", 1, (1, 1)), "without one between"),
        (_numbers("REVERSE_V2", 1, (4,)), "dimensions of the input"),
        (_numbers("REVERSE_V2", 1, (-5,)), "dimensions of the input"),
        (_input("FILL", 1, shape=(1,)), "a scalar"),
        *((_input(kind, dtype="int16"), "same dtype") for kind in batch_space.KINDS),
        *((_numbers(kind, 1, (2, 0)), "from 1") for kind in batch_space.KINDS),
        *((_numbers(kind, 1, (2, 3)), "make the output's shape") for kind in batch_space.KINDS),
        *((_numbers(kind, 2, ((0, 0), (1, 0))), "make the output's shape") for kind in batch_space.KINDS),
        *((_numbers(kind, 2, ((0, 0), (-1, 1))), "from 0") for kind in batch_space.KINDS),
        *((_output(kind, shape=(96,)), "make the output's shape") for kind in batch_space.KINDS),
        (_input("SCATTER_ND", 2, data=None), "shape is the output's"),
        (_numbers("SCATTER_ND", 2, (5, 4)), "shape is the output's"),
        (_input("SCATTER_ND", 1, dtype="int16"), "same dtype"),
        (_input("SCATTER_ND", 1, shape=(3, 1)), "updates have"),
        (_input("SCATTER_ND", 0, shape=(3, 3)), "at most the output's rank"),
        (_numbers("SCATTER_ND", 0, ((0, 0), (0, 5), (0, 1))), "inside the output"),
        (_input("ONE_HOT", 1, data=None), "one constant int32 from 1"),
        (_numbers("ONE_HOT", 1, 0), "one constant int32 from 1"),
        (_input("ONE_HOT", 2, dtype="int16"), "same dtype"),
        (_input("ONE_HOT", 3, dtype="int32"), "the output's dtype"),
        (_attributes("ONE_HOT", axis=-2), "axis is -1"),
        (_output("ONE_HOT", shape=(4, 5)), "the depth at the axis"),
        (_attributes("REVERSE_SEQUENCE", seq_dim=0), "two dimensions"),
        (_attributes("REVERSE_SEQUENCE", seq_dim=-1), "two dimensions"),
        (_input("REVERSE_SEQUENCE", 1, shape=(5,)), "one per sequence"),
        (_numbers("REVERSE_SEQUENCE", 1, (1, 6, 1)), "at most its length"),
        (_input("REVERSE_SEQUENCE", dtype="int8"), "same dtype"),
        (_input("WHERE", data=None), "condition is constant"),
        (_input("WHERE", dtype="int16"), "condition is bool"),
        (_output("WHERE", shape=(2, 2)), "int64 [places"),
        (_numbers("FILL", 0, (1, 4, 5, 7)), "the output's"),
        (_input("GATHER_ND", 1, dtype="int64"), "int32"),
        (_input("GATHER_ND", 1, shape=(3, 3)), "at most the data's rank"),
        (_output("GATHER_ND", shape=(3, 1)), "not indexed"),
        (_numbers("GATHER_ND", 1, ((0, 0), (3, 5), (1, 1))), "inside the data"),
        (_numbers("GATHER_ND", 1, ((0, 0), (0, -1), (1, 1))), "inside the data"),
        (_input("EMBEDDING_LOOKUP", 0, dtype="int64"), "int32"),
        (_input("EMBEDDING_LOOKUP", 1, dtype="int16"), "the table is"),
        (_input("EMBEDDING_LOOKUP", 1, quant=Quant((0.1,), (3,))), "zero point 0"),
        (_input("EMBEDDING_LOOKUP", 1, shape=(9,)), "rank 2"),
        (_output("EMBEDDING_LOOKUP", shape=(3, 5)), "an entry per index"),
        (_numbers("EMBEDDING_LOOKUP", 0, (0, 9, 1)), "inside the table"),
        (_input("DYNAMIC_UPDATE_SLICE", 1, shape=(1, 9, 2, 4)), "no larger dimension"),
        (_input("DYNAMIC_UPDATE_SLICE", 1, dtype="int16"), "no larger dimension"),
        (_input("DYNAMIC_UPDATE_SLICE", 2, dtype="int16"), "one per dimension"),
        (_output("QUANTIZE", dtype="uint8"), "dtypes"),
        (_zero_point_of_int32("int8 to int32"), "zero point of int32"),
        (replace(NAMED["QUANTIZE"]["int32 to int8"], outputs=(replace(NAMED["QUANTIZE"]["int32 to int8"].output, quant=Quant((0.06,), (0,))),)),
         "scale is below"),
        (_input("CAST", dtype="uint8"), "from int8"),
        (_output("CAST", dtype="int64"), "to int8"),
        (_output("CAST", shape=(1, 3, 4, 4)), "same shape"),
        *((_input(kind, dtype="int8"), "are float32") for kind in ("NEG", "SQUARE")),
        (_output("QUANTIZE", shape=(1, 5, 8, 9)), "same shape"),
        (_output("DEQUANTIZE", dtype="int8"), "dtypes"),
        (_input("DEQUANTIZE", quant=None), "one scale"),
        (_output("SOFTMAX", dtype="uint8"), "int8 or int16"),
        (_output("SOFTMAX", quant=Quant((1 / 128,), (-128,))), "1/256"),
        (_output("SOFTMAX", shape=(10, 1)), "same shape"),
        (_attributes("SOFTMAX", beta=0.0), "above 2^-26"),
        (_attributes("SOFTMAX", beta=float("nan")), "above 2^-26"),
        (_of_int16("SOFTMAX", 0.01, 1), "int16 input is 0"),
        (_of_int16("SOFTMAX", 5.1, 0), "below 5"),
        (replace(_of_int16("SOFTMAX", 0.01, 0), attributes=Softmax(-1.0)), "not negative"),
        (_output("CUMSUM", quant=Quant((1e-9,), (0,))), "below 2^19"),
        (_numbers("CUMSUM", 1, 2), "the axis is an int32"),
        (_output("CUMSUM", shape=(8, 3)), "same shape"),
    ],
)  # fmt: skip
def test_rules(op: Op, message: str) -> None:
    found = broken_rules(op)
    assert found and message in found[0], found


_FAR_SCALES = (1.4e-45, 2.0**-126, 1e-30, 1e-7, 1.0, 1e7, 1e30, 3.4e38)


@pytest.mark.parametrize("kind", (*_UNARY_KINDS, *elementwise.INT8))
@pytest.mark.filterwarnings("error")
def test_any_scales_are_computed_or_refused(kind: str) -> None:
    """For all float32 scales, no rule and no reference overflows, divides by zero or warns."""
    op = _case(kind)
    for first in _FAR_SCALES:
        for result in _FAR_SCALES:
            inputs = [replace(op.input, quant=Quant((f32(first),), (-128,)))]
            inputs += [replace(t, quant=Quant((f32(s),), (9,))) for t, s in zip(op.inputs[1:], (1e-3,), strict=False)]
            quant = Quant((f32(result),), (0,)) if op.output.quant else None
            far = replace(op, inputs=tuple(inputs), outputs=(replace(op.output, quant=quant),))
            if not broken_rules(far):
                references(far, [np.resize(np.arange(-128, 128), t.shape).astype(np.int8) for t in inputs])
