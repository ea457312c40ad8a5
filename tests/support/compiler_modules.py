"""Small modules that together call every kernel of ours, each on every path that a core takes: what
test_compilers.py compiles with all flags, and test_any_cpu.py on this machine.

    plans = modules(target)          each with a module name of its own
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import layer_cases
import numpy as np
from attention_cases import by_rows, matrices
from batch_module import named_apart
from cache_models import replacements
from cases import NAMED, common
from compressed_cases import few_values
from computed_layer_models import MODELS as COMPUTED
from computed_operand_models import ALONG, PADDED
from computed_parameter_models import MEMORY, TABLES
from control_flow_models import MODELS as CONTROL_FLOW
from control_flow_models import STREAMS as CONTROL_FLOW_STREAMS
from conv_cases import FAMILIES as CONVOLUTIONS
from conv_cases import Shape, make_op, of_int4, options_of, with_multipliers
from executors import grouped_plan, plan_of
from nchw_networks import FIRST, LAST
from once_per_session import once_per_session
from onnx_networks import OnnxWriter, Value, onnx_network
from other_dtypes import model_bytes
from random_graphs import Sketch
from signal_models import SIGNAL_MODELS
from sliding_models import padded
from stacked_networks import residual, stacked
from stream_models import STREAM_MODELS
from test_fused_loops import loops, wide_loops
from test_fused_luts import layers
from test_pool_rewrites_of_dtypes import pooled
from test_slice_at import sliced
from test_sliding_rings import chain
from test_split_full_height import SPLIT
from tflite_builder import ModelBuilder
from tiled_networks import tiled_plan
from uint8_models import CASES as UINT8
from uint8_models import graph_in_uint8

from tinyfuse.api.pickled import plan_from_bytes, plan_to_bytes
from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.read_model import read_model
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for, kernels_of
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.schedule.kernel_choice.select import whole_kernel
from tinyfuse.targets import load_target

#: for every form of the packed kernels, with rests of channels and of pixels
SHAPES = (
    Shape("CONV_2D", 3, 7, 3, 5, (3, 3)), Shape("CONV_2D", 4, 5, 8, 6, (2, 3)), Shape("CONV_2D", 2, 7, 12, 7),
    Shape("CONV_2D", 3, 1, 20, 9), Shape("CONV_2D", 4, 5, 6, 4, (3, 3), groups=2),
    Shape("DEPTHWISE_CONV_2D", 5, 6, 10, 10, (3, 3)), Shape("DEPTHWISE_CONV_2D", 6, 3, 9, 9, (5, 2)),
    Shape("DEPTHWISE_CONV_2D", 5, 4, 3, 6, (3, 3), multiplier=2), Shape("FULLY_CONNECTED", 2, 1, 36, 9),
    Shape("FULLY_CONNECTED", 1, 1, 300, 4), Shape("FULLY_CONNECTED", 2, 1, 37, 66, per_channel=False),
    Shape("FULLY_CONNECTED", 1, 1, 20, 5, per_channel=False, weights_zero_point=3),
)  # fmt: skip


#: of merged operators
LOOPS = (1, 3, 4, 8)

#: of the models with state, those that have kernels which no other one has
STREAMS = ("every kind of state", "svdf of float32", "svdf of float32, tanh", "lstm of int16", "lstm of float32")
#: averages that are taken row by row, with the operators of each group; and what they are averages of
AVERAGES, REAL = (("AVERAGE_POOL_2D", 4), ("MEAN", 4, 1)), ("int16", "float32")
#: for every kernel of int4
INT4_SHAPES = (
    Shape("FULLY_CONNECTED", 1, 1, 28, 8), Shape("CONV_2D", 3, 7, 12, 8), Shape("CONV_2D", 5, 7, 4, 6, (3, 3)),
    Shape("CONV_2D", 3, 7, 3, 5, (3, 3)),
)  # fmt: skip


#: where it pays to load weights less often
_IN_SLOW_FLASH = {"optimize": "speed", "count": "cycles", "timing": "100MHz,wait=20,line=4"}

#: a core that has another one's kernels and costs, and so its plans
_PLANNED_AS = {"cortex-m33": "cortex-m4"}

#: operators of a module: few, for each one's inputs and outputs are alive all the time
_OPERATORS = 8


@cache
def modules(target: str) -> list[Plan]:
    """Plans for the target: operators for each kernel and path, several in each module; results of rewrites; streams;
    fed rows."""
    core = load_target(target)
    plans = (plan_from_bytes(data) for data in _modules(_PLANNED_AS.get(target, target)))
    return [replace(plan, context=replace(plan.context, target=core)) for plan in plans]


#: random ONNX networks that together have every kernel of onnxruntime's arithmetic but those of the network below
_ONNX_SEEDS = (0, 1, 2, 5, 6, 12)


def _modules_of_onnx(target: str) -> Iterator[Plan]:
    """Plans of ONNX networks, and of ExecuTorch's quantization."""
    for data in (*(onnx_network(seed).data for seed in _ONNX_SEEDS), _floats_and_transposed()):
        graph = read_model("model.onnx", data)
        yield compile_graph(graph, load_target(target), Options("net", kernels="tinyfuse", optimize="ram"))
    program = next(Path(__file__).parents[1].rglob("*.pte")).read_bytes()
    yield compile_graph(read_model("model.pte", program), load_target(target), Options("net", kernels="tinyfuse"))


