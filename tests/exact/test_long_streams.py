"""`verify --slide` of long streams: 10,000 steps on this machine, 200 on an emulated core, against TFLM."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sliding_models import gesture, padded, wake_word

import tinyfuse
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Window
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.windows import WindowOracle

DOORBELL = Path(__file__).resolve().parents[2] / "examples" / "doorbell"
MODELS = {
    "wake word": (wake_word(), {"slide": 1}),
    "wake word of int16": (wake_word(dtype="int16"), {"slide": 2}),
    "padded": (padded(), {"slide": 2}),
    "gesture": (gesture(causal=True), {"slide": 3}),
    "doorbell": (str(DOORBELL / "doorbell.tflite"), {"slide": 1, "front_end": str(DOORBELL / "mel.tflite")}),
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", MODELS)
def test_ten_thousand_steps_on_the_host(name: str) -> None:
    """Two streams in turn, each reset once, in one arena."""
    model, settings = MODELS[name]
    found = tinyfuse.compile(model, "host", **settings).verify(emulator="host", oracle="tflm", runs=10_000, timeout=900)
    assert found.exact and found.runs == 10_000, found
    assert not found.warnings


@pytest.mark.campaign
@pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
@pytest.mark.parametrize("name", MODELS)
def test_two_hundred_steps_on_the_core(name: str) -> None:
    model, settings = MODELS[name]
    found = tinyfuse.compile(model, "cortex-m4", **settings).verify(oracle="tflm", runs=200, timeout=900)
    assert found.exact and found.runs == 200, found
    assert 0 < found.instructions_mean <= found.instructions


def test_a_long_stream_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are the same, and progress is reported."""
    graph = read_tflite("m.tflite", wake_word())
    window = Window(graph, 0, 20, 1, 1)
    steps = [[frames[0][:, :1]] for frames in input_set(graph, 24, 0)]
    oracle, said = ReferenceOracle(graph), []
    (whole,) = WindowOracle(window, oracle).run_streams([steps])
    monkeypatch.setattr("tinyfuse.verify.windows._MACS", 1)
    (parts,) = WindowOracle(window, oracle, said.append).run_streams([steps])
    assert [run[0].tobytes() for run in whole] == [run[0].tobytes() for run in parts]
    assert said == [f"computing results with reference: {n} of 5" for n in range(1, 5)]
