"""`tinyfuse run`: computes outputs with the generated code from the user's arrays."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_models import STREAM_MODELS
from tflite_builder import ModelBuilder

from tinyfuse.cli.main import main
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Tensor
from tinyfuse.run.arrays import read_inputs
from tinyfuse.verify.oracle import ReferenceOracle

SCALE, ZERO_POINT = 0.25, -3


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with one.tflite (x int8[1,2,3] -> RELU) and two.tflite (in/a, in/b -> two outputs)."""
    monkeypatch.chdir(tmp_path)
    model = ModelBuilder()
    x = model.tensor("x", (1, 2, 3), scale=SCALE, zero_point=ZERO_POINT)
    y = model.tensor("y", (1, 2, 3), scale=SCALE, zero_point=ZERO_POINT)
    model.op("RELU", [x], [y], table=False)
    Path("one.tflite").write_bytes(model.build([x], [y]))
    model = ModelBuilder()
    a, b, s = (model.tensor(n, (2, 4), scale=0.5, zero_point=z) for n, z in (("in/a", 1), ("in/b", -2), ("sum", 0)))
    real = model.tensor("file", (2, 4), "float32")  # a name that numpy's savez can't take
    model.op("ADD", [a, b], [s])
    model.op("DEQUANTIZE", [s], [real])
    Path("two.tflite").write_bytes(model.build([a, b], [s, real]))
    return tmp_path


def run(*arguments):
    command = ["run", *map(str, arguments)]
    if "--target" not in arguments:
        command += ["--target", "host"]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def json_of(*arguments) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def stored(shape, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("shape, runs", [((1, 2, 3), 1), ((2, 3), 1), ((5, 2, 3), 5), ((4, 1, 2, 3), 4)])
def test_integers_are_taken_as_they_are(shape, runs) -> None:
    values = stored(shape)
    np.save("x.npy", values.astype(np.int64))  # wider, but within the range
    data = json_of("one.tflite", "--input", "x.npy", "--output", "y.npy")
    y = np.load("y.npy")
    assert (y.shape, y.dtype) == ((runs, 2, 3), np.int8)
    np.testing.assert_array_equal(y, np.maximum(values, ZERO_POINT).reshape(runs, 2, 3))
    (output,) = data["outputs"]
    assert output["values"] == y.reshape(-1).tolist() and data["notes"] == [] and data["runs"] == runs
    assert (output["scale"], output["zero_point"], output["shape"]) == (SCALE, ZERO_POINT, [runs, 2, 3])


@pytest.mark.emulated
@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no compiler, or no QEMU"
)
def test_an_emulated_core_computes_the_same() -> None:
    a, b = stored((3, 2, 4), 1), stored((3, 2, 4), 2)
    np.savez("both.npz", **{"in/a": a, "in_b": b})  # the tensor's name, and the one in the C API
    result = run("two.tflite", "--target", "cortex-m4", "--input", "both.npz", "--output", "y.npz")
    assert result.exit_code == 0 and "instructions per inference" in result.stdout, result.output
    oracle = ReferenceOracle(read_tflite("two.tflite"))
    with np.load("y.npz") as outputs:
        for number in range(3):
            for found, wanted in zip(
                (outputs["sum"], outputs["file"]), oracle.run([a[number], b[number]]), strict=True
            ):
                np.testing.assert_array_equal(found[number], wanted)


def test_floats_are_quantized_with_the_models_parameters_and_it_is_said() -> None:
    # halves away from zero; 31.9 / 0.25 - 3 = 124.6; both ends saturate
    reals = np.array([[0.125, -0.125, 0.124], [31.9, 1000.0, -np.inf]])
    np.save("x.npy", reals)
    data = json_of("one.tflite", "--input", "x.npy")
    assert data["outputs"][0]["values"] == [-2, -3, -3, 125, 127, -3]
    (note,) = data["notes"]
    assert note == ("input 'x': float64 was quantized with scale 0.25, zero point -3; 2 of 6 values saturated")
    shown = run("one.tflite", "--input", "x.npy").stdout
    assert note in shown and "real value = 0.25 * (value +3)" in shown


def test_inputs_by_name_in_any_order() -> None:
    np.save("a=.npy", np.ones((2, 4), np.int8))
    np.save("b.npy", np.zeros((2, 4), np.int8))
    data = json_of("two.tflite", "--input", "in_b=b.npy", "--input", "in/a=a=.npy")
    assert data["outputs"][0]["values"] == [2] * 8  # 1 - 1, and 0 + 2
    assert data["outputs"][1]["values"] == [1.0] * 8


def test_runs_of_a_model_with_state_are_the_frames_of_a_stream() -> None:
    data = STREAM_MODELS["keyword spotter"]
    Path("spotter.tflite").write_bytes(data)
    graph = read_tflite("spotter.tflite", data)
    frames = [stored(graph.inputs[0].shape, seed) for seed in range(5)]
    for count in (1, 5):
        np.save("x.npy", np.concatenate(frames[:count]))
        data = json_of("spotter.tflite", "--input", "x.npy")
        (wanted,) = ReferenceOracle(graph).run_streams([[[frame] for frame in frames[:count]]])
        assert data["outputs"][0]["values"] == [v for (y,) in wanted for v in y.reshape(-1).tolist()]