def _floats_and_transposed() -> bytes:
    """Sums that are halves, whose operands are alike or repeated; products by a channel, of two inputs, and of two inputs
    within a loop; a transposed convolution."""
    w = OnnxWriter("int8")
    shape = (1, 4, 5, 6)
    x, y = (w.input(shape, 2.0**-5, 0) for _ in range(2))
    constant = w.weights(np.array([[[[3]], [[5]], [[-7]], [[9]]]], np.int8), np.array(2.0**-5), 0)
    like = Value("", shape, 2.0**-4, 0)
    total = w.quantize(w.node("Add", [w.real(x), w.real(y)])[0], like)
    total = w.quantize(w.node("Add", [w.real(total), constant])[0], Value("", shape, 2.0**-3, 0))
    total = w.quantize(w.node("Mul", [w.real(total), constant])[0], like)
    weights = w.weights(np.arange(-32, 32, dtype=np.int8).reshape(4, 4, 2, 2), np.array(0.01), 1)
    made = w.node("ConvTranspose", [w.real(total), weights], strides=[3, 2])[0]
    made = w.quantize(made, Value("", (1, 4, 14, 12), 0.02, 0))
    # scales for which a single rounding gives the products
    shape = (1, 3, 5, 8)
    first, second, third = w.input(shape, 0.056, 12), w.input(shape, 0.04, 5), w.input(shape, 0.027, 3)
    product = w.quantize(w.node("Mul", [w.real(first), w.real(second)])[0], Value("", shape, 0.076, 1))
    outer = w.quantize(w.node("Mul", [w.real(product), w.real(third)])[0], Value("", shape, 0.165, 10))
    alone = w.quantize(w.node("Mul", [w.real(second), w.real(first)])[0], Value("", shape, 0.076, 1))
    return w.model([made, outer, alone])


def _products_half_even() -> Iterator[Op]:
    """Products of two computed matrices by onnxruntime's rule, whole and by rows, and with both stored transposed."""
    for op in (*matrices(), NAMED["BATCH_MATMUL"]["both transposed"]):
        made = replace(op, attributes=replace(op.attributes, rounding=FLOAT_HALF_EVEN))
        yield from filter(None, (made, by_rows(made)))


