"""Models with state, frame by frame: our references against TFLM, the C against the references, on the
host and on emulated cores, by two instances that take turns and are reset in between."""

from __future__ import annotations

import shutil

import pytest
from executors import assert_exact, assert_reference_is_tflm, plan_of
from stream_models import STREAM_MODELS

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

#: frames over all streams: on the host, emulated
HOST_FRAMES, EMULATED_FRAMES = 1000, 50


@pytest.mark.parametrize("name", STREAM_MODELS)
def test_references_are_tflm(name: str) -> None:
    assert_reference_is_tflm(STREAM_MODELS[name], 200)


@pytest.mark.parametrize("name", STREAM_MODELS)
def test_host(name: str) -> None:
    assert_exact(plan_of(STREAM_MODELS[name]), HOST_FRAMES)


@emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", STREAM_MODELS)
def test_emulated(name: str, target: str) -> None:
    assert_exact(plan_of(STREAM_MODELS[name], target), EMULATED_FRAMES)
