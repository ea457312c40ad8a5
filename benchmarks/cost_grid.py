"""The operators whose kernels are measured: random draws, always the same, over what models have."""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from cost_draws import (
    draw_blocks,
    draw_fused_loop,
    draw_looked_up,
    draw_lstm,
    draw_nearest,
    draw_planes,
    draw_product,
    draw_reduction,
    draw_row_product,
    draw_split,
    draw_strided_slice,
    draw_svdf,
    draw_tiled,
    draw_transpose,
    draw_transposed,
    of_dtype,
    sums_of,
)
from cost_elements import (
    PLAIN,
    draw_cast,
    draw_choice_of_two,
    draw_comparison,
    draw_cumsum,
    draw_extreme_place,
    draw_logic,
    draw_sum_of_many,
    plain,
)
from cost_half_even import draw_table_softmax, half_even
from cost_places import DRAWS as PLACES
from cost_places import OWN_DTYPES as PLACES_OF_DTYPES
from cost_signals import KINDS as SIGNALS
from cost_signals import draw_signal
from cost_tensors import (
    CHANNELS,
    PRUNED,
    SIZES,
    image,
    layer_weights,
    like,
    of_int4,
    of_wide_weights,
    operator,
    tensor,
)
from other_dtypes import other_dtype

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import REAL_MULTIPLIER, TWO_ROUNDINGS, clamp_range, rounds_by
from tinyfuse.ops.elementwise.quantize import HalfEven
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSum
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height

#: multiply-accumulates of one operator, where it has any, and elements of its output: enough that its
#: call hardly counts, and few enough that a firmware of a hundred runs in seconds
MACS, MOST_ELEMENTS = range(3_000, 800_000), 8_000
#: multiply-accumulates of a layer over time. First layers are small: one channel, three taps and four filters over a
#: hundred positions take 1,200
MACS_OVER_TIME = range(600, MACS.stop)
#: and of a convolution's, for images of 96x96
MOST_OF_CONVOLUTIONS = 20_000

#: how many draws are made for each operator that is found
_PATIENCE = 60

#: kinds whose draws have their own dtypes -> how many different ones that are
OWN_DTYPES = {
    "SVDF": 3, "UNIDIRECTIONAL_SEQUENCE_LSTM": 3, "ROW_SUM": 3, "ROW_MAX": 3, "ROW_MIN": 3,
    "AVERAGE_OF_SUM": 3, "MEAN_OF_SUM": 3,
    "TABLE": 1, "CHANNEL_TABLES": 1, "ROW_MACS": 1, "OUTPUT_OF_SUMS": 1,
    "FUSED_LOOP": 3, "TILED": 1, "LOOKED_UP": 1, **dict.fromkeys(PLACES_OF_DTYPES, 2), **dict.fromkeys(SIGNALS, 1),
    "CUSTOM SignalRfft": 3, "CUSTOM SignalIrfft": 3, "CUSTOM SignalOverlapAdd": 2,
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"), 1),
}  # fmt: skip

_ACTIVATIONS = ("NONE", "RELU", "RELU6")


def operators(kind: str, count: int, dtype: str = "int8", bias: str = "int64", activation: str = "NONE") -> list[Op]:
    """`count` operators of a kind in that dtype, those of int16 layers with a bias of the other, those of a dtype
    without scale with that activation; none for a kind that no grid is here for, or that takes no such dtype."""
    if kind not in _DRAWS:
        return []
    rng, found, family = random.Random(kind), [], FAMILIES[kind]
    for _ in range(_PATIENCE * count):
        op = _DRAWS[kind](rng, kind)
        if dtype in PLAIN:
            op = plain(op, dtype, activation)
        elif dtype != "int8":
            op = other_dtype(op, dtype, bias)
        fits = _few(op) and (not family.macs(op) or family.macs(op) in MACS or kind in SIGNALS)
        if fits and not any(rule.broken(op) for rule in family.rules):
            found.append(op)
        if len(found) == count:
            break
    return found


def _few(op: Op) -> bool:
    most = MOST_OF_CONVOLUTIONS if op.kind == "CONV_2D" else MOST_ELEMENTS
    return (op.outputs or op.states)[0].elements <= most


def rectifier(output: Tensor) -> Op:
    """A RELU that makes `output` of a tensor like it, row by row."""
    return operator("RELU", [like(output)], output)


