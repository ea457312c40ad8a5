"""Front ends for audio: their tables, the model that `tinyfuse front-end` writes, and networks behind one, in one
file and one module, against TFLM's interpreter of each."""

from __future__ import annotations

import contextlib
import json
import shutil
import zlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from executors import assert_exact, assert_reference_is_tflm, plan_of
from stream_models import accumulator, add_handle, product
from tflite_builder import ModelBuilder
from tflite_mutations import mutants

import tinyfuse
from tinyfuse.audio.front_end import FrontEnd
from tinyfuse.audio.model import front_end_model
from tinyfuse.audio.tables import filter_tables, gain_table, hann_window, mel
from tinyfuse.cli.main import main
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.frontend.join import with_front_end
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.oracle import make_oracle

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

# --- tables ------------------------------------------------------------------------------------


def test_tables_are_those_of_audio_preprocessor() -> None:
    """The window, the gains and the filters that TFLM's tree has in audio_preprocessor_int8.tflite, by their CRC-32;
    its filters have alignment, so that bins and weights are compared without the zeros."""
    assert zlib.crc32(hann_window(480, 12).tobytes()) == 0x82BFB5E7
    assert zlib.crc32(gain_table(0.95, 80.0, 7, 21).tobytes()) == 0x46452314
    filters = filter_tables(257, 16000, 40, 125.0, 7500.0, 12)
    assert (filters.start, filters.end) == (5, 241)
    dense = np.zeros((2, 41, 257), np.int16)
    for channel, (begin, start, width) in enumerate(zip(filters.bins, filters.starts, filters.widths, strict=True)):
        for i in range(width):
            dense[0, channel, begin + i] += filters.weights[start + i]
            dense[1, channel, begin + i] += filters.unweights[start + i]
    assert zlib.crc32(dense.tobytes()) == 0xC0B4BCD4


def test_narrow_channels_without_bins_share_a_weight_of_zero() -> None:
    filters = filter_tables(33, 16000, 30, 125.0, 7500.0, 12)
    empty = filters.starts == 0
    assert empty.any() and filters.weights[0] == filters.unweights[0] == 0
    assert (filters.widths[empty] == 1).all() and (filters.bins[empty] == 0).all()
    assert float(mel(700.0)) == pytest.approx(1127 * np.log(2), abs=1e-4)


# --- the model ---------------------------------------------------------------------------------

_SMALL = FrontEnd(sample_rate=8000, window_ms=8, stride_ms=5, channels=8, frames=5, high=3000)
_MODELS = {
    "micro speech's": FrontEnd(frames=49),
    "small": _SMALL,
    "frames of a step": FrontEnd(window_ms=16, stride_ms=16, channels=20, scale=0.2, zero_point=3),
}


@pytest.mark.parametrize("name", _MODELS)
def test_reference_is_tflm(name: str) -> None:
    assert_reference_is_tflm(front_end_model(_MODELS[name]), 40)


def test_host() -> None:
    assert_exact(plan_of(front_end_model(_SMALL)), 60)


