"""`--slide` of models that keep their window themselves: behind a front end for audio, or any other."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from random_graphs import Sketch
from sliding_models import assert_slides, step_of
from stream_models import StreamingNet
from test_front_end import network
from test_selftest import generate, run

import tinyfuse
from tinyfuse.audio.front_end import FrontEnd
from tinyfuse.audio.model import front_end_model
from tinyfuse.errors import CompileError
from tinyfuse.frontend.join import with_front_end
from tinyfuse.ops import FAMILIES
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

_FRONT = FrontEnd(sample_rate=8000, window_ms=8, stride_ms=5, channels=8, frames=12, high=3000, shape=(1, 12, 1, 8))


def sounds(folder: Path, stride: int = 1, padding: str = "VALID", front: FrontEnd = _FRONT) -> tuple[bytes, str]:
    """Returns a network of convolutions over twelve frames, and the path of its audio front end."""
    s = Sketch(5)
    x = features = s.value((1, 12, 1, 8), front.scale, front.zero_point, name="features")
    for each in (stride, 1):
        x = s.conv(x, 8, (3, 1), (each, 1), padding=padding, activation="RELU")
    (folder / "front.tflite").write_bytes(front_end_model(front))
    return s.build([features], [s.fully_connected(x, 3)]), str(folder / "front.tflite")


def joined(folder: Path, **options: object) -> bytes:
    """Joins both into one file."""
    behind, path = sounds(folder, **options)
    return with_front_end(path, "network.tflite", behind)


def streaming(
    frames: int = 1, idiom: str = "slice behind", layer: bool = True, axis: int = 1, initialized: bool = False
) -> StreamingNet:
    """A layer on each frame, a window of the last ten, and two layers on the window."""
    shape = (1, frames, 1, 4) if axis == 1 else (1, 1, frames, 4)
    net = StreamingNet(shape)
    if layer:
        net.conv("front", (1, 1), 4)
    if initialized:
        net.model.op("CALL_ONCE", [], [], init_subgraph_index=1)
        net.initialize("window", (1, 10 - frames, 1, 4))
    net.window("window", 10, axis, idiom)
    for name in ("first", "second"):
        net.conv(name, (3, 1) if axis == 1 else (1, 3), 5)
    return net


# --- the step graph ----------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "step", "padding"), [(1, 1, "VALID"), (2, 2, "VALID"), (1, 3, "SAME")])
def test_behind_a_front_end(stride: int, step: int, padding: str, tmp_path: Path) -> None:
    """Compares references: the step graph gives the whole model's results, frame by frame, once the window is full."""
    graph = step_of(joined(tmp_path, stride=stride, padding=padding), step)
    assert graph.inputs[0].shape == (40 * step,)
    assert graph.window.steps_to_fill == -(-12 // step)
    assert_slides(graph, more=15)


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({}, 1),
        ({"idiom": "slice before"}, 2),
        ({"frames": 2, "idiom": "SLICE behind"}, 2),
        ({"frames": 2}, 4),
        ({"layer": False}, 1),
        ({"layer": False}, 3),
        ({"initialized": True}, 1),
    ],
)
def test_any_window(options: dict[str, object], step: int) -> None:
    """However it is kept, and whatever makes its frames, if anything does."""
    graph = step_of(streaming(**options).build(), step)
    assert_slides(graph, more=12)
    kinds = [op.kind for op in graph.ops]
    assert "READ_VARIABLE" not in kinds
    whole = graph.window.whole
    assert sum(FAMILIES[op.kind].macs(op) for op in graph.ops) < sum(FAMILIES[op.kind].macs(op) for op in whole.ops)


def test_a_window_of_columns() -> None:
    """Keras' streaming layers have time in columns: --slide-axis 2."""
    assert_slides(step_of(streaming(axis=2).build(), 1, axis=2), more=12)


@pytest.mark.parametrize("first", [True, False])
def test_an_input_beside_the_frames(first: bool) -> None:
    """The other input belongs to the window that the step completes, whatever its index."""
    net = streaming()
    other, total = (net.model.tensor(name, net.shape, **net.quant) for name in ("other", "total"))
    net.model.op("ADD", [net.x, other], [total])
    graph = step_of(net.model.build([other, net.input] if first else [net.input, other], [total]), 2)
    assert [t.name for t in graph.inputs] == (["other", "frame"] if first else ["frame", "other"])
    assert_slides(graph, more=12)


# --- the module --------------------------------------------------------------------------------


def test_host(tmp_path: Path) -> None:
    """Samples in, one score a step, as TFLM gives it for both files in one; the self-test of the same."""
    behind, front = sounds(tmp_path, stride=2)
    module = tinyfuse.compile(behind, "host", name="net", slide=2, front_end=front)
    found = module.verify(emulator="host", oracle="tflm", runs=24, compiler="clang")
    assert found.exact, found
    made = generate(behind, tmp_path, "--selftest", "--slide", "2", "--front-end", front)
    assert run(made) == ["0", "0", "2", "no error\n"]
    assert "#define NET_INPUT_SAMPLES_ROW_ELEMENTS 40\n" in (made / "net.h").read_text()


@emulated
def test_emulated(tmp_path: Path) -> None:
    behind, front = sounds(tmp_path)
    module = tinyfuse.compile(behind, "cortex-m4", name="net", slide=1, front_end=front)
    found = module.verify(oracle="tflm", runs=24)
    assert found.exact, found
    assert 0 < found.instructions_mean <= found.instructions


def test_samples_stand_for_frames(tmp_path: Path) -> None:
    """The stream may be cut anywhere between two frames: what a step brings are the samples of its frames."""
    one, two = (step_of(joined(tmp_path), step) for step in (1, 2))
    steps = input_set(two, 16, 0)
    halves = [[half] for (samples,) in steps for half in samples.reshape(2, -1)]
    by_one = ReferenceOracle(one).run_streams([halves])[0]
    by_two = ReferenceOracle(two).run_streams([steps])[0]
    assert [run[0].tobytes() for run in by_one[13::2]] == [run[0].tobytes() for run in by_two[6:]]


# --- refusals ----------------------------------------------------------------------------------


def test_a_step_that_is_no_number_of_runs() -> None:
    with pytest.raises(CompileError, match="a run of the model makes 2 frames") as refused:
        step_of(streaming(frames=2).build(), 3)
    assert refused.value.problems[0].hint == "give --slide 2, or a multiple of it"


def test_a_step_as_long_as_the_window() -> None:
    with pytest.raises(CompileError, match="the window has 10 frames"):
        step_of(streaming().build(), 10)


def test_a_front_end_by_itself() -> None:
    """A flat window slides by elements, eight of which a run makes."""
    front = front_end_model(_FRONT)
    with pytest.raises(CompileError, match="a run of the model makes 8 frames"):
        step_of(front, 1)
    assert_slides(step_of(front, 8), more=12)


def test_state_behind_the_window(tmp_path: Path) -> None:
    """Nobody knows what it would be if each window advanced it anew."""
    front = replace(_FRONT, frames=5, shape=None)
    path = tmp_path / "front.tflite"
    path.write_bytes(front_end_model(front))
    data = with_front_end(str(path), "n.tflite", network(40, front.scale, front.zero_point))
    with pytest.raises(CompileError, match="keeps state"):
        step_of(data, 1)
