"""Shared parts of all cases: tensors, random shapes and quantizations, inputs, and the .tflite."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from hypothesis import strategies as st
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.unary import UnaryFamily
from tinyfuse.ops.program.detection import Detection

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def f32(value: float) -> float:
    """Rounds to float32, the precision of a file."""
    return float(np.float32(value))


def tensor(shape, scale: float | None = 0.1, zero_point: int = 0, dtype: str = "int8", data=None) -> Tensor:
    """A tensor; scale None: not quantized. `operator` sets its name and index."""
    quant = None if scale is None else Quant((f32(scale),), (zero_point,))
    return Tensor("", tuple(shape), dtype, quant, data)


def constant(data, scale: float | None = None, zero_point: int = 0) -> Tensor:
    data = np.asarray(data)
    return tensor(data.shape, scale, zero_point, str(data.dtype), data)


def operator(kind: str, inputs, outputs: Tensor | list[Tensor], attributes: Any = None) -> Op:
    """An operator on fresh copies of these tensors; a tensor that is given twice remains one."""
    outputs = [outputs] if isinstance(outputs, Tensor) else outputs
    names: dict[Tensor, Tensor] = {}
    for index, t in enumerate((*inputs, *outputs)):
        names.setdefault(t, Tensor(f"t{index}", t.shape, t.dtype, t.quant, t.data, index))
    return Op(kind, tuple(names[t] for t in inputs), tuple(names[t] for t in outputs), attributes, index=0)


def broken_rules(op: Op) -> list[str]:
    """The first rule that `op` breaks, if any."""
    for rule in FAMILIES[op.kind].rules:
        problem = rule.problem(op)
        if problem is not None:
            return [problem.message]
    return []


# --- random parts ----------------------------------------------------------------------------

#: from plain ones to the ends of what converters could ever write
scales = st.one_of(
    st.floats(-3, 0).map(lambda e: f32(10.0**e)),
    st.floats(-7, 4).map(lambda e: f32(10.0**e)),
    st.sampled_from([1.0, 0.5, 1 / 256, f32(0.1)]),
)
zero_points = st.one_of(st.sampled_from([-128, 0, 127]), st.integers(-128, 127))
channels = st.one_of(st.integers(1, 9), st.sampled_from([16, 31, 33, 64, 70]))
#: [1, H, W, C], one pixel included
images = st.tuples(st.just(1), st.integers(1, 7), st.integers(1, 6), channels)
#: any rank from 1 to 4
shapes = st.one_of(images, st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
seeds = st.integers(0, 2**32 - 1)


def random_data(shape, rng: np.random.Generator, dtype: str = "int8") -> np.ndarray:
    if dtype == "float32":
        return _unbounded(shape, "random", rng)
    low, high = stored_range(dtype)
    return rng.integers(low, high + 1, shape).astype(dtype)


def stored_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    if dtype == "bool":
        return 0, 1
    return int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), 2**62)  # numpy draws in int64


def inputs_of(op: Op, seed: int = 0) -> list[list[np.ndarray]]:
    """Inputs for op.activations: all at either end, all at the zero point, two random ones, and every stored value in
    turn, as far as there is room."""
    rng = np.random.default_rng(seed)

    def filled(how: str) -> list[np.ndarray]:
        return [_not_zero(t, op, _filled(t, op, how, rng)) for t in op.activations]

    return [filled(how) for how in ("low", "high", "zero", "random", "random", "every")]


#: kinds whose second input divides: by 0 TFLM's results are undefined, or there are none
_DIVIDE = ("DIV", "FLOOR_DIV", "FLOOR_MOD")


def _not_zero(t: Tensor, op: Op, data: np.ndarray) -> np.ndarray:
    if op.kind not in _DIVIDE or t is not op.inputs[1]:
        return data
    zero = t.quant.zero_point[0] if t.quant else 0
    return np.where(data == zero, data.dtype.type(1 if zero != 1 else 2), data)


#: kinds that make NaN of infinities, or of what becomes infinite in between: its sign is the machine's
_BOUNDED = ("GELU", "L2_NORMALIZATION", "RESIZE_BILINEAR", "SOFTMAX", "LOG_SOFTMAX")


def _filled(t: Tensor, op: Op, how: str, rng: np.random.Generator) -> np.ndarray:
    tried = FAMILIES[op.kind].tried(op, op.inputs.index(t))
    if tried:
        return tried[rng.integers(len(tried))]
    if t.dtype == "float32" and op.kind in ("SOFTMAX", "LOG_SOFTMAX") and how == "random":
        return rng.normal(0, 6, t.shape).astype(np.float32)  # exps of which many count
    if isinstance(op.attributes, Detection):
        # boxes need a size, or the run ends with an error; scores of few values are often equal
        drawn = rng.normal(0, 1.5, t.shape) if how != "every" else rng.integers(-3, 4, t.shape) / 4
        return drawn.astype(np.float32)
    if t.dtype == "float32" and op.kind in _BOUNDED:
        return _unbounded(t.shape, how, rng).clip(-1e18, 1e18)
    if t.dtype == "float32" and op.kind.startswith("CUSTOM Signal"):
        # a NaN's sign, where infinities meet, is the processor's
        return np.nan_to_num(_unbounded(t.shape, how, rng), posinf=1e9, neginf=-1e9).clip(-1e12, 1e12)
    if t.dtype == "float32":
        if op.output.quant:
            return _floats(t.shape, op.output, how, rng)
        if how == "every" and t.elements and isinstance(FAMILIES[op.kind], UnaryFamily):
            return _every_exponent(t.shape, rng)
        return _unbounded(t.shape, how, rng)
    low, high = _range_of(t, op)
    if how in ("random", "every") and t.dtype in ("uint32", "uint64"):
        bits = 8 * np.dtype(t.dtype).itemsize  # of any magnitude
        return rng.integers(0, high, t.shape, t.dtype, endpoint=True) >> rng.integers(0, bits, t.shape, t.dtype)
    if how == "random":
        return rng.integers(low, high + 1, t.shape).astype(t.dtype)
    if how == "every":
        count = max(1, t.elements)
        return np.resize(low + np.arange(min(count, high - low + 1)), t.shape).astype(t.dtype)
    value = {"low": low, "high": high, "zero": t.quant.zero_point[0] if t.quant else 0}[how]
    return np.full(t.shape, value, t.dtype)


def _range_of(t: Tensor, op: Op) -> tuple[int, int]:
    """The least and the greatest value that an input of the operator may have."""
    indexes = FAMILIES[op.kind].indexes(op, op.inputs.index(t))
    return stored_range(t.dtype) if indexes is None else indexes


def _every_exponent(shape, rng: np.random.Generator) -> np.ndarray:
    """Floats of every exponent, with denormal numbers and infinities, without NaN."""
    count = int(np.prod(shape))
    sizes = (np.arange(count) % 255).astype(np.uint32) << 23 | rng.integers(0, 1 << 23, count, np.uint32)
    sizes[-1:] = 0x7F800000
    return (sizes | rng.integers(0, 2, count, np.uint32) << np.uint32(31)).view(np.float32).reshape(shape)


def _unbounded(shape, how: str, rng: np.random.Generator) -> np.ndarray:
    """Floats of any size and sign, infinity included."""
    value = {"low": -np.inf, "high": 3e38, "zero": -0.0}.get(how)
    if value is not None:
        return np.full(shape, value, np.float32)
    # "every": numbers below the least normal one too, which some cores' vectors take for zero
    least = -149 if how == "every" else -3
    return (rng.uniform(-1, 1, shape) * 2.0 ** rng.uniform(least, 34, shape)).astype(np.float32)


def _floats(shape, quantized: Tensor, how: str, rng: np.random.Generator) -> np.ndarray:
    """Floats for a QUANTIZE: around and beyond its range, many halfway between two stored values."""
    if how not in ("random", "every"):
        value = {"low": -3e38, "high": 3e38, "zero": -0.0}.get(how, 1.0)
        # TFLM converts a float beyond int32 to whatever the machine does
        limit = 2.0**30 * quantized.scale
        return np.full(shape, np.clip(value, -limit, limit), np.float32)
    low, high = RANGE[quantized.dtype]
    steps = rng.uniform(1.3 * low, 1.3 * high, shape) - quantized.zero_point
    halves = np.floor(steps) + 0.5
    steps = np.where(rng.random(shape) < 0.5, halves, steps)
    return (steps.astype(np.float32) * np.float32(quantized.scale)).astype(np.float32)


# --- execution -------------------------------------------------------------------------------


def references(op: Op, inputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The family's numpy reference of every output on values for op.activations."""
    values = dict(zip(op.activations, inputs, strict=True))
    arguments = [t if t is None else t.data if t.is_constant else values[t] for t in op.inputs]
    return FAMILIES[op.kind].reference(op, *arguments)