def chain(length: int, width: int) -> list[Op]:
    """`length` cheap operators, each of which reads the one before by rows: RELU6, and pools of three
    rows."""
    ops, x = [], tensor((1, 16, width, 4))
    for number in range(length):
        y = tensor(x.shape)
        if number % 3 == 1:
            window = {"filter_height": 3, "filter_width": 1, "stride_h": 1, "stride_w": 1}
            ops.append(operator("MAX_POOL_2D", [x], y, padding="SAME", **window))
        else:
            ops.append(operator("RELU6", [x], y))
        x = y
    return ops


def drawn_for(kernel: str, kind: str, count: int) -> list[Op]:
    """The operators that a kernel of that name is measured on: in the dtype that its name ends in, in each of three if
    it ends in none. Of int16 layers every third has a bias of int32, if it may. Of int8 layers every second is there
    half to even, too."""
    found = _drawn_for(re.sub("_half_even|_by_reciprocal|_float(?=_)", "", kernel), kind, count)
    if "_by_reciprocal" in kernel:
        return [replace(op, attributes=HalfEven(by_reciprocal=True)) for op in found]
    if any(part in kernel for part in ("_half_even", "_float_", "_single_rounding_product_")):
        return [half_even(op) for op in found]
    if kind not in _LAYERS or not kernel.endswith("_s8"):
        return found
    return found + [half_even(op) for op in found[::2] if rounds_by(op, TWO_ROUNDINGS)]


#: kinds whose sums of int8 data are requantized
_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


