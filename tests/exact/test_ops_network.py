"""Networks of the operator families but the convolutions', with float, int16, int32 and bool borders:
compiled, run on the host and emulated, compared with TFLM through the references."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from core_rotation import rotate_cores
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.options import FUSION


class _Network:
    """Adds operators; an output gets its own quantization unless one is given."""

    def __init__(self) -> None:
        self.model = ModelBuilder()
        self.count = 0
        self.shape: dict[int, tuple[int, ...]] = {}
        self.quant: dict[int, tuple[float, int] | None] = {}

    def tensor(self, shape, quant=(), dtype="int8", data=None) -> int:
        self.count += 1
        if quant == ():
            quant = (float(np.float32(0.03 + 0.004 * (self.count % 7))), self.count * 13 % 50 - 40)
        scale, zero_point = quant if quant else (None, None)
        index = self.model.tensor(f"v{self.count}", shape, dtype, scale, zero_point, data=data)
        self.shape[index], self.quant[index] = tuple(shape), quant
        return index

    def op(self, kind: str, inputs, shape=None, quant=(), dtype="int8", **options) -> int:
        """Adds an operator and returns its output, by default with the shape of the first input."""
        output = self.tensor(self.shape[inputs[0]] if shape is None else shape, quant, dtype)
        self.model.op(kind, inputs, [output], **options)
        return output

    def same(self, kind: str, inputs, shape, **options) -> int:
        """Adds an operator whose output has the first input's quantization."""
        return self.op(kind, inputs, shape, self.quant[inputs[0]], **options)


def network() -> bytes:
    n, rng = _Network(), np.random.default_rng(8)

    def constant(data) -> int:
        data = np.asarray(data)
        return n.tensor(data.shape, () if data.dtype == np.int8 else None, str(data.dtype), data)

    def values(*shape) -> int:
        return constant(rng.integers(-127, 128, shape).astype(np.int8))

    x = n.tensor((1, 9, 7, 6), None, "float32")
    quantized = n.op("QUANTIZE", [x], quant=(0.05, 3))
    padded = n.same("PAD", [quantized, constant(np.array([[0, 0], [1, 0], [1, 2], [0, 0]], np.int32))], (1, 10, 10, 6))
    pool = {"filter_height": 3, "filter_width": 2, "stride_h": 2, "stride_w": 1}
    largest = n.same("MAX_POOL_2D", [padded], (1, 5, 10, 6), padding="SAME", **pool)
    shifted = n.op("ADD", [largest, values(6)], fused_activation_function="RELU")
    scaled = n.op("MUL", [shifted, values(1, 1, 1, 6)])
    gate = n.op("LOGISTIC", [scaled], quant=(1 / 256, -128))
    gated = n.op("MUL", [scaled, gate])
    rectified = n.op("RELU", [gated])
    again = n.op("QUANTIZE", [shifted], quant=n.quant[rectified])
    joined = n.same("CONCATENATION", [rectified, again], (1, 5, 10, 12), axis=-1)
    limited = n.same("RELU6", [joined], (1, 5, 10, 12), table=False)
    pool = {"filter_height": 2, "filter_width": 3, "stride_h": 1, "stride_w": 2}
    averaged = n.same("AVERAGE_POOL_2D", [limited], (1, 4, 4, 12), padding="VALID", **pool)
    mean = n.op("MEAN", [averaged, constant(np.array([1, 2], np.int32))], (1, 12), keep_dims=False)
    summed = n.op("ADD", [mean, values(1, 12)])
    folded = n.same("RESHAPE", [summed], (3, 4), new_shape=(3, 4))
    probabilities = n.op("SOFTMAX", [folded], quant=(1 / 256, -128), beta=1.0)
    out = n.op("DEQUANTIZE", [probabilities], quant=None, dtype="float32")
    return n.model.build([x], [out, averaged, gate])


def elementwise_network() -> bytes:
    """Squeeze and excitation, unary and binary functions, comparisons, logic and casts. Inputs are int16 and bool,
    outputs int32, bool and float."""
    n, rng = _Network(), np.random.default_rng(9)
    shape = (1, 6, 5, 7)

    def constant(*dims: int) -> int:
        return n.tensor(dims, (), "int8", rng.integers(-127, 128, dims).astype(np.int8))

    x, mask = n.tensor(shape, (0.001, 0), "int16"), n.tensor(shape, None, "bool")
    quantized = n.op("QUANTIZE", [x], quant=(0.05, 3))
    swish = n.op("HARD_SWISH", [quantized], table=False)
    whole = {"filter_height": 6, "filter_width": 5, "stride_h": 1, "stride_w": 1, "padding": "VALID"}
    squeezed = n.same("AVERAGE_POOL_2D", [swish], (1, 1, 1, 7), **whole)
    gate = n.op("TANH", [squeezed], quant=(1 / 128, 0), table=False)
    excited = n.op("MUL", [swish, gate])
    bent = n.op("PRELU", [excited, constant(1, 1, 7)])
    rest = n.op("SUB", [bent, n.op("LEAKY_RELU", [excited], alpha=0.1)], fused_activation_function="RELU")
    far = n.op("SQUARED_DIFFERENCE", [rest, constant(7)])
    clipped = n.same("MINIMUM", [n.same("MAXIMUM", [far, constant()], shape), constant(1, 6, 1, 1)], shape)
    size = n.op("ABS", [n.op("ELU", [clipped], table=False)])
    greater = n.op("GREATER", [size, rest], quant=None, dtype="bool")
    equal = n.op("LESS_EQUAL", [size, constant(5, 1)], quant=None, dtype="bool")
    chosen = n.op("LOGICAL_OR", [n.op("LOGICAL_AND", [greater, mask], quant=None, dtype="bool"), equal], quant=None,
                  dtype="bool")  # fmt: skip
    kept = n.op("LOGICAL_NOT", [chosen], quant=None, dtype="bool")
    number = n.op("CAST", [kept], quant=None, dtype="float32")
    negated = n.op("NEG", [n.op("SQUARE", [number], quant=None, dtype="float32")], quant=None, dtype="float32")
    wide = n.op("QUANTIZE", [size], quant=(0.003, 0), dtype="int32")
    return n.model.build([x, mask], [wide, kept, negated])


NETWORKS = {"with a float border": network, "elementwise": elementwise_network}


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_references_equal_tflm(make) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(make(), runs=20)


@pytest.mark.parametrize(("fusion", "target"), [*((fusion, "host") for fusion in FUSION), *rotate_cores(FUSION)])
def test_generated_code_is_exact(fusion: str, target: str) -> None:
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    plans = [plan_of(make(), target, kernels="tinyfuse", fusion=fusion) for make in NETWORKS.values()]
    assert_all_exact(plans, runs=8)
