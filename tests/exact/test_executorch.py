"""ExecuTorch programs for Cortex-M (.pte): references compute what ExecuTorch's operators compute.

The files and their results come from tests/support/make_executorch_models.py.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from executors import assert_all_exact
from pte_builder import ProgramBuilder

from tinyfuse.compiler import check_graph, compile_graph
from tinyfuse.explain.advice import advice
from tinyfuse.frontend.executorch.program import Value
from tinyfuse.frontend.executorch.quantization import Quantizations
from tinyfuse.frontend.read_model import read_model
from tinyfuse.ir import EXECUTORCH
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.options import Options
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle

MODELS = Path(__file__).parents[1] / "support/executorch_models"
NAMES = sorted(path.stem for path in MODELS.glob("*.pte"))
needs_cross = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)


def model(name: str) -> tuple[str, bytes]:
    path = MODELS / f"{name}.pte"
    return str(path), path.read_bytes()


def test_there_are_models() -> None:
    assert NAMES == ["attention", "explicit", "mixed", "residual", "separable", "stored", "transformer"]


@pytest.mark.parametrize("name", NAMES)
def test_references_compute_what_executorch_computed(name: str) -> None:
    graph = check_graph(read_model(*model(name)))
    assert graph.runtime == EXECUTORCH
    ours = ReferenceOracle(graph)
    with np.load(MODELS / f"{name}.npz") as results:
        for run, inputs in enumerate(results["inputs"]):
            found = ours.run([inputs.reshape(graph.inputs[0].shape)])
            for i, array in enumerate(found):
                np.testing.assert_array_equal(array.reshape(-1), results[f"output_{i}"][run])


@pytest.mark.skipif(find_spec("executorch") is None, reason="executorch is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_references_are_executorch_s_operators(name: str) -> None:
    path, data = model(name)
    graph = check_graph(read_model(path, data))
    oracle = make_oracle("executorch", data, graph)
    assert (oracle.name, oracle.warnings) == ("executorch", ())
    inputs = input_set(graph, 40, seed=1)
    for wanted, found in zip(oracle.run_all(inputs), ReferenceOracle(graph).run_all(inputs), strict=True):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(find_spec("executorch") is not None, reason="executorch is installed")
def test_without_executorch_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMSIS_NN_PATH", raising=False)
    path, data = model("separable")
    oracle = make_oracle("auto", data, read_model(path, data))
    assert oracle.name == "reference"
    assert oracle.warnings[0].startswith("unproven: ")
    assert "pip install executorch" in oracle.warnings[0]


def test_generated_code_is_exact() -> None:
    plans = [
        compile_graph(read_model(*model(name)), load_target(target), Options("net", fusion=fusion))
        for name in NAMES
        for target, fusion in (("host", "rows"), ("cortex-m4", "rows"), ("cortex-m55", "none"))
    ]
    assert_all_exact(plans, on_host=True)


@needs_cross
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_generated_code_is_exact_on_cores(target: str) -> None:
    plans = [compile_graph(read_model(*model(name)), load_target(target), Options("net")) for name in NAMES]
    assert_all_exact(plans)


def test_methods_tell_the_quantization_of_int8_borders() -> None:
    graph = read_model(*model("stored"))
    (x,), (y,) = graph.inputs, graph.outputs
    assert (x.dtype, y.dtype) == ("int8", "int8")
    assert (round(x.scale, 5), x.zero_point, round(y.scale, 5), y.zero_point) == (0.02673, -7, 0.00189, 53)


def test_scales_follow_from_borders_and_multipliers() -> None:
    a, b, total, product, view, free = (Value(i, "int8", (4,), (0,), None, (0, 4 * i)) for i in range(6))
    q = Quantizations()
    q.has(total, 7, 0.5)
    q.relate((a,), (b,), 2.0)
    q.relate((a,), (total,), 4.0)
    q.relate((a, b), (product,), 0.25)
    q.alike(view, product)
    q.has(view, -3)
    q.compute(free, (product, product), lambda x, y: x * y + 1)
    q.solve()
    scales = [q.quant(value).scale[0] for value in (a, b, total, product, view, free)]
    assert scales == [2.0, 1.0, 0.5, 8.0, 8.0, 65.0]
    assert [q.quant(value).zero_point[0] for value in (total, product, view, free)] == [7, -3, -3, 0]


def test_quotients_by_a_constant_are_tables() -> None:
    """Against executorch_operators' float32 arithmetic; halves go away from zero."""
    p = ProgramBuilder()
    x, y = p.tensor((1, 256)), p.tensor((1, 256))
    divisor = p.tensor((1, 256), data=np.full((1, 256), 5))
    p.call("cortex_m::quantized_div.out", x, p.integer(3), divisor, p.integer(1), p.integer(-4), p.real(2.0), y)
    graph = check_graph(read_model("model.pte", p.build([x], [y])))
    values = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    (found,) = ReferenceOracle(graph).run([values])
    halves = (values.astype(int) - 3) / 4 * 2.0
    wanted = np.clip(np.copysign(np.floor(np.abs(halves) + 0.5), halves) - 4, -128, 127)
    np.testing.assert_array_equal(found, wanted.astype(np.int8))


