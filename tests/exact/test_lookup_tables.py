"""Tables of functions of one int8 value: their kernels alone, and networks that are rich in such functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from campaigns import assert_batches_are_exact, assert_part_is_exact, drawn_plans
from cases.common import operator, tensor
from core_rotation import on_one_core
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from normalized_networks import TERMS, layer
from op_harness import TARGETS, cases_of
from op_harness import assert_exact as assert_kernels_exact
from table_chains import tabled_networks
from test_op_kernels import drawn, target_or_skip

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops.elementwise.table import Table

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def table(shape: tuple[int, ...], dtype: str, channels: bool, clamps: bool = False) -> Op:
    """A random table for all channels, one for each channel, or one that clamps."""
    rng = np.random.default_rng(len(shape))
    limits = np.iinfo(dtype)
    data = rng.integers(limits.min, limits.max + 1, ((shape[-1],) if channels else ()) + (256,)).astype(dtype)
    if clamps:
        data = np.arange(256, dtype=np.uint8).view(np.int8).clip(-20, 99)
    kind = "CHANNEL_TABLES" if channels else "TABLE"
    return operator(kind, [tensor(shape), tensor(data.shape, None, dtype=dtype, data=data)],
                    tensor(shape, dtype=dtype), Table(()))  # fmt: skip


#: images whose rows are vectors, and rests beside them, sixteens of channels; channels by fours, and rests; other ranks
SHAPES = (
    (1, 3, 4, 8),
    (1, 2, 5, 13),
    (1, 3, 5, 16),
    (2, 3, 48),
    (1, 4, 1, 3),
    (1, 2, 1, 1),
    (2, 3, 2, 4),
    (5, 7),
    (300,),
    (),
)


@pytest.mark.parametrize("target", (*TARGETS, "cortex-m0plus"))
def test_kernels(target: str, tmp_path: Path) -> None:
    core = target_or_skip(target)
    ops = [table(shape, dtype, channels) for shape in SHAPES for dtype in ("int8", "int16")
           for channels in (False, True) if shape or not channels]  # fmt: skip
    ops += [table(shape, "int8", False, clamps=True) for shape in SHAPES]
    rng = np.random.default_rng(1)
    cases = [
        case
        for op in ops
        for case in cases_of(op, Context(core, kernels="tinyfuse"), [rng.integers(-128, 128, op.input.shape, np.int8)])
    ]
    assert {case.kernel.name for case in cases} >= {
        "tinyfuse_activation_clamp_s8", "tinyfuse_activation_lookup_s8", "tinyfuse_activation_lookup_s8_s16",
        "tinyfuse_channel_lookup_s8", "tinyfuse_channel_lookup_s8_s16",
    }  # fmt: skip
    assert_kernels_exact(cases, core, tmp_path)


@settings(max_examples=8, **_SETTINGS)
@given(tabled_networks(libm=False))
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@settings(max_examples=6, **_SETTINGS)
@given(tabled_networks())
def test_modules_are_exact(data: bytes) -> None:
    assert_exact(plan_of(data), runs=3)


@on_one_core("cortex-m4", "cortex-m55")
def test_networks_on_cores(target: str) -> None:
    target_or_skip(target)
    networks = [data for data, _ in drawn(tabled_networks(), 5)]
    networks += [layer(kind, 16, normalized=True, pixels=9) for kind in TERMS]
    assert_all_exact([plan_of(data, target, name=f"net{n}") for n, data in enumerate(networks)])


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(tabled_networks(libm=False))
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(15))
def test_many_modules_are_exact(number: int) -> None:
    assert_part_is_exact(tabled_networks(), 240, number, runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_modules_are_exact_on_cores(target: str) -> None:
    assert_batches_are_exact(drawn_plans(tabled_networks(), 72, 15, target), runs=3)
