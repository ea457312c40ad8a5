"""Our kernels of the operator families but the convolutions': on the host under sanitizers, and on
emulated cores, whose compilers and instructions are others."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cases import NAMED, RANDOM
from cases.common import broken_rules, inputs_of, operator, seeds, tensor
from hypothesis import HealthCheck, Phase, given, settings
from op_harness import TARGETS, Case, assert_exact, cases_of

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.statements import Call
from tinyfuse.kernels.elementwise.single_rounding import fit_plane
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary, FloatBinary, mul_multiplier
from tinyfuse.ops.pooling_reduce.softmax import Softmax
from tinyfuse.resources import resource_dir
from tinyfuse.targets import Target, load_target


def target_or_skip(name: str) -> Target:
    needed = ["gcc"] if name == "host" else ["arm-none-eabi-gcc", "qemu-system-arm"]
    if any(shutil.which(tool) is None for tool in needed):
        pytest.skip(f"needs {' and '.join(needed)}")
    return load_target(name)


def all_cases(op: Op, target: Target, seed: int = 0) -> list[Case]:
    """Every kernel and way of calling with random inputs; the first call also gets both extremes and every stored
    value."""
    context = Context(target, kernels="tinyfuse")
    low, high, _, random, _, every = inputs_of(op, seed)
    cases = list(cases_of(op, context, random))
    for inputs in (low, high, every):
        cases += list(cases_of(op, context, inputs))[:1]
    return cases


#: kinds of operators whose cases are one program: starting a compiler takes longer than most kinds' cases
_KINDS = [kind for kind in NAMED if kernels_of(kind)]
TOGETHER = [_KINDS[first : first + 16] for first in range(0, len(_KINDS), 16)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kinds", TOGETHER, ids=lambda kinds: f"{kinds[0]} to {kinds[-1]}")
def test_named_cases(kinds: list[str], target: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """On a core with Helium CI runs only kernels with Helium code; a campaign runs all."""
    core = target_or_skip(target)
    operators = [op for kind in kinds for op in NAMED[kind].values()]
    cases = [case for op in operators for case in all_cases(op, core)]
    if core.mve and not pytestconfig.getoption("--campaign"):
        cases = [case for case in cases if "TINYFUSE_MVE" in code_of(case.kernel.headers)]
    if cases:
        assert_exact(cases, core, tmp_path)


@cache
def code_of(headers: tuple[str, ...]) -> str:
    """Code of these headers and of those they include, without the headers that all include."""
    texts = [(resource_dir("runtime_c") / name).read_text() for name in headers if name != "tinyfuse_common.h"]
    return "".join(text + code_of(tuple(re.findall(r'#include "([^"]+)"', text))) for text in texts)


def drawn(strategy, count: int) -> list[tuple[Op, int]]:
    """`count` operators, drawn with a fixed seed, each with a seed for its inputs."""
    found: list[tuple[Op, int]] = []

    @settings(
        max_examples=count, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip
    @given(strategy, seeds)
    def collect(op: Op, seed: int) -> None:
        found.append((op, seed))

    collect()
    return found


@pytest.mark.parametrize("target", ("host", "cortex-m4"))
def test_random_cases(target: str, tmp_path: Path) -> None:
    core = target_or_skip(target)
    operators = [pair for strategy in RANDOM.values() for pair in drawn(strategy, 3)]
    assert_exact([case for op, seed in operators for case in all_cases(op, core, seed)], core, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_floats_that_tflm_leaves_undefined(target: str, tmp_path: Path) -> None:
    """QUANTIZE saturates infinities and what doesn't fit int32; NaN becomes the lowest value."""
    core = target_or_skip(target)
    data = np.array([np.inf, 3e38, 1e10, -0.0, np.nan, -1e10, -3e38, -np.inf], np.float32)
    expected = {"int8": [127, 127, 127, 5, -128, -128, -128, -128],
                "int16": [32767, 32767, 32767, 5, -32768, -32768, -32768, -32768]}  # fmt: skip
    cases = []
    for dtype, values in expected.items():
        op = operator("QUANTIZE", [tensor((8,), None, dtype="float32")], tensor((8,), 0.5, 5, dtype))
        cases += list(cases_of(op, Context(core, kernels="tinyfuse"), [data]))
        (got,) = FAMILIES["QUANTIZE"].reference(op, data)
        assert got.tolist() == values
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_a_cast_of_nan_is_zero_but_true(target: str, tmp_path: Path) -> None:
    core = target_or_skip(target)
    data, cases = np.array([np.nan, -np.nan, 1.9], np.float32), []
    for dtype in ("int8", "int16", "int32"):
        op = operator("CAST", [tensor((3,), None, dtype="float32")], tensor((3,), None, dtype=dtype))
        (got,) = FAMILIES["CAST"].reference(op, data)
        assert got.tolist() == [0, 0, 1]
        cases += list(cases_of(op, Context(core, kernels="tinyfuse"), [data]))
    zeros = np.array([0.0, -0.0, np.nan, 1e-45, -1e-39, np.inf], np.float32)  # the least numbers are none
    op = operator("CAST", [tensor((6,), None, dtype="float32")], tensor((6,), None, dtype="bool"))
    assert FAMILIES["CAST"].reference(op, zeros)[0].tolist() == [False, False, True, True, True, True]
    cases += list(cases_of(op, Context(core, kernels="tinyfuse"), [zeros]))
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_beyond_what_tflm_can(target: str, tmp_path: Path) -> None:
    """TFLM aborts if 512 or more exps of about one add up: every probability is rounded to zero."""
    core = target_or_skip(target)
    shape = (1, 1000)
    op = operator("SOFTMAX", [tensor(shape, 0.1)], tensor(shape, 1 / 256, -128), Softmax(1.0))
    data = [np.zeros(shape, np.int8)]
    (got,) = FAMILIES["SOFTMAX"].reference(op, *data)
    assert set(got.reshape(-1)) == {-128}
    assert_exact(list(cases_of(op, Context(core, kernels="tinyfuse"), data)), core, tmp_path)