@pytest.mark.parametrize("scales", [(0.5, 0.25, 1.0), (0.1, 0.3, 0.7), (1.5, 0.001, 0.02)])
def test_a_sum_keeps_its_multipliers_whatever_scales_its_borders_have(scales: tuple[float, float, float]) -> None:
    """All three scales are stated by borders of the program, and round to other multipliers than the sum's own."""
    a, b, c = scales
    factors = [quantize_multiplier(f) for f in (a / (2 * max(a, b)), b / (2 * max(a, b)), 2 * max(a, b) / (2**20 * c))]
    (first, second, total) = ((m if m == 2**30 else m + 40, shift) for m, shift in factors)
    p = ProgramBuilder()
    x, y, z = (p.tensor((1, 256)) for _ in range(3))
    zero, ends = p.integer(0), (p.integer(-128), p.integer(127))
    pairs = [(p.integer(m), p.integer(shift)) for m, shift in (first, second, total)]
    p.call("cortex_m::quantized_add.out", x, zero, *pairs[0], y, zero, *pairs[1], zero, *pairs[2], *ends, z)
    for value, scale in zip((x, y, z), scales, strict=True):
        real = p.tensor((1, 256), "float32")
        p.call("cortex_m::dequantize_per_tensor.out", value, p.real(scale), zero, *ends, p.integer(1), real)
    graph = check_graph(read_model("model.pte", p.build([x, y], [z])))
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-128, 128, (1, 256), dtype=np.int8) for _ in range(2))
    sums = sum(
        multiply_by_quantized_multiplier(v.astype(np.int64) << 20, *m) for v, m in ((left, first), (right, second))
    )
    wanted = np.clip(multiply_by_quantized_multiplier(sums, *total), -128, 127)
    (found,) = ReferenceOracle(graph).run([left, right])
    np.testing.assert_array_equal(found, wanted.astype(np.int8))


def test_readers_take_the_zero_points_that_they_state() -> None:
    """Both products read a value as another zero point than its maker states, one of them beyond int8 (Hardswish)."""
    p = ProgramBuilder()
    x, y, first, second = (p.tensor((1, 256)) for _ in range(4))
    zero, multiplier, shift = p.integer(0), p.integer(2**30), p.integer(-4)
    ends = (p.integer(-128), p.integer(127))
    p.call("cortex_m::dequantize_per_tensor.out", x, p.real(0.5), p.integer(7), *ends, p.integer(1),
           p.tensor((1, 256), "float32"))  # fmt: skip
    p.call("cortex_m::quantized_mul.out", x, p.integer(3), y, p.integer(-1146), zero, multiplier, p.integer(-10), first)
    p.call("cortex_m::quantized_mul.out", first, p.integer(-5), y, p.integer(9), zero, multiplier, shift, second)
    graph = check_graph(read_model("model.pte", p.build([x, y], [first, second])))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (1, 256)) for _ in range(2))
    product = np.clip(multiply_by_quantized_multiplier((a - 3) * (b + 1146), 2**30, -10), -128, 127)
    again = np.clip(multiply_by_quantized_multiplier((product + 5) * (b - 9), 2**30, -4), -128, 127)
    found = ReferenceOracle(graph).run([a.astype(np.int8), b.astype(np.int8)])
    for wanted, array in zip((product, again), found, strict=True):
        np.testing.assert_array_equal(array, wanted.astype(np.int8))
    assert_all_exact(
        [compile_graph(graph, load_target(t), Options("net")) for t in ("host", "cortex-m4", "cortex-m55")]
    )


