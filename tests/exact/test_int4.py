"""Networks with weights of int4, from TFLM's interpreter to emulated cores, and their bytes in flash."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from core_rotation import on_one_core
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.plan import Plan


def network(dtype: str, outputs: int = 13, seed: int = 4) -> bytes:
    """A convolution, a separable one, a grouped one and a fully connected layer; weights of -7 to 7."""
    rng = np.random.default_rng(seed)
    model = ModelBuilder()

    def layer(x: int, kind: str, shape: tuple[int, ...], axis: int, out: tuple[int, ...], scale: float, **how) -> int:
        channels = shape[axis]
        scales = rng.uniform(0.05, 0.2, 1 if kind == "FULLY_CONNECTED" else channels).astype(np.float32)
        weights = rng.integers(-7, 8, shape).astype(np.int8)
        w = model.tensor(f"w{x}", shape, dtype, scales, axis=axis, data=weights)
        bias = rng.integers(-500, 500, channels).astype(np.int32)
        b = model.tensor(f"b{x}", (channels,), "int32", np.float32(0.05) * scales, data=bias)
        y = model.tensor(f"y{x}", out, scale=scale, zero_point=-128)
        options = {} if kind == "FULLY_CONNECTED" else {"padding": "SAME", "stride_h": 1, "stride_w": 1, **how}
        model.op(kind, [x, w, b], [y], fused_activation_function="RELU", **options)
        return y

    image = (1, 9, 7, 8)
    first = x = model.tensor("x", (1, 9, 7, 3), scale=0.05, zero_point=-3)
    x = layer(x, "CONV_2D", (8, 3, 3, 3), 0, image, 0.05)
    x = layer(x, "DEPTHWISE_CONV_2D", (1, 3, 3, 8), 3, image, 0.05, depth_multiplier=1)
    x = layer(x, "CONV_2D", (24, 1, 1, 8), 0, (1, 9, 7, 24), 0.05)
    x = layer(x, "CONV_2D", (8, 3, 3, 12), 0, image, 0.05)
    x = layer(x, "FULLY_CONNECTED", (outputs, 504), 0, (1, outputs), 0.3)
    return model.build([first], [x])


def flash(plan: Plan) -> int:
    return sum(c.data.nbytes for group in plan.groups for stage in group.stages for c in stage.constants)


def test_the_reference_is_tflm() -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(network("int4"))


@on_one_core(host=True)
def test_generated_code_is_exact(target: str) -> None:
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    ways = ("balanced", "ram")
    assert_all_exact([plan_of(network("int4"), target, optimize=o, kernels="tinyfuse") for o in ways], runs=3)


@pytest.mark.parametrize("kernels", ["auto", "tinyfuse"])
@pytest.mark.parametrize(
    ("target", "optimize"), [("cortex-m4", "speed"), ("cortex-m55", "speed"), ("cortex-m55", "balanced")]
)
def test_weights_stay_nibbles_in_flash(target: str, optimize: str, kernels: str) -> None:
    """Kernels with byte weights are faster, so on the M4 `balanced` may expand a dense layer to save RAM. The number of
    outputs is a multiple of four, because int4 weights are padded to that."""
    coarse, fine = (
        flash(plan_of(network(dtype, 12), target, optimize=optimize, kernels=kernels)) for dtype in ("int4", "int8")
    )
    assert coarse < 0.62 * fine


def test_unpacked_weights_may_be_bytes() -> None:
    packed, unpacked = (
        flash(plan_of(network("int4"), "cortex-m4", optimize="speed", weights=w)) for w in ("packed", "unpacked")
    )
    assert packed < unpacked
