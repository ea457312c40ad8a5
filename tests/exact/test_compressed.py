"""Networks whose weights have few values: `--weights compressed`, and where --max-flash is too little for all."""

from __future__ import annotations

import shutil
from itertools import pairwise

import numpy as np
import pytest
from conv_cases import Shape, make_op, model_of, of_int4
from executors import assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from other_dtypes import other_dtype
from random_graphs import Sketch
from test_decode import network as decoded_network
from tflite_builder import ModelBuilder

from tinyfuse.api.writing import check_flash
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.errors import DoesNotFit
from tinyfuse.kernels.layers.palettized.palette import UNIT, expand_palette, palettize
from tinyfuse.plan import Plan
from tinyfuse.report.compressed import compressed_json, compressed_lines, compressed_summary

# --- indexes and tables --------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    weights=st.integers(1, 16).flatmap(
        lambda count: st.lists(st.integers(-128, 127), min_size=count, max_size=count).flatmap(
            lambda values: arrays.arrays(
                np.int8,
                st.tuples(st.integers(1, 5), st.integers(1, 70)),
                elements=st.sampled_from(values),
            )
        )
    ),
)
def test_what_is_looked_up_are_the_weights(weights: np.ndarray) -> None:
    lookup = palettize(weights)
    assert lookup is not None and lookup.bits <= 4
    np.testing.assert_array_equal(expand_palette(lookup, weights.shape[1]), weights)
    assert lookup.indices.shape == (len(weights), -(-weights.shape[1] // UNIT) * UNIT * lookup.bits // 8)


def test_a_table_of_each_group_or_of_all() -> None:
    rng = np.random.default_rng(1)
    every = rng.choice(np.array([-9, 0, 4], np.int8), (8, 200))
    of_all = palettize(every)
    assert (of_all.bits, of_all.tables.shape) == (2, (1, 4))
    of_each = palettize(every + 10 * np.arange(8, dtype=np.int8)[:, None])
    assert (of_each.bits, of_each.tables.shape) == (2, (8, 4))
    assert palettize(np.arange(17, dtype=np.int8)[None]) is None
    assert palettize(np.arange(5, dtype=np.int8)[None]).bits == 3


# --- networks ------------------------------------------------------------------------------------


def clustered(rng: np.random.Generator, shape: tuple[int, ...], axis: int, values: int) -> np.ndarray:
    """int8 weights with `count` different values for each index of `axis`."""
    channels = shape[axis]
    data = np.stack([
        rng.choice(rng.choice(np.arange(-127, 128), values, replace=False), int(np.prod(shape)) // channels)
        for _ in range(channels)
    ])  # fmt: skip
    data = data.T.reshape(shape) if axis else data.reshape(shape)
    return data.astype(np.int8)


_LAYER = make_op(Shape("CONV_2D", 4, 5, 8, 6, (3, 3)), np.random.default_rng(1))
_LAYER_OF_INT4 = make_op(of_int4(Shape("CONV_2D", 4, 5, 8, 6, (3, 3))), np.random.default_rng(1))


def network(values: int = 16, seed: int = 4, outputs: int = 13) -> bytes:
    """Convolutions of few and of many pixels, a depthwise and a grouped one, and a fully connected layer."""
    rng = np.random.default_rng(seed)
    model = ModelBuilder()

    def layer(x: int, kind: str, shape: tuple[int, ...], axis: int, out: tuple[int, ...], scale: float, **how) -> int:
        channels = shape[axis]
        scales = rng.uniform(0.002, 0.01, 1 if kind == "FULLY_CONNECTED" else channels).astype(np.float32)
        # few weights a channel pay for small tables alone
        weights = clustered(rng, shape, axis, values // 4 if channels * 30 > np.prod(shape) else values)
        if kind == "DEPTHWISE_CONV_2D":
            weights = np.where(weights > 0, np.int8(64), np.int8(-64))
        w = model.tensor(f"w{x}", shape, "int8", scales, axis=axis, data=weights)
        bias = rng.integers(-500, 500, channels).astype(np.int32)
        b = model.tensor(f"b{x}", (channels,), "int32", np.float32(0.05) * scales, data=bias)
        y = model.tensor(f"y{x}", out, scale=scale, zero_point=-128)
        options = {} if kind == "FULLY_CONNECTED" else {"padding": "SAME", "stride_h": 1, "stride_w": 1, **how}
        model.op(kind, [x, w, b], [y], fused_activation_function="RELU", **options)
        return y

    first = x = model.tensor("x", (1, 12, 8, 3), scale=0.05, zero_point=-3)
    x = layer(x, "CONV_2D", (24, 3, 3, 3), 0, (1, 12, 8, 24), 0.05)
    x = layer(x, "DEPTHWISE_CONV_2D", (1, 3, 3, 24), 3, (1, 12, 8, 24), 0.05, depth_multiplier=1)
    x = layer(x, "CONV_2D", (48, 1, 1, 24), 0, (1, 12, 8, 48), 0.05)
    x = layer(x, "CONV_2D", (24, 3, 3, 24), 0, (1, 12, 8, 24), 0.05)
    x = layer(x, "CONV_2D", (20, 3, 3, 24), 0, (1, 6, 4, 20), 0.05, stride_h=2, stride_w=2)
    x = layer(x, "FULLY_CONNECTED", (outputs, 480), 0, (1, outputs), 0.3)
    return model.build([first], [x])


def test_the_reference_is_tflm() -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(network())


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("host", {"step": True}),
        ("cortex-m0plus", {}),
        ("cortex-m4", {"optimize": "ram", "feed_rows": True, "recompute": 1.0}),
    ],
)
def test_generated_code_is_exact(target: str, options: dict) -> None:
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    plan = plan_of(network(), target, weights="compressed", kernels="tinyfuse", **options)
    assert layers(plan) >= 4
    assert_exact(plan, runs=2)


def layers(plan: Plan) -> int:
    """Number of layers with compressed weights."""
    return sum(stage.kernel.weights == "compressed" for group in plan.groups for stage in group.stages)


@pytest.mark.parametrize(("target", "comparable"), [("cortex-m0plus", 4), ("cortex-m4", 3)])
def test_the_report_says_what_is_spared_and_added(target: str, comparable: int) -> None:
    # by seeds 4 and 5 a channel is dead, which only the plan of packed weights drops
    data = network(seed=6, outputs=12)
    # `speed` has no price of a byte, for which the plan of packed weights would have other kernels
    plans = (plan_of(data, target, kernels="tinyfuse", optimize="speed", weights=w) for w in ("packed", "compressed"))
    packed, plan = plans
    assert compressed_json(packed) is None
    told = compressed_json(plan)
    spared = packed.weight_bytes - plan.weight_bytes
    assert spared > 0.3 * packed.weight_bytes
    # the plan of packed weights may have another form than the one that a compressed layer is like
    before_and_after = list(zip(*([s for g in p.groups for s in g.stages] for p in (packed, plan)), strict=True))
    alike = [(before, after) for before, after in before_and_after if before.kernel.name == after.kernel.costs_as]
    spared_by = {layer["operator"]: layer["bytes_spared"] for layer in told["layers"]}
    assert len(alike) == comparable
    for before, after in alike:
        flash = [sum(constant.data.nbytes for constant in stage.constants) for stage in (before, after)]
        assert spared_by[str(after.op)] == flash[0] - flash[1]
    assert told["instructions_added"] > 0
    assert len(told["layers"]) == layers(plan) and all(layer["bytes_spared"] > 0 for layer in told["layers"])
    lines = compressed_lines(told)
    assert sum(line.startswith("compressed") for line in lines) == layers(plan)


def test_the_report_says_why_layers_stay_packed() -> None:
    reasons = {
        one["reason"] for one in compressed_json(plan_of(network(40), "cortex-m4", weights="compressed"))["packed"]
    }
    assert any(
        "a channel has up to" in reason and "an index of 4 bits selects one of 16" in reason for reason in reasons
    )
    on_helium = compressed_json(plan_of(network(16), "cortex-m55", weights="compressed"))
    assert not on_helium["layers"] and any("Helium" in one["reason"] for one in on_helium["packed"])
    with_few = compressed_json(plan_of(network(16), "host", kernels="cmsis-nn", weights="compressed"))
    layers = [one for one in with_few["packed"] if "DEPTHWISE" not in one["operator"]]
    assert not with_few["layers"] and layers and all("CMSIS-NN" in one["reason"] for one in layers)


def upsampled() -> bytes:
    sketch = Sketch(3)
    x = sketch.value((1, 4, 4, 3))
    return sketch.build([x], [sketch.transpose_conv(x, 4, (3, 3))])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (model_of(other_dtype(_LAYER, "int16")), "data of int16 and weights of int8: only int8 is compressed"),
        (model_of(_LAYER_OF_INT4), "two weights of int4 share a byte as they are"),
        (upsampled(), "TRANSPOSE_CONV has no kernel for compressed weights"),
    ],
    ids=["int16", "int4", "another operator"],
)
def test_the_report_says_why_a_layer_is_none_of_these(data: bytes, reason: str) -> None:
    told = compressed_json(plan_of(data, "cortex-m4", weights="compressed"))
    assert [one["reason"] for one in told["packed"]] == [reason]
    assert compressed_summary(told)[0].endswith("1 not compressed (report.txt has the reasons)")