def reference(op: Op, inputs: list[np.ndarray]) -> np.ndarray:
    """The family's numpy reference for an operator with one output."""
    (result,) = references(op, inputs)
    return result


def model_of(op: Op) -> bytes:
    """A .tflite with this one operator."""
    builder = ModelBuilder()
    return builder.build(*add_operator(builder, op, options_of(op)))


def add_operator(builder: ModelBuilder, op: Op, options: dict[str, Any] | None) -> tuple[list[int], list[int]]:
    """Adds the operator to a model; returns the indexes of its inputs and outputs."""
    indexes: dict[Tensor | None, int] = {None: -1}
    for t in (*op.inputs, *op.outputs):
        if t not in indexes:
            quant = (t.quant.scale, t.quant.zero_point, t.quant.axis) if t.quant else (None, None, 0)
            indexes[t] = builder.tensor(t.name, t.shape, t.dtype, *quant, t.data)
    outputs = [indexes[t] for t in op.outputs]
    if op.kind.startswith("CUSTOM "):
        written = None if options is None else flexbuffer(options)
        builder.op("CUSTOM", [indexes[t] for t in op.inputs], outputs, table=False, custom_options=written,
                   custom_code=op.kind.removeprefix("CUSTOM "))  # fmt: skip
        return [indexes[t] for t in op.activations], outputs
    builder.op(op.kind, [indexes[t] for t in op.inputs], outputs, table=options is not None, **(options or {}))
    return [indexes[t] for t in op.activations], outputs