def test_all_headers_together_name_nothing_twice(tmp_path) -> None:
    """A module may need any of them: with CMSIS-NN's kernels beside ours, other ones than usual."""
    folder = resource_dir("runtime_c")
    names = sorted(path.name for path in folder.glob("tinyfuse_*.h"))
    source = tmp_path / "all.c"
    source.write_text("".join(f'#include "{name}"\n' for name in names))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{folder}"]
    done = subprocess.run(["gcc", *flags, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m55"))
def test_add_and_mul_of_far_apart_scales(target: str, tmp_path: Path) -> None:
    """Every shift of the vector forms, none and the largest among them, and a rest beside the vectors."""
    core = target_or_skip(target)
    rng, cases = np.random.default_rng(5), []
    for scale in (1.0, 0.5, 0.3, 1e-2, 1e-4, 1e-7):
        for kind in ("ADD", "MUL"):
            operands = [tensor((3, 17), 1.0, int(rng.integers(-128, 128))), tensor((3, 17), scale, -128)]
            for out_scale in (scale, 2.0, 300.0):
                output = tensor((3, 17), out_scale, int(rng.integers(-128, 128)))
                op = operator(kind, operands, output, Binary(str(rng.choice(["NONE", "RELU"]))))
                if not broken_rules(op):
                    cases += all_cases(op, core)
    assert len(cases) > 60
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", ("host", "cortex-m4"))
@pytest.mark.parametrize(
    ("more", "seen"),
    [
        (Call("memset", ("out0 + 19", 7, 1)), "x"),
        (Call("memset", ("out0 - 1", 7, 1)), "g|use-after-poison"),
        (Call("memset", ("out0 + 20", 7, 1)), "g|use-after-poison"),
        (Call("memcmp", ("out0", "out0", 1), status="1"), "e"),
    ],
    ids=("wrong", "before", "behind", "status"),
)
def test_faults_of_a_kernel_are_seen(target: str, more: Call, seen: str, tmp_path: Path, monkeypatch) -> None:
    core = target_or_skip(target)
    op = operator("RELU", [tensor((20,), 0.1)], tensor((20,), 0.1))
    case = next(cases_of(op, Context(core, kernels="tinyfuse"), [np.zeros((20,), np.int8)]))
    assert_exact([case], core, tmp_path)
    kernel, call = type(case.kernel), type(case.kernel).call
    monkeypatch.setattr(kernel, "call", lambda self, *site: (*call(self, *site), more))
    with pytest.raises(AssertionError, match=f"({seen}) "):
        assert_exact([case], core, tmp_path)


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m4", "cortex-m55"))
def test_sums_on_a_plane(target: str, tmp_path: Path) -> None:
    """Every shift that has an instruction of its own, and others; clamps; rests beside eight elements."""
    core = target_or_skip(target)
    rng, cases, shifts = np.random.default_rng(6), [], set()
    for slope in (2e-3, 0.05, 0.3, 0.6, 1.3, 2.4, 6.0, 30.0):
        for kind, activation in (("ADD", "NONE"), ("SUB", "RELU"), ("ADD", "RELU6")):
            operands = [tensor((1, 3, 1, 11), 0.1 * factor, int(rng.integers(-128, 128))) for factor in (0.83, 1.0)]
            op = operator(kind, operands, tensor((1, 3, 1, 11), 0.1 / slope, -128), Binary(activation))
            if not broken_rules(op) and fit_plane(op) is not None:
                shifts.add(fit_plane(op).shift)
                cases += [case for case in all_cases(op, core) if case.kernel.name == "tinyfuse_single_rounding_sum_s8"]
    assert shifts > {19, 20, 21, 22, 23} and len(shifts) > 5
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", ("host", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55"))
def test_products_in_floats(target: str, tmp_path: Path) -> None:
    """Products by one multiplication, and ones whose ties leave only float32; of one shape, and a factor a channel."""
    core = target_or_skip(target)
    rng, cases, names = np.random.default_rng(7), [], set()
    for slope in (1.0, 0.25, 0.02, 0.0037, 3e-4, 2e-5):
        for activation, second in (("NONE", (1, 3, 1, 11)), ("RELU6", (1, 3, 1, 11)), ("RELU", (1, 1, 1, 11))):
            points = (*rng.choice([-128, -7, 0, 127], 2), 0 if activation == "NONE" else -128)
            shapes = ((1, 3, 1, 11), second, (1, 3, 1, 11))
            a, b, out = (
                tensor(shape, scale, int(zero))
                for shape, scale, zero in zip(shapes, (1.0, 1.0, 1 / slope), points, strict=True)
            )
            op = operator("MUL", [a, b], out, FloatBinary(activation, offset=int(rng.choice([0, 128]))))
            inputs = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes[:2]]
            cases += cases_of(op, Context(core, kernels="tinyfuse"), inputs)
    names = {case.kernel.name for case in cases}
    assert names >= {
        "tinyfuse_single_rounding_product_s8",
        "tinyfuse_float_product_s8",
        "tinyfuse_float_product_broadcast_s8",
    }
    assert any("fused_loop" in name for name in names)
    assert_exact(cases, core, tmp_path)