def test_a_path_with_an_equals_sign_is_a_path() -> None:
    np.save("a=b.npy", stored((2, 3)))
    assert json_of("one.tflite", "--input", "a=b.npy")["runs"] == 1


def save(name: str, array) -> str:
    np.save(name, array)
    return name


def header_of_a_terabyte(name: str) -> str:
    save(name, np.zeros((2, 3), np.int8))
    data = Path(name).read_bytes()
    Path(name).write_bytes(data.replace(b"(2, 3), }" + b" " * 12, b"(1048576, 1048576), }"))
    return name


def bomb(name: str) -> str:
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        for _ in range(257):
            member.write(bytes(1 << 20))
    return name


WRONG = {
    "no file": (["one.tflite", "--input", "none.npy"], "none.npy: there is no such file"),
    "no array": (["one.tflite", "--input", "one.tflite"], "one.tflite is not a .npy or .npz file, which numpy.save"),
    "unknown name": (["one.tflite", "--input", "z=x.npy"], "has no input 'z'; its inputs are x (int8[1, 2, 3])"),
    "shape": (["one.tflite", "--input", "flat.npy"], "but the array has [6]; it may have [runs, 2, 3]"),
    "no runs": (["one.tflite", "--input", "empty.npy"], "but the array has [0, 2, 3]"),
    "runs": (["one.tflite", "--input", "many.npy"], "is for 262,145 runs, more than 262,144: split it"),
    "range": (["one.tflite", "--input", "wide.npy"], "is int8; the array's values go from 0 to 300"),
    "no sign": (["one.tflite", "--input", "pixels.npy"], "is int8, but the array is uint8: give array.astype(numpy.int8)"),
    "text": (["one.tflite", "--input", "text.npy"], "an array of <U1 cannot be converted"),
    "objects": (["one.tflite", "--input", "objects.npy"], "objects.npy is not a .npy"),
    "terabyte": (["one.tflite", "--input", "large.npy"], "large.npy is not a .npy"),
    "bomb": (["one.tflite", "--input", "bomb.npz"], "x.npy has more than 268,435,456 bytes"),
    "which input": (["two.tflite", "--input", "x.npy"], "say for which input, with NAME=FILE"),
    "missing input": (["two.tflite", "--input", "in/a=ab.npy"], "no --input for in_b; the model's inputs are"),
    "twice": (["two.tflite", "--input", "in/a=ab.npy", "--input", "in_a=ab.npy"], "'in/a' is given twice"),
    "runs differ": (["two.tflite", "--input", "in_a=ab.npy", "--input", "in_b=ab3.npy"], "numbers of runs ('in/a': 1"),
    "named npz": (["one.tflite", "--input", "x=ok.npz"], "names its arrays itself"),
    "output name": (["one.tflite", "--input", "x.npy", "--output", "y.txt"], "name a .npy or .npz"),
    "two outputs": (["two.tflite", "--input", "ok2.npz", "--output", "y.npy"], "has 2 outputs; name a .npz"),
    "output folder": (["one.tflite", "--input", "x.npy", "--output", "no/y.npy"], "can't write no/y.npy"),
    "no input": (["one.tflite"], "no --input for x"),
}  # fmt: skip


@pytest.mark.parametrize("arguments, message", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_said(arguments, message) -> None:
    save("x.npy", stored((2, 3)))
    save("flat.npy", np.zeros(6))
    save("empty.npy", np.zeros((0, 2, 3)))
    save("wide.npy", np.array([[0, 1, 2], [3, 4, 300]]))
    if "many.npy" in arguments:
        save("many.npy", np.zeros((262_145, 2, 3), np.int8))
    save("text.npy", np.array([["a"] * 3] * 2))
    save("objects.npy", np.array([[None] * 3] * 2))
    save("ab.npy", stored((2, 4)))
    save("ab3.npy", stored((3, 2, 4)))
    save("pixels.npy", np.zeros((2, 3), np.uint8))
    np.savez("ok.npz", x=stored((2, 3)))
    np.savez("ok2.npz", in_a=stored((2, 4)), in_b=stored((2, 4)))
    header_of_a_terabyte("large.npy")
    if "bomb.npz" in arguments:
        bomb("bomb.npz")
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


def test_json_is_what_the_docs_say() -> None:
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    keys = set()
    for title in ("Every answer about a model", "run"):
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for row in re.findall(r"^\| (`.*?) \|", section, re.M):
            keys |= set(re.findall(r"`(\w+)`", row))
    np.save("x.npy", stored((2, 3)))
    assert set(json_of("one.tflite", "--input", "x.npy")) == keys


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 300), change=st.binary(min_size=1, max_size=6), packed=st.booleans())
def test_damaged_arrays_are_refused_in_one_line(tmp_path_factory, at, change, packed) -> None:
    """The header may hold anything, because numpy reads it as Python source."""
    place = tmp_path_factory.mktemp("data") / ("x.npz" if packed else "x.npy")
    file = io.BytesIO()
    if packed:
        np.savez(file, x=stored((2, 2, 3)))
    else:
        np.save(file, stored((2, 2, 3)))
    data = bytearray(file.getvalue())
    data[at % len(data) : at % len(data) + len(change)] = change
    place.write_bytes(data)
    tensor = Tensor("x", (1, 2, 3), "int8")
    try:
        read_inputs((str(place),), (tensor,))
    except UsageError as error:
        assert "\n" not in str(error)
