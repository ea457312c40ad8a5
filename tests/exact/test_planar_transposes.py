"""TRANSPOSEs of planes by rows: references, kernels alone, networks whose inputs and outputs are planes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from campaigns import assert_batches_are_exact, assert_part_is_exact, drawn_plans
from cases.common import inputs_of
from core_rotation import share_of_core
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from executors import assert_exact as assert_plan_exact
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nchw_networks import FIRST, LAST
from op_harness import TARGETS, assert_exact, cases_of
from planar_networks import (
    classifier,
    enlarging,
    in_the_middle,
    planar_networks,
    segmentation,
    sequence,
    sequence_of_images,
)
from planes_cases import DTYPES, swaps
from random_graphs import Sketch
from test_op_kernels import drawn, target_or_skip

from tinyfuse.errors import CompileError
from tinyfuse.explain.advice import advice
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.planes import from_memory, in_memory
from tinyfuse.options import OPTIMIZE

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}

#: the same networks, small
SMALL = {
    "classifier": classifier(18, 13), "segmentation": segmentation(14), "three planes to three": segmentation(14, 3, 3),
    "more planes": segmentation(12, 3, 5), "fewer planes": segmentation(12, 4, 2), "enlarging": enlarging(9),
    "sequence": sequence(70, 3, 5), "sequence of images": sequence_of_images(61, 4, 5), "in the middle": in_the_middle(),
    **{f"{dtype} planes to planes": segmentation(9, 2, 2, dtype) for dtype in ("int16", "float32")},
}  # fmt: skip


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


def test_references_of_networks_equal_tflm() -> None:
    for data in SMALL.values():
        assert_reference_is_tflm(data, runs=2)


@settings(max_examples=6, **_SETTINGS)
@given(planar_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=2)


@pytest.mark.parametrize("optimize", OPTIMIZE)
def test_networks_are_exact(optimize: str) -> None:
    """Under sanitizers; and in steps."""
    how = {"optimize": optimize, "kernels": "tinyfuse"}
    plans = [plan_of(data, "cortex-m4", **how) for data in SMALL.values()]
    plans += [plan_of(data, step=True, **how) for data in list(SMALL.values())[::3]]
    assert_all_exact(plans, runs=2, on_host=True)


@settings(max_examples=2, **_SETTINGS)
@given(st.lists(st.tuples(planar_networks(), st.sampled_from(OPTIMIZE)), min_size=6, max_size=6))
def test_random_networks_are_exact(models: list[tuple[bytes, str]]) -> None:
    assert_all_exact([plan_of(data, "cortex-m4", optimize=o, kernels="tinyfuse") for data, o in models], on_host=True)


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_networks_on_cores(target: str, pytestconfig: pytest.Config) -> None:
    target_or_skip(target)
    models = share_of_core(target, [*SMALL.values(), *(data for data, _ in drawn(planar_networks(), 3))], pytestconfig)
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in models], runs=2)


def test_planes_take_their_own_bytes_and_rows() -> None:
    """Not those of an image with channels last beside them."""
    planes = 3 * 32 * 32
    assert plan_of(classifier(32, 32), "cortex-m4").arena_bytes < 1.5 * planes
    whole = plan_of(classifier(32, 32), "cortex-m4", fusion="basic")
    assert whole.arena_bytes == 2 * planes and "TRANSPOSE" in {op.kind for op in whole.graph.ops}
    # what is made lies over what was read, plane over plane
    for inputs, outputs, most in ((3, 3, 3), (1, 4, 4), (2, 4, 4), (4, 2, 4)):
        found = plan_of(segmentation(32, inputs, outputs), "cortex-m4", optimize="ram", recompute=1)
        assert found.arena_bytes < (most + 1.8) * 32 * 32, (inputs, outputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sequences_of_planes_stand_up(dtype: str) -> None:
    plan = plan_of(sequence(300, 6, 8, dtype), "cortex-m4", kernels="tinyfuse", optimize="ram")
    assert plan.groups[0].ops[0].kind == "PLANES_TO_ROWS" and len(plan.groups[0].ops) > 3
    ends = plan_of(sequence_of_images(300), "cortex-m4", kernels="tinyfuse", optimize="ram")
    assert [op.kind for op in ends.groups[0].ops] == ["PLANES_TO_ROWS", "CONV_2D", "CONV_2D", "ROWS_TO_PLANES"]


def test_what_stays_whole() -> None:
    """Rows that come one by one have no planes; CMSIS-NN has a function of its own."""
    with pytest.raises(CompileError, match="needs the whole of"):
        plan_of(segmentation(9, 3), feed_rows=True)
    graph = plan_of(segmentation(9, 3), "cortex-m4", kernels="cmsis-nn").graph
    assert [op.kind for op in graph.ops if "TRANSPOSE" in op.kind or "PLANES" in op.kind] == ["TRANSPOSE"] * 2


def test_rows_that_are_fed_become_planes() -> None:
    s = Sketch(3)
    image = s.value((1, 12, 10, 3))
    x = s.conv(s.conv(image, 4, (3, 3)), 4, (3, 3))
    for optimize in ("balanced", "ram"):
        plan = plan_of(s.build([image], [s.transpose(x, FIRST)]), feed_rows=True, optimize=optimize, kernels="tinyfuse")
        assert plan.fed_group.ops[-1].kind == "ROWS_TO_PLANES"
        assert_plan_exact(plan, runs=3, on_host=True)


def test_windows_that_slide_over_planes() -> None:
    """Frames of planes, and planes in the middle of what a step computes."""
    s = Sketch(4)
    frames = s.value((1, 3, 24, 4), name="frames")
    x = s.conv(s.transpose(frames, LAST), 6, (3, 1), padding="VALID")
    x = s.transpose(s.softmax(s.transpose(x, FIRST)), LAST)
    data = s.build([frames], [s.mean(s.conv(x, 5, (3, 1), padding="VALID"))])
    plan = plan_of(data, "cortex-m4", slide=1, kernels="tinyfuse")
    assert "PLANES_TO_ROWS" in {op.kind for op in plan.graph.ops}
    assert_plan_exact(plan, runs=3, on_host=True)


def test_advice_names_them() -> None:
    found = [each for each in advice(plan_of(segmentation(12, 3, 4), "cortex-m4")) if each.topic == "layout"]
    assert [each.op.kind for each in found] == ["PLANES_TO_ROWS", "ROWS_TO_PLANES"]
    assert "moves 432 bytes: the model's input has its dimensions in another order than op" in found[0].message
    assert "moves 576 bytes: the model's output has its dimensions in another order than op" in found[1].message


@pytest.mark.campaign
@settings(max_examples=1000, **_SETTINGS)
@given(planar_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(10))
def test_many_networks_are_exact(number: int) -> None:
    assert_part_is_exact(planar_networks(most_layers=8), 240, number, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_networks_are_exact_on_cores(target: str) -> None:
    assert_batches_are_exact(drawn_plans(planar_networks(), 72, 15, target), runs=3)