@pytest.mark.parametrize(
    ("target", "compiler", "flags"),
    [
        ("cortex-m0plus", "gcc", ""), ("cortex-m4", "gcc", ""), ("cortex-m4", "gcc", "-O0"), ("cortex-m4", "clang", "-O3"),
        ("cortex-m55", "gcc", ""),
    ],
)  # fmt: skip
def test_products_of_every_shift(target: str, compiler: str, flags: str, tmp_path: Path) -> None:
    """Shifts to the right, of zero and to the left; extreme zero points; clamps; remainders of eight elements; halves
    of both signs, with a power of two as multiplier."""
    core = target_or_skip(target)
    rng, cases, shifts = np.random.default_rng(8), [], set()
    for number, (slope, scale) in enumerate(product(2.0 ** np.arange(-22, 3), (0.73, 1.0))):
        activation = ("NONE", "RELU", "RELU6")[number % 3]
        zero_points = (*rng.choice([-128, -7, 0, 127], 2), 0 if activation == "NONE" else -128)
        scales = (1.0, scale, 1 / slope)
        a, b, out = (tensor((1, 3, 1, 13), scale, int(zero)) for scale, zero in zip(scales, zero_points, strict=True))
        op = operator("MUL", [a, b], out, Binary(activation))
        shifts.add(mul_multiplier(op)[1])
        inputs = [rng.integers(-128, 128, a.shape).astype(np.int8) for _ in range(2)]
        cases += cases_of(op, Context(core, kernels="tinyfuse"), inputs)
    assert shifts >= set(range(-21, 3))
    assert_exact(cases, core, tmp_path, flags, compiler)