def flexbuffer(options: dict[str, Any]) -> bytes:
    """A FlexBuffer map of integers and booleans, its keys sorted, as converters write custom options."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key in sorted(options):
            write = {bool: builder.Bool, float: builder.Float}.get(type(options[key]), builder.Int)
            write(key, options[key])
    return bytes(builder.Finish())


def options_of(op: Op) -> dict[str, Any] | None:
    """The schema's options for op.attributes; None if there are none."""
    a = op.attributes
    if a is None:
        return None
    if op.kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        return {
            "padding": a.padding, "filter_height": a.filter[0], "filter_width": a.filter[1],
            "stride_h": a.stride[0], "stride_w": a.stride[1], "fused_activation_function": a.activation,
        }  # fmt: skip
    if op.kind in ("ADD", "SUB", "MUL", "DIV"):
        return {"fused_activation_function": a.activation}
    if op.kind == "LEAKY_RELU":
        return {"alpha": a.alpha}
    if op.kind == "CONCATENATION":
        return {"axis": a.axis, "fused_activation_function": a.activation}
    if op.kind == "SOFTMAX":
        return {"beta": a.beta}
    if op.kind == "L2_NORMALIZATION":
        return {"fused_activation_function": a.activation}
    if op.kind == "TRANSPOSE_CONV":
        return {
            "padding": a.padding, "stride_h": a.stride[0], "stride_w": a.stride[1],
            "fused_activation_function": a.activation,
        }  # fmt: skip
    if op.kind == "MIRROR_PAD":
        return {"mode": a.mode}
    if isinstance(a, Detection):
        scales = {f"{axis}_scale": scale for axis, scale in zip("yxhw", a.scales, strict=True)}
        return scales | {
            "max_detections": a.most, "max_classes_per_detection": a.per_box, "detections_per_class": a.each_class,
            "num_classes": a.classes, "use_regular_nms": a.by_class, "nms_score_threshold": a.score,
            "nms_iou_threshold": a.overlap,
        }  # fmt: skip
    if op.kind.startswith("CUSTOM Signal"):
        return signal_options(op.kind.removeprefix("CUSTOM Signal"), a)
    if op.kind == "SQUEEZE":
        return {"squeeze_dims": a.dims}
    if op.kind == "UNPACK":
        return {"num": a.num, "axis": a.axis}
    if op.kind in ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"):
        return {"block_size": a.size}
    return dataclasses.asdict(a)  # named as the schema names them


#: what the file's option T says
TENSOR_TYPES = {"float32": 0, "int32": 2, "int16": 7}


def signal_options(name: str, a: Any) -> dict[str, Any]:
    """Options of a signal library operator."""
    if name in ("Rfft", "Irfft"):
        return {"T": TENSOR_TYPES[a.dtype], "fft_length": a.length}
    if name == "Energy":
        return {"start_index": a.start, "end_index": a.end}
    if name == "FilterBank":
        return {"num_channels": a.channels}
    if name == "FilterBankLog":
        return {"input_correction_bits": a.correction_bits, "output_scale": a.output_scale}
    assert name in ("Window", "PCAN"), name
    return dataclasses.asdict(a)