def _drawn_for(kernel: str, kind: str, count: int) -> list[Op]:
    """Return what `drawn_for` returns, without layers that round half to even."""
    if "palettized" in kernel:
        return _looked_up(kind, count)
    if kind in OWN_DTYPES:
        return operators(kind, OWN_DTYPES[kind] * count)
    if kind in ("CAST", "QUANTIZE", "DEQUANTIZE"):
        return _drawn_conversions(kernel, kind, count)
    if kernel == "tinyfuse_dense_one_vector_mve_s8":  # outputs that are no multiple of four
        rng = random.Random(kernel)
        return _and_of_large_ratios(kernel, [
            _fully_connected(rng, kind, rng.choice((8, 20, 22, 61, 64, 96, 131, 256, 320, 640)), outputs, 0.08)
            for outputs in rng.choices((1, 2, 3, 5, 6, 7, 9, 10, 13, 22, 37), k=count)
        ])  # fmt: skip
    if kernel in _WITH_OWN_SHIFTS:
        every = operators(kind, count) + _over_time(kind, count // 3)
        every += [_of_own_shifts(op) for op in every if op.output.zero_point == -128]
        # outputs of both signs leave no single rounding; of few layers of the grid
        both_signs = (op for op in operators(kind, 6 * count) if clamp_range(op)[0] < op.output.zero_point)
        every += [_with_last_ratio(op, 0.7) for op in both_signs]
        return every
    if kernel.endswith("_s4"):
        return [of_int4(op) for op in operators(kind, count)]
    if kernel.endswith("_w16"):
        return [of_wide_weights(op) for op in operators(kind, count)]
    if kernel.endswith("_f32"):
        small = _small_dense(kernel, count) if kernel == "tinyfuse_dense_f32" else []
        return operators(kind, count, "float32") + [plain(op, "float32") for op in small]
    if kernel.endswith("_s8_s16"):
        return _allowed(_to_int16(op) for op in operators(kind, count))
    if kind == "PRELU" and kernel.endswith("_s16"):  # whose alpha is int8
        pairs = ((op, other_dtype(op, "int16")) for op in operators(kind, count))
        return [replace(wide, inputs=(wide.input, op.operand(1))) for op, wide in pairs]
    if "_real_" in kernel:
        return [
            replace(op, attributes=replace(op.attributes, rounding=REAL_MULTIPLIER)) for op in operators(kind, count)
        ]
    if "_average_pool_up_" in kernel:
        return [replace(op, attributes=replace(op.attributes, halves_up=True)) for op in operators(kind, count)]
    suffix = kernel.rpartition("_")[2]
    if _DTYPE.get(suffix) in PLAIN:
        return operators(kind, count, _DTYPE[suffix], activation="RELU" if "_clamped_" in kernel else "NONE")
    if kernel.endswith("_s8"):
        return _drawn_int8(kernel, kind, count)
    wide = operators(kind, count, "int16")
    if kind in ("CONV_2D", "FULLY_CONNECTED"):
        wide[2::3] = operators(kind, count, "int16", "int32")[2::3]
    return wide if kernel.endswith("_s16") else operators(kind, count) + wide + operators(kind, count, "float32")


def _drawn_conversions(kernel: str, kind: str, count: int) -> list[Op]:
    """Return conversions between the dtypes that end a kernel's name."""
    if kernel == "tinyfuse_invert_sign":
        return [_of_other_sign(op) for op in operators(kind, count)]
    source, target = (_DTYPE[suffix] for suffix in kernel.split("_")[-2:])
    if kind == "CAST":
        rng = random.Random(kind)
        return [op for op in (draw_cast(rng, kind, source, target) for _ in range(2 * count)) if _few(op)][:count]
    return _allowed(_converted(op, source, target) for op in operators(kind, count))


def _drawn_int8(kernel: str, kind: str, count: int) -> list[Op]:
    """Return int8 operators, with those that take the kernel's less usual branches."""
    if kernel == "tinyfuse_depthwise_row_s8":
        return operators(kind, count) + _of_few_channels(kind, count) + _over_time(kind, count // 3)
    if kernel == "tinyfuse_conv_row_s8":
        every = operators(kind, count)
        return every + [_of_one_value(op) for op in every[:_OF_ONE_VALUE]]
    if kernel in _GATHERING:
        every = operators(kind, count)
        odd = [op for op in every if op.input.shape[3] % 4]
        columns = [_of_one_column(op) for op in every[::3] + odd if op.operand(1).shape[1] <= op.input.shape[1]]
        # too large a ratio for one rounding
        rounded_twice = [_with_last_ratio(op, 0.3) for op in odd[::2] + columns[::2]]
        first = _first_layers(kind, count // 6) + _first_over_time(kind, count // 3)
        drawn = every + columns + _over_time(kind, count // 3) + first + rounded_twice
        return _and_of_large_ratios(kernel, drawn)
    if kernel == "tinyfuse_pointwise_4x2_mve_s8" and kind == "CONV_2D":
        return _and_of_large_ratios(kernel, operators(kind, count) + _pointwise_of_vectors(kind, count // 5))
    small = _small_dense(kernel, count // 4) if kernel == "tinyfuse_dense_wide_s8" else []
    return _and_of_large_ratios(kernel, operators(kind, count) + small)


#: the suffix of a kernel's C -> the dtype
_DTYPE = {suffix: dtype for dtype, suffix in SUFFIX.items()}


def _converted(op: Op, source: str, target: str) -> Op:
    """The same conversion between other dtypes."""

    def data(given: Tensor, dtype: str) -> Tensor:
        if dtype == "float32":
            return replace(given, dtype=dtype, quant=None)
        zero_point = {"int16": 0, "int32": 0, "uint8": given.zero_point + 128}.get(dtype, given.zero_point)
        return replace(given, dtype=dtype, quant=replace(given.quantization, zero_point=(zero_point,)))

    return replace(op, inputs=(data(op.input, source),), outputs=(data(op.output, target),))


def _to_int16(op: Op) -> Op:
    """From int8 to int16, which SOFTMAX scales in its own way."""
    output = other_dtype(op, "int16").output
    if op.kind == "SOFTMAX":
        output = replace(output, quant=replace(output.quantization, scale=(1 / 65536,), zero_point=(-32768,)))
    return replace(op, outputs=(output,))


#: kernels with a path for layers whose channels' multipliers are far apart
_WITH_OWN_SHIFTS = (
    *(
        f"tinyfuse_depthwise_{sort}_s8"
        for sort in ("3x3_row", "packed_row", "weight_stationary_row", "paired_row", "line")
    ),
)


def _of_own_shifts(op: Op) -> Op:
    """The same layer with a multiplier of 0.8 of its first channel."""
    weights, output = op.operand(1), op.output.quantization
    scale = 0.8 * output.scale[0] / op.input.scale, *weights.quantization.scale[1:]
    weights = replace(weights, quant=replace(weights.quantization, scale=scale))
    return replace(op, inputs=(like(op.input), weights, *op.inputs[2:]), outputs=(like(op.output),))


#: layers whose clamp leaves a single value, beside others
_OF_ONE_VALUE = 12


def _of_one_value(op: Op) -> Op:
    """The same layer with a clamp that leaves the last value alone."""
    output = like(replace(op.output, quant=replace(op.output.quantization, zero_point=(127,))))
    attributes = replace(op.attributes, activation="RELU")
    return replace(op, inputs=(like(op.input), *op.inputs[1:]), outputs=(output,), attributes=attributes)


#: kernels that gather windows for several pixels of a row
_GATHERING = ("tinyfuse_conv_packed_row_s8", "tinyfuse_conv_4x2_row_s8")


def _of_one_column(op: Op) -> Op:
    """Return the same convolution of an image as wide as its window: rows of one pixel, as layers over time have."""
    (_, height, _, in_c), (out_c, kernel_h, kernel_w, _) = op.input.shape, op.operand(1).shape
    attributes = replace(op.attributes, padding="VALID")
    rows = (height - kernel_h) // op.attributes.stride[0] + 1
    image, output = replace(op.input, shape=(1, height, kernel_w, in_c)), replace(op.output, shape=(1, rows, 1, out_c))
    return replace(op, inputs=(like(image), *op.inputs[1:]), outputs=(like(output),), attributes=attributes)


#: kernels of layers that have a form for large ratios of scales, with a ratio that needs it
_LARGE_RATIOS = dict.fromkeys(
    ("tinyfuse_dense_s8", "tinyfuse_dense_wide_s8", "tinyfuse_pointwise_s8", *_GATHERING), 0.7
)
_SHIFTED_BY_HELIUM = (
    "pointwise_2x4_mve", "conv_2x4_mve_row", "dense_one_vector_mve", "depthwise_mve_row",
    "depthwise_interleaved_mve_row",
)  # fmt: skip
_LARGE_RATIOS |= dict.fromkeys((f"tinyfuse_{sort}_s8" for sort in _SHIFTED_BY_HELIUM), 1.5)


def _and_of_large_ratios(kernel: str, ops: list[Op]) -> list[Op]:
    """Return the operators, and a copy of every fourth one whose last channel has a ratio of scales that selects
    another variant of the kernel."""
    ratio = _LARGE_RATIOS.get(kernel)
    layers = [op for op in ops if op.kind in _LAYERS and op.kind != "TRANSPOSE_CONV"]
    return ops if ratio is None else ops + [_with_last_ratio(op, ratio) for op in layers[::4]]


def _with_last_ratio(op: Op, ratio: float) -> Op:
    """Return the same layer with a last channel whose sums are multiplied by `ratio`."""
    weights, out_c = op.operand(1), op.output.shape[-1]
    scales = np.resize(weights.quantization.scale, out_c)
    scales[-1] = np.float32(ratio * op.output.scale / op.input.scale)
    quant = replace(weights.quantization, scale=tuple(map(float, scales)), zero_point=(0,) * out_c)
    return replace(op, inputs=(op.input, replace(weights, quant=quant), *op.inputs[2:]))


def _small_dense(kernel: str, count: int) -> list[Op]:
    """Return fully connected layers whose calls count beside their multiplications, as small networks have."""
    rng = random.Random(kernel)
    sizes = [(rng.choice((1, 3, 4, 8, 10, 16, 20, 32)), rng.randint(1, 24)) for _ in range(count)]
    return [_fully_connected(rng, "FULLY_CONNECTED", *size, 0.08) for size in sizes]


def _over_time(kind: str, count: int) -> list[Op]:
    """Return layers over time; none of other kinds."""
    if kind not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return []
    rng, macs = random.Random(f"{kind} over time"), FAMILIES[kind].macs
    every = (_draw_over_time(rng, kind) for _ in range(_PATIENCE * count))
    return list(itertools.islice((op for op in every if _few(op) and macs(op) in MACS_OVER_TIME), count))


def _first_layers(kind: str, count: int) -> list[Op]:
    """Return first layers of images with padding, the most of whose windows reach into it: none of kinds without."""
    if kind != "CONV_2D":
        return []
    rng, found = random.Random("first layers"), list[Op]()
    while len(found) < count:
        shape = (1, rng.choice(SIZES[7:]), rng.choice(SIZES[7:]), rng.choice((1, 1, 2, 3, 3, 3, 5)))
        window, stride = rng.choice([(3, 3)] * 5 + [(5, 5), (1, 3), (3, 1), (10, 4)]), rng.choice([(1, 1), (2, 2)])
        op = _convolution(rng, kind, shape, rng.choice(CHANNELS[2:13]), window, stride, "SAME")
        found += [op] * (_few(op) and FAMILIES[kind].macs(op) in MACS)
    return found


def _first_over_time(kind: str, count: int) -> list[Op]:
    """Return first layers of sensor networks: few channels, along a row. Return [] unless `kind` is CONV_2D."""
    if kind != "CONV_2D":
        return []
    rng, found = random.Random("first layers over time"), list[Op]()
    while len(found) < count:
        shape, window = (
            (1, 1, rng.choice(_LENGTHS[4:]), rng.choice((1, 1, 2, 3, 5, 6, 9))),
            (1, rng.choice((3, 5, 7, 9))),
        )
        padding, stride = rng.choice(("SAME", "SAME", "VALID")), (1, rng.choice((1, 1, 1, 2)))
        op = _convolution(rng, kind, shape, rng.choice(CHANNELS[2:13]), window, stride, padding)
        found += [op] * (FAMILIES[kind].macs(op) in MACS_OVER_TIME)
    return found


def _pointwise_of_vectors(kind: str, count: int) -> list[Op]:
    """Return pointwise convolutions of whole vectors of sixteen inputs, two and more, of which few others are."""
    every = (op for op in operators(kind, 20 * count) if op.input.shape[3] % 16 == 0 and op.input.shape[3] > 16)
    return [op for op in every if op.operand(1).shape[1:3] == (1, 1)][:count]


def _of_few_channels(kind: str, count: int) -> list[Op]:
    """Layers of an image's channels, which no other kernel serves."""
    return [op for op in operators(kind, 20 * count) if op.input.shape[3] < 4][:count]


def _of_other_sign(op: Op) -> Op:
    """From int8 to uint8, of the same values."""
    quant = replace(op.input.quantization, zero_point=(op.input.zero_point + 128,))
    return replace(op, outputs=(replace(op.output, dtype="uint8", quant=quant),))


def _allowed(ops: Iterable[Op]) -> list[Op]:
    return [op for op in ops if not any(rule.broken(op) for rule in FAMILIES[op.kind].rules)]


#: layers of so few pixels that looking weights up is most of the work, or much of it
_FEW_PIXELS = {"CONV_2D": 8, "DEPTHWISE_CONV_2D": 24, "FULLY_CONNECTED": 2}


def _looked_up(kind: str, count: int) -> list[Op]:
    every = operators(kind, 20 * count)
    small = [op for op in every if op.output.elements // op.output.shape[-1] <= _FEW_PIXELS[kind]]
    return [_of_few_values(op, number) for number, op in enumerate(small[:count])]


def _of_few_values(op: Op, seed: int) -> Op:
    """The same layer with weights of 2 to 16 values, every other time of each channel its own; of depthwise
    convolutions all channels share them."""
    rng, weights = np.random.default_rng(seed), op.operand(1)
    of_channel = weights.values.reshape(weights.shape[0], -1).copy()
    own = weights.shape[0] > 1 and seed % 2 == 0
    for rows in of_channel if own else [of_channel]:
        values = rng.choice(np.unique(of_channel), 2 + seed // 2 % 15)
        rows[:] = rng.choice(np.append(values, np.int8(0)) if op.kind == "DEPTHWISE_CONV_2D" else values, rows.shape)
    few = replace(weights, data=of_channel.reshape(weights.shape))
    return replace(op, inputs=(op.input, few, *op.inputs[2:]))


#: sizes that first layers have beside others; sorts of convolutions that are drawn -> their input channels
_OF_IMAGES = (48, 64, 96)
#: steps, and channels, of layers over time
_LENGTHS, _OVER_TIME = (
    (8, 13, 16, 20, 25, 32, 40, 50, 60, 75, 96, 120, 160),
    (1, 2, 3, 6, 4, 8, 8, 9, 12, 16, 24, 30, 32),
)
_SORTS = {"first": (1, 3), "words": (4, 4, 8, 8, 12, 16, 24, 32), "cut": PRUNED}


def _draw_convolution(rng: random.Random, kind: str) -> Op:
    """Of convolutions a fifth are first layers, of one or three channels, a quarter have windows of whole words, as
    what follows in most networks, a fifth read what is left of channels that were cut, one in two of these pointwise,
    and a fifth are pointwise."""
    shape = (*image(rng)[:3], rng.choice((*CHANNELS, *PRUNED)))
    depthwise = kind == "DEPTHWISE_CONV_2D"
    sort = "depthwise" if depthwise else rng.choices([*_SORTS, "pointwise", "other"], [3, 4, 3, 3, 2])[0]
    if sort in _SORTS:
        sizes = (*SIZES[2:], *_OF_IMAGES) if sort == "first" else SIZES[2:]
        shape = (1, rng.choice(sizes), rng.choice(sizes), rng.choice(_SORTS[sort]))
    windows = [*[(3, 3)] * 5, (5, 5), (2, 2), (3, 1), (1, 3), (10, 4), (7, 1)]
    pointwise = sort == "pointwise" or (sort == "cut" and rng.random() < 0.5)
    kernel = (1, 1) if pointwise else rng.choice(windows)
    stride = (1, 1) if pointwise else rng.choice([(1, 1), (1, 1), (2, 2), (2, 1)])
    out_c = shape[3] if depthwise else rng.choice((*CHANNELS, *PRUNED))
    padding = "SAME" if kernel[0] > shape[1] or kernel[1] > shape[2] else rng.choice(["SAME", "VALID"])
    return _convolution(rng, kind, shape, out_c, kernel, stride, padding)


def _draw_over_time(rng: random.Random, kind: str) -> Op:
    """A Conv1D or DepthwiseConv1D layer as Keras writes it: an image of a single row, or of a single column as plans
    turn it; two in three keep their length."""
    length, taps, step = rng.choice(_LENGTHS), rng.choice((2, 3, 3, 4, 5, 5, 7, 8, 9, 11)), rng.choice((1, 1, 1, 2, 3))
    in_c = rng.choice(_OVER_TIME)
    out_c = in_c if kind == "DEPTHWISE_CONV_2D" else rng.choice(_OVER_TIME[2:])
    shape, kernel, stride = (1, 1, length, in_c), (1, taps), (1, step)
    if rng.random() < 0.5:
        shape, kernel, stride = (1, length, 1, in_c), (taps, 1), (step, 1)
    padding = "VALID" if taps <= length and rng.random() < 1 / 3 else "SAME"
    return _convolution(rng, kind, shape, out_c, kernel, stride, padding)


def _convolution(rng: random.Random, kind: str, shape, out_c: int, kernel, stride, padding: str) -> Op:
    depthwise = kind == "DEPTHWISE_CONV_2D"
    dims = [
        -(-dim // s) if padding == "SAME" else (dim - k) // s + 1
        for dim, k, s in zip(shape[1:3], kernel, stride, strict=True)
    ]
    weights_shape = (1, *kernel, out_c) if depthwise else (out_c, *kernel, shape[3])
    weights = layer_weights(rng, weights_shape, out_c, 3 if depthwise else 0)
    activation = rng.choice(_ACTIVATIONS)
    output = tensor((1, *dims, out_c), 0.08, -128 if activation != "NONE" else rng.randrange(-20, 20))
    return operator(
        kind, [tensor(shape), *weights], output, padding=padding, stride_h=stride[0], stride_w=stride[1],
        depth_multiplier=1, fused_activation_function=activation,
    )  # fmt: skip


def _draw_fully_connected(rng: random.Random, kind: str) -> Op:
    # pruned channels leave depths that are no multiple of four, which kernels of their own serve
    in_c = rng.choice((*CHANNELS, 200, 256, 320, 640, 22, 45, 61, 131))
    out_c = rng.choice((*CHANNELS, 2, 6))
    return _fully_connected(rng, kind, in_c, out_c, 0.08)


def _fully_connected(rng: random.Random, kind: str, in_c: int, out_c: int, scale: float) -> Op:
    batches = rng.choice([1, 1, 1, 2, 5])
    weights, bias = layer_weights(rng, (out_c, in_c), 1, 0)
    bias_data = np.resize(bias.data, out_c)
    bias = Tensor(bias.name, (out_c,), "int32", bias.quant, bias_data, bias.index)
    activation = rng.choice(_ACTIVATIONS)
    output = tensor((batches, out_c), scale, -128 if activation != "NONE" else 5)
    return operator(kind, [tensor((batches, in_c)), weights, bias], output, fused_activation_function=activation)


def _draw_pool(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    size = rng.choice([(2, 2), (3, 3), (2, 1), shape[1:3], shape[1:3]])
    if rng.random() < 0.4:  # behind layers over time, which plans turn as they like
        length = rng.choice(_LENGTHS)
        shape, size = rng.choice([((1, length, 1, shape[3]), (2, 1)), ((1, 1, length, shape[3]), (1, 2))])
    stride = size if rng.random() < 0.5 else (1, 1)
    size = (min(size[0], shape[1]), min(size[1], shape[2]))
    dims = [(dim - k) // s + 1 for dim, k, s in zip(shape[1:3], size, stride, strict=True)]
    return operator(
        kind, [tensor(shape)], tensor((1, *dims, shape[3])), padding="VALID", filter_height=size[0],
        filter_width=size[1], stride_h=stride[0], stride_w=stride[1],
    )  # fmt: skip


def _draw_binary(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    data = np.random.default_rng(rng.randrange(2**31)).integers(-127, 128, shape[3:]).astype(np.int8)
    constant = tensor(shape[3:], 0.03, 3, data=data)
    other = constant if rng.random() < 0.5 else tensor(shape, 0.04, 5)
    fine = 0.0007 if kind == "MUL" and rng.random() < 0.4 else 0.07  # products are scaled up where the output is fine
    output = tensor(shape, 0.01 if kind == "DIV" else fine, 1)
    activation = rng.choice(["NONE", "NONE", "RELU"])
    return operator(kind, [tensor(shape), other], output, fused_activation_function=activation)


#: functions whose output's quantization is fixed
_FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def _draw_choice(rng: random.Random, kind: str) -> Op:
    """MAXIMUM, MINIMUM and PRELU, whose tensors have one quantization, as files of TensorFlow have it."""
    shape = image(rng)
    x = tensor(shape, 0.05, 3)
    data = np.random.default_rng(rng.randrange(2**31)).integers(-127, 128, shape[3:]).astype(np.int8)
    constant = rng.random() < 0.5
    other = tensor(shape[3:], 0.05, 3, data=data) if constant else like(x)
    return operator(kind, [x, other], like(x))


def _draw_unary(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    scale, zero_point = _FIXED.get(kind, rng.choice([(0.05, -128), (0.07, 3)]))
    return operator(kind, [tensor(shape)], tensor(shape, scale, zero_point), alpha=0.1)


def _draw_gelu(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    return operator(kind, [tensor(shape)], tensor(shape, 0.05, -128), approximate=rng.random() < 0.5)


def _draw_tables(rng: random.Random, kind: str) -> Op:
    """One in three gives int16."""
    shape, dtype = image(rng), rng.choice(["int8", "int8", "int16"])
    channels = () if kind == "TABLE" else shape[3:]
    data = np.random.default_rng(rng.randrange(2**31)).integers(-128, 128, (*channels, 256)).astype(dtype)
    constant = tensor(data.shape, 0.0, 0, dtype, data)
    return Op(kind, (tensor(shape), constant), (tensor(shape, dtype=dtype),), Table(()))


def _draw_dequantize(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    return operator(kind, [tensor(shape)], tensor(shape, 0.0, 0, "float32"))


def _draw_reshape(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    flat = tensor((1, shape[1] * shape[2] * shape[3]))
    return operator(kind, [tensor(shape)], flat, new_shape=flat.shape)


def _draw_softmax(rng: random.Random, kind: str) -> Op:
    few = rng.choice([1, 1, 4, 9]), rng.choice([2, 3, 5, 10, 12, 20, 64])
    many = 1, rng.choice([4, 9, 16]), rng.choice([1, 2, 4]), rng.choice([20, 48, 64])
    shape = rng.choice([few, few, many]) if kind == "SOFTMAX" else few
    scale, zero_point = {"LOG_SOFTMAX": (16 / 256, 127), "L2_NORMALIZATION": (1 / 128, 0)}.get(kind, (1 / 256, -128))
    # of an input of coarse steps, most exps are those of values that count as zero
    steps = rng.choice([0.05, 0.1, 0.25, 1.0, 4.0]) if kind == "SOFTMAX" else 0.05
    return operator(kind, [tensor(shape, steps)], tensor(shape, scale, zero_point), beta=1.0)


def _draw_pad(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    amounts = [(0, 0), (rng.randrange(3), rng.randrange(3)), (rng.randrange(3), rng.randrange(3)), (0, 0)]
    data = np.array(amounts, np.int32)
    output = tensor([dim + sum(amount) for dim, amount in zip(shape, amounts, strict=True)])
    return operator(kind, [tensor(shape), tensor((4, 2), 0.0, 0, "int32", data)], output)


def _draw_concatenation(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    inputs = [tensor((*shape[:3], rng.choice(CHANNELS))) for _ in range(rng.choice([2, 2, 3]))]
    output = tensor((*shape[:3], sum(t.shape[3] for t in inputs)))
    return operator(kind, inputs, output, axis=3)


def _draw_mean(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    axes = tensor((2,), 0.0, 0, "int32", np.array([1, 2], np.int32))
    return operator(kind, [tensor(shape), axes], tensor((1, shape[3]), 0.05, -120), keep_dims=False)


def _draw_row_sum(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    x = of_dtype(rng, tensor(shape))
    return operator(kind, [x], tensor((1, shape[1], 1, shape[3]), 0.0, 0, sums_of(x)))


def _draw_average(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    output = of_dtype(rng, tensor((1, 1, 1, shape[3])))
    sums = tensor((1, shape[1], 1, shape[3]), 0.0, 0, sums_of(output))
    return Op(kind, (sums,), (output,), AverageOfSum(shape[1] * shape[2]))


def _draw_split(rng: random.Random, kind: str) -> Op:
    """A part of a layer whose window is as high as its image (rewrite/split_full_height.py)."""
    if kind == "MEAN_OF_SUM":
        layer = _draw_mean(rng, "MEAN")
        dtype = rng.choice(["int8", "int16", "float32"])
        layer = layer if dtype == "int8" else other_dtype(layer, dtype)
    else:
        layer_kind = rng.choice(["CONV_2D", "DEPTHWISE_CONV_2D"])
        shape = (1, rng.choice([3, 4, 6, 9, 13]), *image(rng)[2:])
        kernel = (shape[1], min(shape[2], rng.choice([1, 3, 5])))
        out_c = shape[3] if layer_kind == "DEPTHWISE_CONV_2D" else rng.choice(CHANNELS)
        weights = (1, *kernel, out_c) if layer_kind == "DEPTHWISE_CONV_2D" else (out_c, *kernel, shape[3])
        layer = operator(
            layer_kind, [tensor(shape), *layer_weights(rng, weights, out_c, 3 if weights[0] == 1 else 0)],
            tensor((1, 1, shape[2] - kernel[1] + 1, out_c), 0.08), padding="VALID", stride_h=1, stride_w=1,
            depth_multiplier=1, fused_activation_function="RELU",
        )  # fmt: skip
    graph = Graph("grid", "", (layer,), (layer.input,), (layer.output,))
    parts = [op for split in (split_full_height, split_dense) for op in split(graph).ops if op.kind == kind]
    return parts[0] if parts else _draw_split(rng, kind)


def _draw_looked_up(rng: random.Random, kind: str) -> Op:
    """One in three is depthwise."""
    return draw_looked_up(rng, _draw_convolution(rng, rng.choice(["CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D"])))


_DRAWS: dict[str, Callable[[random.Random, str], Op]] = {
    "CONV_2D": _draw_convolution,
    "DEPTHWISE_CONV_2D": _draw_convolution,
    "FULLY_CONNECTED": _draw_fully_connected,
    "AVERAGE_POOL_2D": _draw_pool,
    "MAX_POOL_2D": _draw_pool,
    "TRANSPOSE_CONV": draw_transposed,
    "BATCH_MATMUL": draw_product,
    "ROWS_MATMUL": draw_row_product,
    "SVDF": draw_svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": draw_lstm,
    **dict.fromkeys(("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "DIV", "POW"), _draw_binary),
    **dict.fromkeys(("FLOOR_DIV", "FLOOR_MOD"), _draw_binary),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), draw_comparison),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"), draw_logic),
    "ADD_N": draw_sum_of_many,
    "SELECT_V2": draw_choice_of_two,
    "CUMSUM": draw_cumsum,
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), draw_extreme_place),
    "L2_POOL_2D": _draw_pool,
    "GELU": _draw_gelu,
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "PRELU"), _draw_choice),
    **dict.fromkeys(("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "ELU", "ABS"), _draw_unary),
    **dict.fromkeys(
        ("RSQRT", "NEG", "SQUARE", "SQRT", "FLOOR", "CEIL", "ROUND", "EXP", "LOG", "SIN", "COS"), _draw_unary
    ),
    "QUANTIZE": _draw_unary,
    "TABLE": _draw_tables,
    "CHANNEL_TABLES": _draw_tables,
    "FUSED_LOOP": draw_fused_loop,
    "TILED": draw_tiled,
    "LOOKED_UP": _draw_looked_up,
    "DEQUANTIZE": _draw_dequantize,
    "RESHAPE": _draw_reshape,
    "SOFTMAX": _draw_softmax,
    "TABLE_SOFTMAX": draw_table_softmax,
    "LOG_SOFTMAX": _draw_softmax,
    "L2_NORMALIZATION": _draw_softmax,
    "PAD": _draw_pad,
    "CONCATENATION": _draw_concatenation,
    "MEAN": _draw_mean,
    **dict.fromkeys(("SUM", "REDUCE_MAX", "REDUCE_MIN"), draw_reduction),
    "TRANSPOSE": draw_transpose,
    **dict.fromkeys(("PLANES_TO_ROWS", "ROWS_TO_PLANES"), draw_planes),
    "STRIDED_SLICE": draw_strided_slice,
    "SPLIT": draw_split,
    "SPACE_TO_DEPTH": draw_blocks,
    "DEPTH_TO_SPACE": draw_blocks,
    "RESIZE_NEAREST_NEIGHBOR": draw_nearest,
    **dict.fromkeys(("ROW_SUM", "ROW_MAX", "ROW_MIN"), _draw_row_sum),
    "AVERAGE_OF_SUM": _draw_average,
    "ROW_MACS": _draw_split,
    "OUTPUT_OF_SUMS": _draw_split,
    "MEAN_OF_SUM": _draw_split,
    **PLACES,
    **dict.fromkeys(SIGNALS, draw_signal),
}
