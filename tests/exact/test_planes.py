"""TRANSPOSEs of planes by rows: references, kernels alone, networks whose inputs and outputs are planes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases.common import inputs_of
from op_harness import TARGETS, assert_exact, cases_of
from planes_cases import swaps
from test_op_kernels import target_or_skip

from tinyfuse.kernels.base import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.planes import from_memory, in_memory


def test_planes_are_the_images_with_channels_in_front() -> None:
    for op in swaps():
        (data, *_) = inputs_of(op)[3]
        (got,) = FAMILIES[op.kind].reference(op, data)
        pixels, lines = (data, got) if op.kind == "ROWS_TO_PLANES" else (got, data)
        planes = op.input if op.kind == "PLANES_TO_ROWS" else op.output
        memory = in_memory(planes, lines)
        np.testing.assert_array_equal(memory.reshape(planes.planes, *pixels.shape[1:3]), pixels[0].transpose(2, 0, 1))
        np.testing.assert_array_equal(from_memory(planes, memory), lines)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    core = target_or_skip(target)
    context = Context(core, kernels="tinyfuse")
    cases = [case for op in swaps() for case in cases_of(op, context, inputs_of(op)[3])]
    assert {case.how for case in cases} == {"whole", "rows", "rings"}
    assert any("mve" in case.kernel.name for case in cases) == core.mve
    assert_exact(cases, core, tmp_path)