@once_per_session
def _modules(target: str) -> list[bytes]:
    counted = load_target(target).cycle_table is not None
    apart, ram = {"kernels": "tinyfuse", "fusion": "none"}, {"kernels": "tinyfuse", "optimize": "ram"}
    chosen = [op for op in convolutions() if op.kind == "CONV_2D"][:6]
    plan = plan_of
    plans = [
        *(plan(side_by_side(part), target, **apart) for part in _parts(_one_each(target))),
        plan(side_by_side(chosen), target, weights="unpacked", **apart),
        plan(side_by_side(winograd_layers()), target, weights="winograd", **apart),
        plan(side_by_side(layers_of_int16()), target, weights="unpacked", **apart),
        plan(side_by_side(layers_to_join()), target, weights="unpacked", **apart),
        *(plan(side_by_side(layers_of_own_shifts()), target, weights=sort, **apart) for sort in ("packed", "unpacked")),
        *([plan(side_by_side(layers_by_four()), target, weights="packed", **_IN_SLOW_FLASH, **apart)] if counted else []),
        *(plan(side_by_side(part), target, weights="compressed", **apart) for part in _compressed_parts()),
        plan(side_by_side(chosen), target, **ram),
        plan(side_by_side(layers_of_int4()), target, **apart),
        plan(side_by_side(layers_for_helium()), target, **apart),
        *(plan(side_by_side(layers_of_fours(zero)), target, optimize="speed", **apart) for zero in (-128, 3)),
        *(plan(STREAM_MODELS[name], target, kernels="tinyfuse") for name in STREAMS),
        *(plan(data, target, kernels="tinyfuse") for data in SIGNAL_MODELS.values()),
        plan(replacements(), target, kernels="tinyfuse"),
        plan(CONTROL_FLOW["a choice in a loop"](), target, kernels="tinyfuse"),
        *(grouped_plan(pooled(dtype, last), (*lengths,), target, **ram) for dtype in REAL for last, *lengths in AVERAGES),
        *(plan(_extremes(dtype), target, **ram) for dtype in ("int8", *REAL)),
        *(plan(SPLIT[name][0], target, **ram) for name in ("depthwise", "mean", "convolution")),
        plan(chain(2), target, kernels="tinyfuse", optimize="ram", feed_rows=True),
        stacked(residual(), target=target),
        plan(padded(), target, kernels="tinyfuse", slide=1, optimize="speed"),
        plan(_averaged_int16(), target, kernels="tinyfuse", slide=2, feed_rows=True, optimize="speed"),
        *(plan(_tabled(to_int16), target, kernels="tinyfuse") for to_int16 in (False, True)),
        *(plan(data, target, **apart) for data in _layers_of_uint8()),
        plan(sliced(), target, kernels="tinyfuse"),
        *_modules_of_onnx(target),
        _side_by_side([*_products_half_even()], target),
        *(plan(data, target, kernels="tinyfuse") for data in _computed_operands()),
        *(plan(data, target, kernels="tinyfuse") for data in _computed_layers()),
        tiled_plan(_expanded(), target, ((1, 2), (3, 8)), together=True, kernels="tinyfuse"),
        *(_side_by_side(part, target) for part in _parts([*loops(LOOPS), *wide_loops(LOOPS, "int16"), *wide_loops(LOOPS, "float32")])),
        *(_side_by_side(part, target) for part in _parts(_looked_up(target))),
        *(plan(_planes(), target, kernels="tinyfuse", step=step) for step in (False, True)),
    ]  # fmt: skip
    return [plan_to_bytes(plan) for plan in named_apart(plans)]


def _parts(ops: list[Op]) -> list[list[Op]]:
    return [ops[i : i + _OPERATORS] for i in range(0, len(ops), _OPERATORS)]


def _tabled(to_int16: bool) -> bytes:
    """A table behind a layer, and per-channel tables of int8 or int16."""
    sketch = Sketch(3)
    x = sketch.value((1, 81, 83, 4))  # tables of channels are for many elements
    some, eight = sketch.conv(x, 13, (3, 3)), sketch.conv(x, 8, (1, 1))  # by eights, by fours and a rest; by sixteens
    found = [sketch.unary(sketch.with_constant(some, "MUL"), "LOGISTIC")]
    for y in (some, eight):
        found.append(sketch.scale_channels(sketch.scale_channels(y, "MUL"), "ADD"))
    sketch.dtype = "int16" if to_int16 else "int8"
    return sketch.build([x], [sketch.converted(value) for value in found])


def _computed_operands() -> Iterator[bytes]:
    """One model for each function of computed operands."""
    yield from [*list(ALONG.values())[::7], *list(TABLES.values())[::7]]
    yield from {name.partition(",")[0]: data for name, data in PADDED.items()}.values()  # one a kind
    yield from [data for name, data in PADDED.items() if name.startswith(("BROADCAST", "PADV2"))][::2]
    for name in ("lstm int8", "lstm int16", "lstm float32", "svdf int16"):
        yield MEMORY[f"{name}, all"]()
    yield CONTROL_FLOW_STREAMS["initialized in a loop"]()


def _computed_layers() -> Iterator[bytes]:
    """Layers with computed biases, in each dtype of biases."""
    for name in ("conv int8", "conv int16", "conv int16, int32 sums", "transposed int16, bias int16"):
        yield COMPUTED[name if "," in name else f"{name}, all computed"]