@emulated
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m55"])
def test_emulated(target: str) -> None:
    assert_exact(plan_of(front_end_model(_SMALL), target), 20)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (FrontEnd(window_ms=10, stride_ms=20), "--stride"),
        (FrontEnd(stride_ms=0), "--stride"),
        (FrontEnd(high=8000), "not below half of the sample rate"),
        (FrontEnd(low=300, high=200), "--low"),
        (FrontEnd(low=-1), "--low"),
        (FrontEnd(window_ms=1, stride_ms=1), "too short or too long"),
        (FrontEnd(frames=3, shape=(1, 2, 40)), "don't fit the shape"),
    ],
)
def test_numbers_that_no_front_end_can_have(wanted: FrontEnd, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        front_end_model(wanted)


# --- in front of a network ---------------------------------------------------------------------


def network(features: int, scale: float, zero_point: int, beside: bool = False, variable: str = "sum") -> bytes:
    """A layer over the features, joined with `beside`, another input, then a variable that sums up results."""
    model, rng = ModelBuilder(), np.random.default_rng(3)
    other = [model.tensor("other", (1, 4), scale=0.1, zero_point=1)] if beside else []
    x = model.tensor("features", (1, features), scale=scale, zero_point=zero_point)
    data = rng.integers(-127, 128, (4, features)).astype(np.int8)
    weights = model.tensor("weights", data.shape, scale=0.01, zero_point=0, data=data)
    bias = model.tensor(
        "bias", (4,), "int32", scale=product(scale, 0.01), zero_point=0, data=np.arange(4, dtype=np.int32)
    )
    scores, total = (model.tensor(name, (1, 4), scale=0.4, zero_point=2) for name in ("scores", "total"))
    model.op("FULLY_CONNECTED", [x, weights, bias], [scores])
    before = model.tensor("before", (1, 4), scale=0.4, zero_point=2)
    handle = add_handle(model, variable)
    model.op("READ_VARIABLE", [handle], [before])
    model.op("ADD", [scores, before], [total])
    model.op("ASSIGN_VARIABLE", [handle, total], [])
    outputs = [total]
    if beside:
        outputs.append(model.tensor("both", (1, 4), scale=0.4, zero_point=2))
        model.op("ADD", [total, *other], [outputs[-1]])
    return model.build([*other, x], outputs)


def files(folder: Path, front: bytes, behind: bytes) -> tuple[str, str]:
    (folder / "front.tflite").write_bytes(front)
    (folder / "network.tflite").write_bytes(behind)
    return str(folder / "front.tflite"), str(folder / "network.tflite")


def _speech(runs: int, samples: int) -> np.ndarray:
    """int16 [runs, samples]: tones of rising and falling pitch, with noise."""
    time = np.arange(runs * samples) / 8000
    tone = np.sin(2 * np.pi * (300 + 900 * np.sin(5 * time)) * time) * (1 + np.sin(9 * time)) * 6000
    noise = np.random.default_rng(1).normal(0, 200, time.size)
    return np.clip(tone + noise, -32768, 32767).astype(np.int16).reshape(runs, samples)


@pytest.mark.parametrize("beside", [False, True])
def test_one_file_computes_what_both_do_one_after_the_other(beside: bool, tmp_path: Path) -> None:
    """Every bit of what goes from the one to the other, and of what comes out."""
    front = front_end_model(_SMALL)
    behind = network(40, _SMALL.scale, _SMALL.zero_point, beside)
    joined = with_front_end(*files(tmp_path, front, behind))
    samples = _speech(50, 40)
    others = [np.full((1, 4), run, np.int8) for run in range(50)] if beside else []

    def outputs(data: bytes, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        return make_oracle("tflm", data, read_tflite("m.tflite", data)).run_streams([inputs])[0]

    features = [found for (found,) in outputs(front, [[run] for run in samples])]
    assert len({f.tobytes() for f in features}) > 40
    wanted = outputs(behind, [[*([others[r]] if beside else []), f] for r, f in enumerate(features)])
    found = outputs(joined, [[run, *([others[r]] if beside else [])] for r, run in enumerate(samples)])
    for one, both in zip(wanted, found, strict=True):
        assert [a.tobytes() for a in one] == [b.tobytes() for b in both]
    assert_reference_is_tflm(joined, 40)
    assert_exact(plan_of(joined), 40)


def _two_outputs() -> bytes:
    model = ModelBuilder()
    x, y, z = (model.tensor(name, (1, 4), scale=0.1, zero_point=0) for name in "xyz")
    model.op("RELU", [x], [y])
    model.op("RELU6", [x], [z])
    return model.build([x], [y, z])


def _passing() -> bytes:
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 40), scale=0.1, zero_point=0) for name in "xy")
    model.op("RELU", [x], [y])
    return model.build([x], [x])


