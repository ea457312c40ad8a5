"""Our kernels that look weights up (`--weights compressed`), on the host under sanitizers and on emulated cores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compressed_cases import SHAPES, compressed_layers, few_values
from contexts import context_of
from conv_cases import Shape, make_op, random_input
from op_harness import Case, assert_exact
from overlaps import covered_inputs
from test_conv_kernels import HARD_FLAGS, TARGETS, case_of, few, skip_without

from tinyfuse.kernels.layers.palettized.dsp import palettized_layer, strip_channels
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.targets import Target, load_target

#: the twins of the host are those of the DSP extension
HERE = {name: TARGETS[name] for name in ("host", "host-dsp-twins", "cortex-m4")}
HERE["cortex-m0plus"] = load_target("cortex-m0plus")


def compressed_cases(target: Target, shapes: tuple[Shape, ...] = SHAPES, **choices: str) -> list[Case]:
    """Layers with each kernel of palettized weights: whole, by rows, from rings, output over input."""
    rng = np.random.default_rng(5)
    context = context_of(target, kernels="tinyfuse", weights="compressed", **choices)
    cases: list[Case] = []
    for number, op in enumerate(compressed_layers(shapes)):
        for kernel in kernels_for(op):
            if kernel.weights != "compressed" or not kernel.accepts(op, context):
                continue
            data = random_input(op, rng, number % 3 == 0)
            ring = kernel.by_row and kernel.rings and number % 2 == 1
            cases.append(case_of(op, kernel, data, ring, number % 4))
            if 0 in covered_inputs(op, kernel, not kernel.whole) and not ring:
                cases.append(case_of(op, kernel, data, over=True))
    return cases


#: all kernels that the cases reach on each target
NAMES = {f"tinyfuse_{sort}_palettized_{made}" for sort, made in (
    ("conv", "row_s8"), ("conv", "rows_s8"), ("pointwise", "s8"), ("dense", "s8"),
)}  # fmt: skip


def every_other(cases: list[Case]) -> list[Case]:
    """Every other case of each kernel."""
    names = dict.fromkeys(case.kernel.name for case in cases)
    return [case for name in names for case in [case for case in cases if case.kernel.name == name][::2]]


@pytest.mark.parametrize("target", HERE)
def test_compressed_kernels(target: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Runs all cases, and a few of them with optimization if kernels are assembly or intrinsics."""
    if shutil.which("gcc" if target.startswith("host") else "qemu-system-arm") is None:
        pytest.skip("needs gcc" if target.startswith("host") else "needs qemu-system-arm")
    cases = compressed_cases(HERE[target])
    cases = cases if target == "cortex-m4" else every_other(cases)
    assert {case.kernel.name for case in cases} == NAMES
    assert_exact(cases, HERE[target], tmp_path, weights="compressed")
    if target == "cortex-m4":
        assert_exact(every_other(few(cases, "-O2", pytestconfig)), HERE[target], tmp_path, "-O2", weights="compressed")


@pytest.mark.campaign
@pytest.mark.parametrize(("compiler", "flags"), HARD_FLAGS)
@pytest.mark.parametrize("target", ("cortex-m3", "cortex-m4"))
def test_compressed_kernels_with_any_flags(target: str, compiler: str, flags: str, tmp_path: Path) -> None:
    skip_without(compiler)
    cases = compressed_cases(TARGETS[target])
    most = 24  # without optimization, more exceed the flash
    for first in range(0, len(cases), most):
        assert_exact(cases[first : first + most], TARGETS[target], tmp_path, flags, compiler, weights="compressed")


def test_strips_are_whole_or_several() -> None:
    """A layer with more weights than STRIP_BYTES has several strips, each of an even number of channels."""
    assert strip_channels(101, 64) == 96 and strip_channels(96, 64) == 96 and strip_channels(11, 520) == 10
    assert strip_channels(11, 5000) == 2 and strip_channels(1, 9000) == 1
    found = [(case.kernel, case.op) for case in compressed_cases(TARGETS["cortex-m4"])]
    several = [op for kernel, op in found if op.kind == "CONV_2D" and kernel.counts(op, True)["strip_pixels"]]
    over = [op for kernel, op in found if op in several and 0 in covered_inputs(op, kernel, not kernel.whole)]
    assert several and not over


def test_what_fits_no_lane_is_widened_and_what_spares_no_flash_is_packed() -> None:
    rng = np.random.default_rng(2)
    target = TARGETS["cortex-m4"]
    op = make_op(Shape("CONV_2D", 2, 5, 40, 20), rng)
    every = few_values(op, 4, rng, False)
    weights = np.full(op.operand(1).shape, -128, np.int8)
    weights[..., 1::2] = 5
    least = replace(every, inputs=(op.input, replace(op.operand(1), data=weights), *op.inputs[2:]))
    forms = [palettized_layer(layer, target, True).form for layer in (every, least)]
    assert forms == ["TINYFUSE_LANES", "TINYFUSE_WIDE"]
    assert palettized_layer(few_values(op, 16, rng, True), target, False) is not None
    assert palettized_layer(few_values(op, 17, rng, True), target, False) is None
    small = make_op(Shape("CONV_2D", 2, 5, 12, 6), rng)
    assert palettized_layer(few_values(small, 16, rng, True), target, False) is None  # 6 * (6 + 16) of 72 bytes