def _side_by_side(found: list[Op], target: str) -> Plan:
    """Independent operators of our kernels, whether they pay or not."""
    ops = list[Op]()
    for op in found:
        tensors = dict.fromkeys((*op.activations, *op.outputs))
        named = {
            tensor: replace(tensor, name=f"t{n}_{len(ops)}", index=100 * len(ops) + n)
            for n, tensor in enumerate(tensors)
        }
        ops.append(replace(op.reading(named), outputs=(named[op.output],)))
    inputs = tuple(dict.fromkeys(tensor for op in ops for tensor in op.activations))
    graph = Graph("model.tflite", "0" * 64, tuple(ops), inputs, tuple(op.output for op in ops))
    return compile_graph(graph, load_target(target), Options("net", kernels="tinyfuse"))


def _looked_up(target: str) -> list[Op]:
    """One layer of each form with a fused lookup table, with the preferred kernel of the target."""
    context, found = Context(load_target(target), kernels="tinyfuse"), {}
    for op in layers():
        kernel = next((kernel for kernel in kernels_for(op) if kernel.accepts(op, context)), None)
        if kernel is not None:
            found.setdefault((kernel.name, kernel.form(op, context)), op)
    return list(found.values())


def _planes() -> bytes:
    """Interleaved and planar images: few planes, more planes than byte offsets reach, images of a single column."""
    sketch, ins, outs = Sketch(4), [], []
    for dtype in ("int8", "int16", "float32"):
        sketch.dtype = dtype
        for rows, columns, planes in ((3, 11, 3), (2, 8, 20), (25, 1, 3)):
            for shape, order in (((1, planes, rows, columns), LAST), ((1, rows, columns, planes), FIRST)):
                ins.append(sketch.value(shape))
                outs.append(sketch.transpose(ins[-1], order))
    return sketch.build(ins, outs)


def _expanded() -> bytes:
    """Two chains that are tiled."""
    sketch = Sketch(5)
    x = sketch.value((1, 9, 11, 4))
    y = sketch.depthwise(sketch.conv(x, 12, (1, 1)), (5, 5))
    y = sketch.depthwise(sketch.conv(sketch.conv(y, 4, (1, 1)), 12, (1, 1)), (3, 3), (2, 2))
    return sketch.build([x], [sketch.conv(y, 4, (1, 1))])


def _averaged_int16() -> bytes:
    """A sum over time with a moving window."""
    sketch = Sketch(8, dtype="int16")
    frames = sketch.value((1, 24, 2, 4), name="frames")
    return sketch.build([frames], [sketch.mean(sketch.conv(frames, 6, (3, 1), padding="VALID"))])


def _extremes(dtype: str) -> bytes:
    """Maximum and minimum of a layer's channels without a whole image in memory; for int16 only the maximum, by a
    pool."""
    sketch, ins, outs = Sketch(6, dtype=dtype), [], []
    for kind, channels in (("MAX_POOL_2D", 9),) if dtype == "int16" else (("REDUCE_MAX", 9), ("REDUCE_MIN", 16)):
        ins.append(sketch.value((1, 32, 32, 1)))
        image = sketch.conv(ins[-1], channels, (3, 3))
        if kind == "MAX_POOL_2D":
            outs.append(sketch.pool(image, kind, (32, 32), (1, 1)))
        else:
            outs.append(sketch.moved(kind, image, (1, channels), [1, 2], keep_dims=False))
    return sketch.build(ins, outs)


def _layers_of_uint8() -> Iterator[bytes]:
    """Layers whose weights become int16, for each path; dense layers with a real scale, of constant and of computed
    weights; an average that rounds halves up."""
    for kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        yield from list(UINT8[kind].values())[:5]
    yield UINT8["DEPTHWISE_CONV_2D"]["three channels"]
    yield from list(UINT8["FULLY_CONNECTED"].values())[:2]
    yield model_bytes(graph_in_uint8(read_tflite("m", COMPUTED["dense, all computed"])))
    yield next(iter(UINT8["AVERAGE_POOL_2D"].values()))


def side_by_side(operators: Iterable[Op]) -> bytes:
    """The .tflite of all these operators; none reads the output of another."""
    builder, inputs, outputs = ModelBuilder(), [], []
    for op in operators:
        options = options_of(op) if op.kind in CONVOLUTIONS else common.options_of(op)
        reads, writes = common.add_operator(builder, op, options)
        inputs, outputs = inputs + reads, outputs + writes
    return builder.build(inputs, outputs)