# --- what `auto` does ----------------------------------------------------------------------------


def test_auto_compresses_as_little_as_the_flash_wants() -> None:
    data, how = network(), {"kernels": "tinyfuse", "fusion": "basic"}
    packed, every = (plan_of(data, "cortex-m4", weights=weights, **how) for weights in ("packed", "compressed"))
    assert layers(plan_of(data, "cortex-m4", weights="auto", **how)) == 0
    code = -(-5 * estimated_code_bytes(packed) // 4)  # what code may take, as long as nothing is compiled
    found = []
    for limit in (
        every.weight_bytes + code // 2,
        *range(every.weight_bytes + code + 1000, packed.weight_bytes + code + 1, 1500),
    ):
        plan = plan_of(data, "cortex-m4", weights="auto", max_flash=limit, **how)
        found.append((plan.weight_bytes, layers(plan)))
    found.append(
        (
            packed.weight_bytes,
            layers(plan_of(data, "cortex-m4", weights="auto", max_flash=packed.weight_bytes + code, **how)),
        )
    )
    assert all(a <= b for (a, _), (b, _) in pairwise(found)), found
    assert found[0] == (every.weight_bytes, layers(every)) and found[-1] == (packed.weight_bytes, 0), found
    assert len({count for _, count in found}) > 2, found


def test_tables_of_tflm_decode_stay_tables() -> None:
    """The file may have lookup tables or Huffman codes."""
    plan = plan_of(decoded_network(), "cortex-m4", weights="compressed")
    assert layers(plan) == 2
    assert_exact(plan_of(decoded_network(), weights="compressed", kernels="tinyfuse"), runs=2)


def test_what_does_not_fit_is_told_what_takes_less() -> None:
    plan = plan_of(network(), "cortex-m4", max_flash=10_000)
    with pytest.raises(DoesNotFit, match="hint: --weights compressed takes the fewest"):
        check_flash(plan, None)
    plan = plan_of(network(), "cortex-m4", weights="compressed", max_flash=10_000)
    with pytest.raises(DoesNotFit, match=r"allows 10,000; --max-flash \d+ would fit$"):
        check_flash(plan, None)
