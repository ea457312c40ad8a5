"""Models of uint8: their int8 twins against LiteRT's reference kernels, and the C against the twins."""

from __future__ import annotations

import shutil
from dataclasses import replace
from math import prod
from pathlib import Path

import conv_cases
import numpy as np
import pytest
from campaigns import assert_batches_are_exact
from cases.common import model_of, operator, random_data, tensor
from executors import assert_exact, plan_of
from op_harness import TARGETS, cases_of
from op_harness import assert_exact as kernels_exact
from tflite_builder import ModelBuilder
from uint8_models import CASES, network, op_in_uint8, shifted
from uint8_networks import uint8_network

from tinyfuse.compiler import check_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.frontend.uint8 import WARNING
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops.core.convolution import channel_multipliers
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.pooling_reduce.pooling import Pool2D
from tinyfuse.targets import load_target
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

#: networks of which LiteRT takes every operator in uint8
_NETWORKS = ("mobilenet_v2", "mobilenet_v3", "two_inputs")

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def assert_reference_is_litert(data: bytes, runs: int = 6, telling: bool = True) -> None:
    """Checks every output of our references against LiteRT. `telling`: outputs must depend on the inputs."""
    pytest.importorskip("ai_edge_litert")
    graph = read_tflite("m.tflite", data)
    infer = oracle_worker.litert(data, 0)
    different = set()
    for inputs in input_set(graph, runs, 0):
        for ours, theirs in zip(ReferenceOracle(graph).run(inputs), infer(inputs), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
            different.add(ours.tobytes())
    assert not telling or len(graph.ops) < 10 or len(different) > len(graph.outputs)


@pytest.mark.parametrize("kind", CASES)
def test_references_are_litert(kind: str) -> None:
    for data in CASES[kind].values():
        assert_reference_is_litert(data)


@pytest.mark.parametrize("name", _NETWORKS)
def test_networks_are_litert(name: str) -> None:
    assert_reference_is_litert(network(name))


@pytest.mark.parametrize("first", [0, 150])
def test_random_networks_are_litert(first: int) -> None:
    for seed in range(first, first + 60):
        assert_reference_is_litert(uint8_network(seed), telling=False)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_many_random_networks_are_litert(part: int) -> None:
    """1,000 networks against LiteRT, and every fourth as C."""
    seeds = range(100 * part, 100 * part + 100)
    for seed in seeds:
        assert_reference_is_litert(uint8_network(seed), telling=False)
    assert_batches_are_exact([plan_of(uint8_network(seed)) for seed in seeds[::4]], 4)


def test_dense_sums_are_scaled_by_a_double() -> None:
    """Sums about each output's threshold, up to the ends of int32: LiteRT's FULLY_CONNECTED multiplies them by a double
    and rounds once, halves away from zero; a power of two among the scales has exact halves."""
    pytest.importorskip("ai_edge_litert")
    for number in range(24):
        data = _dense_at_thresholds(number)
        assert_reference_is_litert(data, runs=1)
        if number % 4 == 0:
            assert_exact(plan_of(data, ("host", "cortex-m4", "cortex-m0plus")[number // 4 % 3]))


def _dense_at_thresholds(number: int) -> bytes:
    """A dense layer whose sums are its biases plus a few units from the input."""
    rng = np.random.default_rng(number)
    outputs, power_of_two = 200, number % 3 == 0
    scales = [2.0 ** -int(rng.integers(0, 6)) if power_of_two else rng.uniform(0.001, 1) for _ in range(2)]
    x_scale, w_scale = (float(np.float32(scale)) for scale in scales)
    spread = 2.0 ** int(rng.integers(-6, 22)) * (1 if power_of_two else rng.uniform(0.7, 1.4))
    y_scale = float(np.float32(x_scale * w_scale * spread))
    halves = (rng.integers(-128, 128, outputs) + 0.5) * y_scale / (x_scale * w_scale)
    biases = np.rint(halves + rng.integers(-1, 2, outputs)).clip(-(2**31) + 2**17, 2**31 - 2**17).astype(np.int32)
    model = ModelBuilder()
    x = model.tensor("x", (1, 1), "uint8", x_scale, int(rng.integers(0, 256)))
    w = model.tensor(
        "w", (outputs, 1), "uint8", w_scale, 128, data=rng.integers(127, 130, (outputs, 1)).astype(np.uint8)
    )
    b = model.tensor("b", (outputs,), "int32", float(np.float32(x_scale * w_scale)), 0, data=biases)
    y = model.tensor("y", (1, outputs), "uint8", y_scale, int(rng.integers(0, 256)))
    activation = ("NONE", "RELU", "RELU6")[number % 3]
    model.op("FULLY_CONNECTED", [x, w, b], [y], fused_activation_function=activation)
    return model.build([x], [y])


def _dense_with_bias(bias: int) -> bytes:
    """A layer of one output whose sums are multiplied by 11."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 3), "uint8", 0.25, 0)
    w = model.tensor("w", (1, 3), "uint8", 0.5, 128, data=np.full((1, 3), 129, np.uint8))
    b = model.tensor("b", (1,), "int32", 0.125, 0, data=np.array([bias], np.int32))
    y = model.tensor("y", (1, 1), "uint8", 0.125 / 11, 127)
    model.op("FULLY_CONNECTED", [x, w, b], [y])
    return model.build([x], [y])


def test_products_beyond_int32_are_refused() -> None:
    """LiteRT converts such a product without a check: to the least int32 on a PC, to the greatest on Arm."""
    within = 2**31 // 11 - 1000
    assert_reference_is_litert(_dense_with_bias(within), telling=False)
    with pytest.raises(CompileError, match="may not fit 32 bits"):
        plan_of(_dense_with_bias(within + 2000))


def test_computed_weights_are_litert() -> None:
    """Without a zero point; the scales of input and weights are then multiplied as for constant weights."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 5, 6, 3), "uint8", 0.0371, 100)
    w = model.tensor("w", (4, 2, 3, 3), "uint8", 0.0113, 128)
    b = model.tensor("b", (4,), "int32", 0.0371 * 0.0113, 0, data=np.array([0, 900, -70, 5], np.int32))
    y = model.tensor("y", (1, 5, 6, 4), "uint8", 0.0532, 120)
    model.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1)
    data = model.build([x, w], [y])
    assert_reference_is_litert(data)
    (layer,) = [
        op.attributes.layer for op in check_graph(read_tflite("m.tflite", data)).ops if op.kind == "COMPUTED_LAYER"
    ]
    assert layer.float_scales
    assert_exact(plan_of(data))


@pytest.mark.parametrize("target", (*TARGETS, "cortex-m0plus"))
def test_kernels(target: str, tmp_path: Path) -> None:
    """Tests kernels made for uint8: layers with weights of 9 bits, averages, tables, and the ends of the model."""
    if target != "host" and any(shutil.which(tool) is None for tool in ("arm-none-eabi-gcc", "qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    core, rng = load_target(target), np.random.default_rng(2)
    context, cases = Context(core, kernels="tinyfuse"), []
    for kind, models in CASES.items():
        few = list(models.values())[:15]
        for op in (op for data in few for op in read_tflite("m.tflite", data).ops if _is_made_for_uint8(kind, op)):
            cases += cases_of(op, context, [random_data(t.shape, rng, t.dtype) for t in op.activations])
    names = {case.kernel.name for case in cases}
    assert names >= {
        "tinyfuse_conv_row_w16", "tinyfuse_depthwise_row_w16", "tinyfuse_average_pool_up_row_s8",
        "tinyfuse_invert_sign", "tinyfuse_activation_lookup_s8",
        "tinyfuse_conv_bytes_row_w16" if core.dsp and not core.mve else "tinyfuse_conv_dots_row_w16",
    }  # fmt: skip
    kernels_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_weights_of_9_bits_take_bytes(target: str, tmp_path: Path) -> None:
    """Convolutions of uint8 whose channels' weights need offsets of both signs, or the whole of a byte's range, of more
    inputs than a column's sum takes; flash holds as many bytes of weights as the file."""
    core, rng = load_target(target), np.random.default_rng(11)
    if core.cpu is not None and any(shutil.which(tool) is None for tool in ("arm-none-eabi-gcc", "qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    context, cases, forms = Context(core, kernels="tinyfuse"), [], set()
    for channels, window, spread in ((5, (2, 3), 40), (64, (3, 4), 40), (3, (3, 3), 255), (130, (2, 2), 255)):
        for zero_point in (20, 110, 180):
            data = _wide_conv(channels, window, spread, zero_point, rng)
            (op,) = (op for op in read_tflite("m.tflite", data).ops if op.kind == "CONV_2D")
            inputs = [random_data(t.shape, rng, t.dtype) for t in op.activations]
            cases += cases_of(op, context, inputs)
            chosen = next(k for k in kernels_for(op) if k.accepts(op, context))
            forms.add(chosen.path(op, True, context).split(",")[0])
            if op.operand(1).dtype == "int16":
                (weights,) = (c for c in chosen.constants(op, context) if c.name == "weights")
                assert weights.data.itemsize == 1 and weights.data.nbytes < 1.2 * op.operand(1).elements + 200
    assert len(forms) > 1 or not core.dsp or core.mve
    kernels_exact(cases, core, tmp_path)


def _wide_conv(channels: int, window: tuple[int, int], spread: int, zero_point: int, rng: np.random.Generator) -> bytes:
    """A uint8 convolution; the weights of each channel lie within `spread` of each other."""
    outputs = 7
    least = rng.integers(0, 256 - spread, outputs) if spread < 255 else np.zeros(outputs, np.int64)
    weights = (least[:, None] + rng.integers(0, spread + 1, (outputs, channels * window[0] * window[1]))).astype(
        np.uint8
    )
    model, terms = ModelBuilder(), weights.shape[1]
    x = model.tensor("x", (1, 6, 7, channels), "uint8", 0.02, 121)
    w = model.tensor(
        "w", (outputs, *window, channels), "uint8", 0.01, zero_point, data=weights.reshape(outputs, *window, channels)
    )
    b = model.tensor("b", (outputs,), "int32", 0.0002, 0, data=rng.integers(-9000, 9000, outputs).astype(np.int32))
    y = model.tensor("y", (1, 6, 7, outputs), "uint8", 0.006 * float(np.sqrt(terms)), 100)
    model.op("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1)
    return model.build([x], [y])


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_depthwise_weights_of_9_bits_take_bytes(target: str, tmp_path: Path) -> None:
    """Depthwise layers of uint8 with weights from 0 to 255 about every sort of zero point, and ratios of scales with and
    without a bounded form; two int8 weights made one of 9 bits, or an int16."""
    core, rng = load_target(target), np.random.default_rng(12)
    if core.cpu is not None and any(shutil.which(tool) is None for tool in ("arm-none-eabi-gcc", "qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    context, cases = Context(core, kernels="tinyfuse"), []
    for number, (channels, window) in enumerate(((3, (3, 3)), (8, (3, 3)), (7, (2, 2)), (12, (5, 1)), (5, (2, 3)))):
        for zero_point in (0, 20, 129, 255):
            data = _wide_depthwise(channels, window, zero_point, (0.01, 0.8)[number % 2], rng)
            (op,) = (op for op in read_tflite("m.tflite", data).ops if op.kind == "DEPTHWISE_CONV_2D")
            found = cases_of(op, context, [random_data(t.shape, rng, t.dtype) for t in op.activations])
            cases += [case for case in found if "depthwise" in case.kernel.name]
            chosen = next(k for k in kernels_for(op) if k.accepts(op, context))
            (weights,) = (c for c in chosen.constants(op, context) if c.name == "weights")
            assert weights.data.itemsize == 1 and weights.data.size <= 8 * -(-channels // 4) * -(-prod(window) // 2)
    assert {case.kernel.name for case in cases} == {"tinyfuse_depthwise_row_w16", "tinyfuse_depthwise_packed_row_w16"}
    kernels_exact(cases, core, tmp_path)


def _wide_depthwise(
    channels: int, window: tuple[int, int], zero_point: int, ratio: float, rng: np.random.Generator
) -> bytes:
    """A uint8 depthwise convolution with weights from 0 to 255."""
    weights = rng.integers(0, 256, (1, *window, channels)).astype(np.uint8)
    weights.reshape(-1)[:2] = 0, 255
    model = ModelBuilder()
    x = model.tensor("x", (1, 6, 7, channels), "uint8", 0.02, 121)
    w = model.tensor("w", weights.shape, "uint8", 0.01, zero_point, data=weights)
    b = model.tensor("b", (channels,), "int32", 0.0002, 0, data=rng.integers(-900, 900, channels).astype(np.int32))
    y = model.tensor("y", (1, 6, 7, channels), "uint8", 0.0002 / ratio, 100)
    model.op("DEPTHWISE_CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1)
    return model.build([x], [y])


def _is_made_for_uint8(kind: str, op: Op) -> bool:
    """Tells whether the case of this `kind` has a QUANTIZE at both ends."""
    wide = op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and op.operand(1).dtype == "int16"
    ends = op.kind == "QUANTIZE" and kind == "SOFTMAX"
    return wide or ends or op.kind == "TABLE" or (op.kind == "AVERAGE_POOL_2D" and op.attributes.halves_up)


@pytest.mark.parametrize("name", _NETWORKS)
def test_networks_on_the_host(name: str) -> None:
    assert_exact(plan_of(network(name), kernels="tinyfuse"))


@emulated
def test_a_network_on_a_core() -> None:
    assert_exact(plan_of(network("mobilenet_v2"), "cortex-m4", kernels="tinyfuse"))


def test_products_of_scales_are_float32() -> None:
    """For uint8 convolutions the product is float32 (double for int8); for fully connected layers always."""
    rng = np.random.default_rng(0)
    op = conv_cases.make_op(conv_cases.Shape("CONV_2D", 2, 2, 4, 4, per_channel=False), rng)
    data = conv_cases.model_of(replace(op, inputs=tuple(map(shifted, op.inputs)), outputs=(shifted(op.output),)))
    found = channel_multipliers(read_tflite("m.tflite", data).ops[1])[0][0]
    product = float(np.float32(op.input.scale) * np.float32(op.operand(1).scale))
    mantissa, _ = np.frexp(product / op.output.scale)
    assert found == round(float(mantissa) * 2**31) != channel_multipliers(op)[0][0]


def test_halves_go_up() -> None:
    """127.5 becomes 128, which is -0.5 and 0 of int8; where no window has an even number of values, int8's will do."""
    x, y = tensor((1, 3, 6, 1)), tensor((1, 3, 3, 1))
    even = op_in_uint8(operator("AVERAGE_POOL_2D", [x], y, Pool2D("VALID", (1, 2), (1, 2))))
    graph = read_tflite("m.tflite", model_of(even))
    assert graph.ops[1].attributes.halves_up
    data = np.array([127, 128, 126, 127, 0, 1] * 3, np.uint8).reshape(1, 3, 6, 1)
    assert ReferenceOracle(graph).run([data])[0].reshape(-1)[:3].tolist() == [128, 127, 1]
    odd = op_in_uint8(operator("AVERAGE_POOL_2D", [x], tensor((1, 1, 2, 1)), Pool2D("VALID", (3, 3), (3, 3))))
    assert not read_tflite("m.tflite", model_of(odd)).ops[1].attributes.halves_up


def test_quantizations_come_together_in_floats() -> None:
    """A CONCATENATION of uint8 may have inputs of other scales than its output, constants too."""
    rng = np.random.default_rng(1)
    inputs = [tensor((1, 4, 40), 0.02, 7), tensor((1, 4, 40), 0.05, -128),
              tensor((1, 4, 9), 0.013, 3, data=rng.integers(-128, 128, (1, 4, 9)).astype(np.int8))]  # fmt: skip
    op = operator("CONCATENATION", inputs, tensor((1, 4, 89), 0.031, -20), Concatenation(2, "NONE"))
    data = model_of(op_in_uint8(op))
    assert_reference_is_litert(data)
    assert_exact(plan_of(data))
    assert WARNING in read_tflite("m.tflite", data).warnings


def test_rows_are_fed_as_uint8() -> None:
    plan = plan_of(network("mobilenet_v2"), feed_rows=True)
    assert plan.source.inputs[0].dtype == "uint8"
    assert_exact(plan)


def _softmax_after(kind: str, **options) -> bytes:
    """A uint8 operator followed by a SOFTMAX, which makes it a uint8 model."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 8), "uint8", 0.1, 100)
    z = model.tensor("z", (1, 8), "uint8", 0.1, 100)
    y = model.tensor("y", (1, 8), "uint8", 1 / 256, 0)
    model.op(kind, [x], [z], **options)
    model.op("SOFTMAX", [z], [y], beta=1.0)
    return model.build([x], [y])


@pytest.mark.parametrize("kind", ["L2_NORMALIZATION", "ABS", "ELU"])
def test_what_int8_computes_otherwise_is_refused(kind: str) -> None:
    with pytest.raises(CompileError, match=rf"{kind} 'z'.*not supported on uint8.*int8\) quantization"):
        read_tflite("m.tflite", _softmax_after(kind, table=kind == "L2_NORMALIZATION"))


def test_unknown_operators_are_refused_by_name() -> None:
    """Adds RELU_N1_TO_1, which LiteRT computes and tinyfuse doesn't, to a uint8 model."""
    with pytest.raises(CompileError, match="RELU_N1_TO_1 'z'.*this operator is not supported"):
        plan_of(_softmax_after("RELU_N1_TO_1", table=False))


def test_weights_with_several_scales_are_refused() -> None:
    op = conv_cases.make_op(conv_cases.Shape("CONV_2D", 2, 2, 4, 4), np.random.default_rng(0))
    many = replace(op, inputs=tuple(map(shifted, op.inputs)), outputs=(shifted(op.output),))
    with pytest.raises(CompileError, match="uint8 with several scales"):
        read_tflite("m.tflite", conv_cases.model_of(many))


def test_uint8_data_and_int8_weights_are_refused() -> None:
    op = conv_cases.make_op(conv_cases.Shape("CONV_2D", 2, 2, 4, 4), np.random.default_rng(0))
    mixed = replace(op, inputs=(shifted(op.input), *op.inputs[1:]), outputs=(shifted(op.output),))
    with pytest.raises(CompileError, match="CONV_2D.*it mixes uint8 and int8 tensors"):
        read_tflite("m.tflite", conv_cases.model_of(mixed))


def test_int16_weights_of_int8_data_are_refused_in_files() -> None:
    op = conv_cases.make_op(conv_cases.Shape("CONV_2D", 2, 2, 4, 4), np.random.default_rng(0))
    weights = replace(op.operand(1), dtype="int16", data=op.operand(1).values.astype(np.int16))
    wide = replace(op, inputs=(op.input, weights, op.inputs[2]))
    with pytest.raises(CompileError, match="weights, constant or computed, are int8"):
        plan_of(conv_cases.model_of(wide))


def test_an_input_that_is_an_output() -> None:
    model = ModelBuilder()
    x = model.tensor("x", (1, 8), "uint8", 0.1, 100)
    y = model.tensor("y", (1, 8), "uint8", 1 / 256, 0)
    model.op("SOFTMAX", [x], [y], beta=1.0)
    graph = read_tflite("m.tflite", model.build([x], [x, y]))
    assert graph.outputs[0] is graph.inputs[0]
    assert_exact(plan_of(model.build([x], [x, y])))