def convolutions() -> Iterator[Op]:
    """Layers of SHAPES in each form: single rounding, bounded double rounding, and with a weight that packed lanes
    can't hold."""
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        op = make_op(shape, rng)
        for zero_point in (-128, 3):
            quant = replace(op.output.quant, zero_point=(zero_point,))
            op = replace(op, outputs=(replace(op.output, quant=quant),))
            yield op
        weights = op.inputs[1].data.copy()
        weights.reshape(-1)[0] = -128
        yield replace(op, inputs=(op.input, replace(op.inputs[1], data=weights), *op.inputs[2:]))


def winograd_layers() -> Iterator[Op]:
    """Layers for each loop of Winograd's kernels, in both forms."""
    rng = np.random.default_rng(6)
    windows = ((3, 3), (1, 3))
    loops = ((4, -128), (8, 3), (16, -128), (32, 3))
    for kernel, (channels, zero_point) in itertools.product(windows, loops):
        op = make_op(Shape("CONV_2D", 5, 6, channels, 4, kernel), rng)
        yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


def layers_of_int16() -> Iterator[Op]:
    """Layers for int16 weights: pointwise layers of four, eight and more channels with single rounding, whole and in a
    batch; dense layers of several scales, and of one with remainders of inputs and outputs; depthwise layers of both
    strides, and 1D ones in both forms."""
    rng = np.random.default_rng(7)
    pointwise = (Shape("CONV_2D", 3, 5, channels, 6, batch=batch) for channels, batch in ((4, 1), (8, 1), (8, 2)))
    strides = ((1, 1), (2, 2))
    depthwise = (Shape("DEPTHWISE_CONV_2D", 4, 5, 6, 6, (3, 3), stride) for stride in strides)
    dense = (Shape("FULLY_CONNECTED", 1, 1, 37, 9, per_channel=several) for several in (True, False))
    for shape in (*pointwise, Shape("CONV_2D", 3, 5, 12, 7), *dense, *depthwise):
        op = make_op(shape, rng)
        yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(-128,))),))
    op = make_op(Shape("DEPTHWISE_CONV_2D", 2, 9, 6, 6, (1, 4)), rng)
    for zero_point in (-128, 3):
        yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


def layers_of_own_shifts() -> Iterator[Op]:
    """Depthwise layers with multipliers far apart: 3x3 of both strides, 1D, and other windows."""
    rng = np.random.default_rng(13)
    shapes = [
        Shape("DEPTHWISE_CONV_2D", 4, 5, 6, 6, *window)
        for window in (((3, 3), (2, 2)), ((1, 4),), ((3, 3),), ((2, 2),))
    ]
    for shape in shapes:
        yield with_multipliers(make_op(shape, rng), np.array([2e-3, 0.8, 4e-3, 2.0, 0.1, 1e-3]), -128)


def layers_by_four() -> Iterator[Op]:
    """Pointwise and windowed layers with 11 pixels a row, in both forms, for blocks of four pixels if flash is slow;
    dense layers with groups of five and of four outputs, and of eight inputs, for each kind of rounding."""
    rng = np.random.default_rng(12)
    convolutions = ((1, 11, 32, 10), (2, 11, 16, 8, (2, 2)), (2, 11, 3, 8, (3, 3)))
    dense = (Shape("FULLY_CONNECTED", 1, 1, *channels, per_channel=False) for channels in ((64, 14), (8, 14)))
    lines = ((-128, 1.0), (3, 1.0))
    for shape, of in (
        *((Shape("CONV_2D", *shape), lines) for shape in convolutions),
        *((shape, (*lines, (3, 0.1), (3, 4.0))) for shape in dense),
    ):
        op = make_op(shape, rng)
        for zero_point, times in of:
            scale = tuple(times * each for each in op.output.quantization.scale)
            quant = replace(op.output.quant, scale=scale, zero_point=(zero_point,))
            yield replace(op, outputs=(replace(op.output, quant=quant),))


def layers_to_join() -> Iterator[Op]:
    """Layers in both forms for paired weights on cores without the DSP extension: pointwise, whole and in a batch;
    windowed; dense; depthwise, which need single rounding."""
    rng = np.random.default_rng(11)
    pointwise = (Shape("CONV_2D", 3, 5, 8, 6, batch=batch) for batch in (1, 2))
    others = (
        Shape("CONV_2D", 3, 5, 3, 4, (3, 3)), Shape("FULLY_CONNECTED", 1, 1, 37, 7), Shape("DEPTHWISE_CONV_2D", 4, 5, 3, 3, (3, 3)),
    )  # fmt: skip
    for shape in (*pointwise, *others):
        op = make_op(shape, rng)
        for zero_point in (-128, 3):
            yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