def assert_computed_exactly(data: bytes, runs: int = 3) -> None:
    """Compare references and generated C of a program with ExecuTorch's operators where they are installed."""
    graph = check_graph(read_model("model.pte", data))
    inputs = input_set(graph, runs, seed=0)
    found = ReferenceOracle(graph).run_all(inputs)
    if find_spec("executorch") is not None:
        for wanted, arrays in zip(make_oracle("executorch", data, graph).run_all(inputs), found, strict=True):
            for a, b in zip(wanted, arrays, strict=True):
                np.testing.assert_array_equal(np.asarray(a).reshape(-1), b.reshape(-1))
    assert_all_exact(
        [compile_graph(graph, load_target(t), Options("net")) for t in ("host", "cortex-m4", "cortex-m55")]
    )


def test_portable_arithmetic_is_float32() -> None:
    p = ProgramBuilder()
    x, y = p.tensor((1, 3, 8), "float32"), p.tensor((3, 1), "float32")
    made = {kind: p.tensor((1, 3, 8), "float32") for kind in ("add", "sub", "mul", "div", "clamp", "relu", "maximum")}
    one = p.integer(1)
    p.call("aten::add.out", x, y, one, made["add"])
    p.call("aten::sub.out", made["add"], x, one, made["sub"])
    p.call("aten::mul.out", made["sub"], x, made["mul"])
    p.call("aten::div.out", made["mul"], y, made["div"])
    p.call("aten::clamp.out", made["div"], p.real(-1.5), p.nothing(), made["clamp"])
    p.call("aten::relu.out", made["clamp"], made["relu"])
    p.call("aten::maximum.out", made["relu"], x, made["maximum"])
    mean = p.tensor((1, 8), "float32")
    p.call("aten::mean.out", made["maximum"], p.integers(1), p.flag(False), p.nothing(), mean)
    assert_computed_exactly(p.build([x, y], [mean, made["div"], made["clamp"]]))


def test_layer_normalization_is_computed_as_portable_kernels_do() -> None:
    p, rng = ProgramBuilder(), np.random.default_rng(0)
    x, out = (p.tensor((1, 5, 12), "float32") for _ in range(2))
    mean, deviation = (p.tensor((1, 5, 1), "float32") for _ in range(2))
    weight, bias = (p.tensor((12,), "float32", rng.normal(0, 1, 12)) for _ in range(2))
    sizes, eps = p.integers(12), p.real(1e-5)
    p.call("aten::native_layer_norm.out", x, sizes, weight, bias, eps, out, mean, deviation, results=3)
    assert_computed_exactly(p.build([x], [out]))


def test_portable_movement() -> None:
    p = ProgramBuilder()
    shapes = ((2, 4, 6), (1, 2, 4, 6), (1, 2, 8, 18), (1, 2, 8, 5), (1, 8, 5))
    x, image, larger, part, row = (p.tensor(shape, "float32") for shape in shapes)
    p.call("aten::unsqueeze_copy.out", x, p.integer(0), image)
    p.call("aten::upsample_nearest2d.vec_out", image, p.integers(8, 18), p.nothing(), larger)
    p.call("aten::slice_copy.Tensor_out", larger, p.integer(-1), p.integer(2), p.integer(-1), p.integer(3), part)
    p.call("aten::select_copy.int_out", part, p.integer(1), p.integer(-1), row)
    assert_computed_exactly(p.build([x], [row]))


def test_parts_in_float32_are_told() -> None:
    path, data = model("transformer")
    plan = compile_graph(read_model(path, data), load_target("cortex-m4"), Options("net"))
    told = [found for found in advice(plan) if found.topic == "float32"]
    assert told
    assert all("begins a part in float32 of " in found.message for found in told)
    assert all(found.op.kind != "QUANTIZE" for found in told)
