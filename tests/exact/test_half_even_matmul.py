"""Products of two computed matrices that are requantized half to even: references against onnxruntime's formula, and
every kernel on the host under sanitizers and on emulated cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attention_cases import by_rows, matrices
from cases import NAMED
from contexts import context_of
from op_harness import Case, assert_exact, cases_of
from test_conv_kernels import skip_without_tools
from test_half_even import TARGETS_AND_NO_FPU, rounding_half_even

from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
from tinyfuse.targets import Target


def products() -> Iterator[Op]:
    """Products with several scales: a power of two, where halves are frequent, one that is 0 in C, a large one."""
    named = [op for op in NAMED["BATCH_MATMUL"].values() if op.input.dtype == "int8"]
    for number, op in enumerate((*named, *matrices())):
        scale = (op.output.scale, 2.0**-5, 1e12, 1e-3)[number % 4]
        x, y = (replace(t, quant=replace(t.quant, scale=(0.0625,))) if number % 4 == 1 else t for t in op.inputs)
        output = replace(op.output, quant=replace(op.output.quant, scale=(float(np.float32(scale)),)))
        made = rounding_half_even(replace(op, inputs=(x, y), outputs=(output,)))
        yield made
        rows = by_rows(made)
        if rows is not None:
            yield rows


def kernel_cases(target: Target) -> list[Case]:
    rng, found = np.random.default_rng(3), []
    for op in products():
        data = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in op.activations]
        context = context_of(target, kernels="tinyfuse")
        found += [replace(case, context=context) for case in cases_of(op, context, data)]
    return found


def test_references_follow_the_formula() -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 3, 8), (2, 8, 4)))
    op = rounding_half_even(NAMED["BATCH_MATMUL"]["batches"])
    (found,) = FAMILIES[op.kind].reference(op, x, y)
    (a, b), out = op.operands, op.output
    sums = np.matmul(x.astype(np.int64) - a.zero_point, y.astype(np.int64) - b.zero_point)
    scaled = np.rint(sums.astype(np.float32) * (np.float32(a.scale) * np.float32(b.scale) / np.float32(out.scale)))
    np.testing.assert_array_equal(found, np.clip(scaled + out.zero_point, -128, 127))


@pytest.mark.parametrize("target", TARGETS_AND_NO_FPU)
def test_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    cases = kernel_cases(TARGETS_AND_NO_FPU[target])
    kernels = {case.kernel.name for case in cases}
    assert {f"tinyfuse_{name}_half_even_s8" for name in ("batch_matmul", "rows_matmul")} <= kernels
    assert_exact(cases, TARGETS_AND_NO_FPU[target], tmp_path)