def layers_for_helium() -> Iterator[Op]:
    """Rectified, saturated and clamped depthwise layers, wide enough for chunks of columns; convolutions by row
    segments, rectified or not; a 1x1 convolution whose outputs may overlap its inputs."""
    rng = np.random.default_rng(8)
    yield make_op(Shape("CONV_2D", 3, 5, 8, 9), rng)
    for kind, stride, zero_point, activation in (
        ("DEPTHWISE_CONV_2D", 1, -128, "NONE"), ("DEPTHWISE_CONV_2D", 2, 3, "NONE"), ("DEPTHWISE_CONV_2D", 1, 3, "RELU"),
        ("CONV_2D", 2, -128, "NONE"), ("CONV_2D", 2, 3, "NONE"),
    ):  # fmt: skip
        op = make_op(Shape(kind, 4, 16, 16, 16, (3, 3), (stride, stride), activation=activation), rng)
        yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


#: for every function that `--optimize speed` takes with Helium: of four pixels, of weights in registers, along a line
_MVE_4X2_SHAPES = (
    Shape("CONV_2D", 2, 5, 16, 8), Shape("CONV_2D", 2, 5, 32, 8), Shape("CONV_2D", 2, 5, 24, 6),
    Shape("CONV_2D", 5, 5, 8, 6, (1, 1), (2, 2)), Shape("CONV_2D", 3, 8, 16, 6, (3, 3)), Shape("CONV_2D", 3, 4, 64, 6, (3, 3)),
    Shape("CONV_2D", 6, 17, 3, 16, (3, 3), (2, 2), padding="VALID"), Shape("DEPTHWISE_CONV_2D", 20, 1, 24, 24, (5, 1), padding="VALID"),
)  # fmt: skip


def layers_of_fours(zero_point: int) -> Iterator[Op]:
    """Layers of _MVE_4X2_SHAPES, rectified with zero point -128."""
    rng = np.random.default_rng(10)
    for shape in _MVE_4X2_SHAPES:
        op = make_op(shape, rng)
        yield replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))


def layers_of_int4() -> Iterator[Op]:
    """Layers of INT4_SHAPES with weights from -7 to 7, as converters quantize."""
    for shape in INT4_SHAPES:
        op = make_op(of_int4(shape), np.random.default_rng(9))
        narrow = replace(op.operand(1), data=np.maximum(op.operand(1).values, -7))
        yield replace(op, inputs=(op.input, narrow, *op.inputs[2:]))


#: with each count of bits, in one strip or two, of two rows or one
_COMPRESSED_SHAPES = (
    Shape("CONV_2D", 2, 4, 36, 8), Shape("CONV_2D", 2, 4, 64, 99), Shape("CONV_2D", 3, 4, 13, 9, (2, 3)),
    Shape("CONV_2D", 1, 4, 12, 7, (3, 3)), Shape("FULLY_CONNECTED", 1, 1, 72, 6), Shape("FULLY_CONNECTED", 1, 1, 61, 6),
)  # fmt: skip


def _compressed_parts() -> Iterator[list[Op]]:
    """Layers with palettized weights: each shape with single rounding, in packed lanes, and with a weight that lanes
    can't hold."""
    for part, (zero_point, counts, least) in enumerate(((-128, (2, 4), -127), (3, (8, 16), -127), (3, (4, 16), -128))):
        rng, found = np.random.default_rng(part), []
        for number, shape in enumerate(_COMPRESSED_SHAPES):
            op = make_op(shape, rng)
            op = replace(op, outputs=(replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,))),))
            found.append(few_values(op, counts[number % 2], rng, each=False, least=least))
        yield found


def _one_each(target: str) -> list[Op]:
    """The first operator of the cases for each kernel, and for each of its paths."""
    context, found = Context(load_target(target), kernels="tinyfuse"), {}
    cases = (op for named in (NAMED, layer_cases.NAMED) for ops in named.values() for op in ops.values())
    for op in (*convolutions(), *cases):
        if kernels_of(op.kind):
            kernel, by_row = whole_kernel(op, context)
            found.setdefault((kernel.name, kernel.path(op, by_row, context)), op)
    return list(found.values())
