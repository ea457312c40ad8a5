"""Depthwise convolutions whose channels' multipliers are far apart, from 1e-4 to 4: on step lines of their channels'
own shifts (tinyfuse/kernels/step_line.py), on the host under sanitizers and on emulated cores, in every kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import Shape, make_op, of_int4, random_input, with_multipliers
from op_harness import Case, assert_exact
from test_conv_kernels import skip_without_tools

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Context
from tinyfuse.kernels.packing import bounded
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.kernels.step_line import step_line
from tinyfuse.targets import Target, load_target

TARGETS = {name: load_target(name) for name in ("host", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")}
TARGETS["host-dsp-twins"] = replace(TARGETS["host"], dsp=True)

#: both strides, odd and even counts of outputs, groups of channels that overlap, padding of each sort; windows that are no 3x3,
#: along a line or not
SHAPES = tuple(
    Shape("DEPTHWISE_CONV_2D", height, width, channels, channels, kernel, stride, (1, 1), padding)
    for height, width, channels, kernel, stride, padding in (
        (5, 5, 8, (3, 3), (1, 1), "SAME"), (4, 8, 15, (3, 3), (1, 1), "SAME"), (5, 9, 7, (3, 3), (2, 2), "SAME"),
        (4, 8, 12, (3, 3), (2, 2), (0, 1, 0, 1)), (6, 3, 9, (5, 2), (1, 1), "SAME"), (9, 2, 12, (4, 1), (1, 1), "VALID"),
        (3, 6, 8, (1, 3), (1, 1), "SAME"), (7, 7, 4, (2, 2), (3, 1), "SAME"),
    )
)  # fmt: skip


def drawn_multipliers(channels: int, rng: np.random.Generator) -> np.ndarray:
    """From 1e-4 to 4, one of them at least 1/2, some next to powers of two."""
    found = 10.0 ** rng.uniform(-4, np.log10(4), channels)
    found[rng.integers(channels)] = rng.choice([0.5, 0.8, 1.0, 2.5, 4.0])
    near = rng.random(channels) < 0.3
    return np.where(near, 2.0 ** np.rint(np.log2(found)) * (1 + rng.choice([-1e-6, 0, 1e-6], channels)), found)


def layers() -> list[Op]:
    """Outputs above their zero point alone, and below; in all of int8 or clamped."""
    rng = np.random.default_rng(31)
    found = []
    for shape in (*SHAPES, *SHAPES, *map(of_int4, SHAPES[:2])):
        for activation, zero_point in (("NONE", -128), ("RELU6", -128), ("RELU", -90), ("NONE", 127)):
            plain = make_op(replace(shape, activation=activation), rng)
            found.append(with_multipliers(plain, drawn_multipliers(shape.channels, rng), zero_point))
    return found


def cases_of(target: Target) -> list[Case]:
    """Each layer in each kernel that computes it on its line; whole, by rows or from rings."""
    rng = np.random.default_rng(32)
    cases: list[Case] = []
    for weights in ("packed", "unpacked", "compressed"):
        context = Context(target, kernels="tinyfuse", weights=weights, optimize="speed")
        for op in layers():
            for kernel in kernels_for(op):
                if (
                    kernel.library == "tinyfuse"
                    and kernel.accepts(op, context)
                    and "own_shifts" in kernel.path(op, True, context)
                ):
                    extreme = bool(rng.random() < 0.5)
                    how = "whole" if kernel.whole else "rings" if rng.random() < 0.3 else "rows"
                    shift = int(rng.integers(0, 4))
                    cases.append(Case(op, kernel, [random_input(op, rng, extreme)], how, None, shift, context))
    return cases


def test_nearly_all_layers_have_lines_of_own_shifts() -> None:
    found = [op for op in layers() if step_line(op, own_shifts=True) is not None]
    assert len(found) > 0.9 * len(layers())
    assert not any(bounded(op) for op in found), "one channel is beyond the bounded form"


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    skip_without_tools(target)
    core = TARGETS[target]
    cases = cases_of(core)
    names = {case.kernel.name for case in cases}
    print(names, len(cases))
    assert_exact(cases, core, tmp_path)