@pytest.mark.parametrize(
    ("front", "behind", "message"),
    [
        (front_end_model(_SMALL), network(40, 0.2, -128), "quantized otherwise"),
        (front_end_model(_SMALL), network(40, _SMALL.scale, -127), "quantized otherwise"),
        (front_end_model(_SMALL), network(41, _SMALL.scale, -128), "is not an input of"),
        (front_end_model(_SMALL), network(40, _SMALL.scale, -128, variable="history"), "variables of the same name"),
        (_two_outputs(), network(4, 0.1, 0), "it has 2 outputs"),
        (_passing(), network(40, 0.1, 0), "its output is its input"),
        (b"no model", network(40, 0.1, 0), "not a .tflite|flatbuffer|TFL3|no TensorFlow"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(front: bytes, behind: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        with_front_end(*files(tmp_path, front, behind))
    assert all(problem.hint for problem in caught.value.problems)


def test_a_network_of_several_graphs_is_refused(tmp_path: Path) -> None:
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 9), scale=0.1, zero_point=0), model.tensor("y", (1, 6), scale=0.1, zero_point=-3)
    model.op("FULLY_CONNECTED", [x, model.tensor("w", (6, 9), scale=0.1, zero_point=0, data=np.ones((6, 9), np.int8))],
             [y])  # fmt: skip
    with pytest.raises(CompileError, match="several subgraphs"):
        with_front_end(*files(tmp_path, model.build([x], [y]), accumulator(True)))


def test_damaged_files_are_joined_or_refused(tmp_path: Path) -> None:
    """Damages both kinds of files: there is never a traceback, and a combined file can be read like any other."""
    front, behind = front_end_model(_SMALL), network(40, _SMALL.scale, _SMALL.zero_point)
    joined = read = 0
    for number, (one, other) in enumerate(zip(mutants(front, 1), islice(mutants(behind, 2), 400), strict=False)):
        pair = (one, behind) if number % 2 else (front, other)
        try:
            data = with_front_end(*files(tmp_path, *pair))
        except CompileError:
            continue
        joined += 1
        with contextlib.suppress(CompileError):
            read_tflite("joined.tflite", data)
            read += 1
    assert joined > 20 and read > 10


# --- commands ----------------------------------------------------------------------------------


def _shown(*arguments: object):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_commands(tmp_path: Path) -> None:
    """`front-end --for` makes what `--front-end` takes, in every command and in Python."""
    _, behind = files(tmp_path, b"", network(40, 0.125, 7))
    mel_file = tmp_path / "mel.tflite"
    numbers = ("--sample-rate", 8000, "--window", 8, "--stride", 5, "--channels", 8, "--high", 3000)
    made = _shown("front-end", "-o", mel_file, *numbers, "--for", behind)
    assert made.exit_code == 0 and "40 samples a run -> int8 1x40 (5 frames of 8 features), scale 0.125" in made.output
    report = _shown("report", behind, "--target", "cortex-m4", "--front-end", mel_file, "--json")
    assert report.exit_code == 0 and [i["dtype"] for i in json.loads(report.output)["inputs"]] == ["int16"]
    found = _shown("verify", behind, "--target", "host", "--front-end", mel_file, "--runs", 8, "--json")
    answer = json.loads(found.output)
    assert found.exit_code == 0 and answer["exact"] and f"--front-end {mel_file}" in answer["command"]
    written = _shown("gen", behind, "--target", "cortex-m4", "--front-end", mel_file, "-o", tmp_path / "net",
                     "--depfile", tmp_path / "net.d")  # fmt: skip
    assert written.exit_code == 0 and str(mel_file) in (tmp_path / "net.d").read_text()
    module = tinyfuse.compile(behind, "cortex-m4", front_end=mel_file)
    assert [port.dtype for port in module.inputs] == ["int16"]
    assert module.files()["network.c"] == (tmp_path / "net" / "network.c").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shape", "1,x"), "--shape 1,x"),
        (("--scale", "-1"), "positive"),
        (("--scale", "inf"), "not a finite number"),
        (("--high", "9000"), "--high"),
        (("--for", "missing.tflite"), "no such file"),
    ],
)
def test_a_wrong_option_is_told_and_writes_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    target = tmp_path / "mel.tflite"
    result = _shown("front-end", "-o", target, *arguments)
    assert result.exit_code == 2 and message in result.output and not target.exists()


@pytest.mark.parametrize(
    ("shape", "given", "made"),
    [
        ((1, 48, 20, 1), (), (48, 20)),  # 24 frames of the default's 40 features are as many
        ((1, 49, 10, 1), (), (49, 10)),
        ((1, 30, 1, 40), (), (30, 40)),
        ((1, 48, 20, 1), ("--frames", 48), (48, 20)),
        ((1, 48, 20, 1), ("--channels", 20), (48, 20)),
        ((1, 960), ("--channels", 20), (48, 20)),
        ((1, 960), ("--frames", 24), (24, 40)),
        ((1, 6, 8, 20), ("--channels", 20), (48, 20)),
        ((1, 960), (), "give --channels"),
        ((1, 6, 8, 20), (), "give --channels"),
        ((1, 48, 20, 1), ("--channels", 40), "48 frames of 20 would"),
        ((1, 48, 20, 1), ("--frames", 24), "48 frames of 20 would"),
        ((1, 48, 20, 1), ("--frames", 47), "48 frames of 20 would"),
        ((1, 960), ("--channels", 41), "--channels"),
        ((1, 6, 8, 20), ("--channels", 40), "--channels"),
    ],
)
def test_frames_and_channels_follow_from_the_network(
    shape: tuple[int, ...], given: tuple[object, ...], made: tuple[int, int] | str, tmp_path: Path
) -> None:
    """Tests `--for` and `--shape`: a reshape must never mix features of several frames."""
    model = ModelBuilder()
    x, y = (model.tensor(name, shape, scale=0.1, zero_point=0) for name in "xy")
    model.op("RELU", [x], [y])
    (tmp_path / "n.tflite").write_bytes(model.build([x], [y]))
    target = tmp_path / "mel.tflite"
    for source in (("--for", tmp_path / "n.tflite"), ("--shape", ",".join(map(str, shape)))):
        result = _shown("front-end", "-o", target, *given, *source, "--json")
        if isinstance(made, str):
            assert result.exit_code == 2 and made in json.loads(result.output)["error"]["message"]
            assert not target.exists()
        else:
            answer = json.loads(result.output)
            assert (answer["frames"], answer["channels"]) == made
