"""`tinyfuse evaluate` and `Module.evaluate`: the generated code over a data set, every form of module."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from known_architectures import mobilenet_v2, two_inputs
from nchw_networks import planes
from random_graphs import Sketch
from signal_models import windows
from sliding_models import padded, wake_word
from stream_models import STREAM_MODELS
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.evaluate import evaluation
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.html_report.pictures import picture_of, png_uri
from tinyfuse.verify.oracle import ReferenceOracle

needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no compiler, or no QEMU"
)
CLASSES = 4


def small(seed: int = 3) -> bytes:
    s = Sketch(seed)
    image = s.value((1, 9, 8, 3), name="image")
    x = s.conv(s.conv(image, 6, (3, 3), (2, 2), activation="RELU"), 8, (1, 1))
    return s.build([image], [s.softmax(s.fully_connected(s.mean(x), CLASSES))])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with m.tflite, 40 samples x.npy for it, and labels y.npy, most of which are its best classes."""
    monkeypatch.chdir(tmp_path)
    data = small()
    Path("m.tflite").write_bytes(data)
    x = drawn(data, 40)["image"]
    y = outputs_of(data, {"image": x})[0].reshape(40, -1).argmax(axis=1)
    y[::7] = (y[::7] + 1) % CLASSES
    np.save("x.npy", x)
    np.save("y.npy", y)
    return tmp_path


def drawn(data: bytes, count: int, frames: int | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """Random samples for every input of a model."""
    rng, found = np.random.default_rng(seed), {}
    for tensor in read_tflite("m.tflite", data).inputs:
        shape = (count, *([] if frames is None else [frames]), *tensor.shape)
        if tensor.dtype == "float32":
            found[tensor.name] = rng.normal(size=shape).astype(np.float32)
        else:
            info = np.iinfo(tensor.dtype)
            found[tensor.name] = rng.integers(info.min, info.max + 1, shape).astype(tensor.dtype)
    return found


def outputs_of(data: bytes, samples: dict[str, np.ndarray], frames: int | None = None) -> list[np.ndarray]:
    """By our references: the outputs of each sample's last inference."""
    graph = read_tflite("m.tflite", data)
    arrays = [samples[tensor.name] for tensor in graph.inputs]
    streams = [
        [[a[i, f] if frames else a[i] for a in arrays] for f in range(frames or 1)] for i in range(len(arrays[0]))
    ]
    return [np.stack(o) for o in zip(*(s[-1] for s in ReferenceOracle(graph).run_streams(streams)), strict=True)]


def run(*arguments):
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)], catch_exceptions=False)


def json_of(*arguments, code: int = 0) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


GIVEN = ("m.tflite", "--data", "x.npy", "--labels", "y.npy")


# --- figures -------------------------------------------------------------------------------------


def test_the_score_is_that_of_the_models_outputs() -> None:
    x, y = np.load("x.npy"), np.load("y.npy")
    data = json_of(*GIVEN)
    predicted = outputs_of(small(), {"image": x})[0].reshape(40, -1).argmax(axis=1)
    right = (predicted == y).mean()
    assert data["score"]["value"] == data["interpreter"]["value"] == right and 0 < right < 1
    assert data["exact"] and not data["faulty"] and data["passed"] and data["differing"] == 0
    assert data["score"]["low"] < right < data["score"]["high"] and data["samples"] == 40
    assert np.trace(data["confusion"]) == (predicted == y).sum() and np.sum(data["confusion"]) == 40
    assert {m["sample"] for m in data["mistakes"]} == set(np.flatnonzero(predicted != y).tolist())
    assert (data["emulator"], data["compiler_opt"], data["target"]) == ("host", "O2", "host")
    shown = run(*GIVEN).stdout
    assert f"{right:.2%}" in shown and "every output byte equal" in shown


def test_a_bound_is_an_exit_code() -> None:
    value = json_of(*GIVEN)["score"]["value"]
    assert json_of(*GIVEN, "--at-least", value)["passed"]
    assert not json_of(*GIVEN, "--at-least", value + 0.01, code=1)["passed"]
    assert "FAILED: top1" in run(*GIVEN, "--at-least", "1").stdout
    assert "a number from 0 to 1" in run(*GIVEN, "--at-least", "90").stderr
    assert "also give one" in run(*GIVEN, "--emulator", "qemu").stderr
    result = run(*GIVEN, "--metric", "mae", "--at-least", "0.5")
    assert result.exit_code == 2


@pytest.mark.parametrize("metric", ["top2", "auc", "map"])
def test_other_metrics(metric) -> None:
    data = json_of(*GIVEN, "--metric", metric)
    assert data["score"] == data["interpreter"] and 0 < data["score"]["value"] <= 1
    assert bool(data["classes"]) == (metric == "top2")


def test_errors_of_regressions_and_functions_of_users() -> None:
    real = outputs_of(small(), {"image": np.load("x.npy")})[0].reshape(40, -1) * np.float32(1 / 256) + 0.5
    np.save("t.npy", real + 0.25)
    given = ("m.tflite", "--data", "x.npy", "--labels", "t.npy")
    assert json_of(*given, "--metric", "mae")["score"]["value"] == pytest.approx(0.25)
    assert json_of(*given, "--metric", "mae", "--at-most", "0.1", code=1)["passed"] is False
    Path("m.py").write_text("def worst(outputs, labels):\n    (y,) = outputs.values()\n"
                            "    return abs(y.reshape(labels.shape) - labels).max(1)\n")  # fmt: skip
    assert json_of(*given, "--metric", "m.py:worst")["score"]["value"] == pytest.approx(0.25)


def test_a_difference_from_the_interpreter_is_a_fault(monkeypatch) -> None:
    wrong = evaluation.NativeModule.run

    def spoiled(self, inputs):
        found = wrong(self, inputs)
        found[0][11] ^= 1
        return found

    monkeypatch.setattr(evaluation.NativeModule, "run", spoiled)
    data = json_of(*GIVEN, code=1)
    assert (data["faulty"], data["exact"], data["differing"], data["first_difference"]) == (True, False, 1, 11)
    assert "DIFFERS: 1 samples" in run(*GIVEN).stdout


# --- every form of module ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {}, {"fusion": "none"}, {"feed_rows": True}, {"weights_blob": True}, {"step": True}, {"optimize": "ram"},
        {"memory": ["sdram=64K:slow:ram", "dtcm=800"]}, {"memory": ["flash=64K:slow:flash", "dtcm=64K"], "fusion": "none"},
    ],
    ids=str,
)  # fmt: skip
def test_forms_of_modules(options) -> None:
    found = tinyfuse.compile("m.tflite", "cortex-m4", **options).evaluate("x.npy", "y.npy")
    assert found.exact and found.score == found.interpreter and found.samples == 40


def test_several_inputs_and_outputs() -> None:
    data = two_inputs()
    samples, graph = drawn(data, 6), read_tflite("m.tflite", data)
    labels = outputs_of(data, samples)[0].reshape(6, -1).argmax(axis=1)
    found = tinyfuse.compile(data, "cortex-m4").evaluate(samples, labels)
    assert found.exact and found.score.value == 1.0
    with pytest.raises(tinyfuse.UsageError, match="no data for"):
        tinyfuse.compile(data, "cortex-m4").evaluate({graph.inputs[0].name: samples[graph.inputs[0].name]}, labels)
    with pytest.raises(tinyfuse.UsageError, match="--scores nothing: the model's outputs are"):
        tinyfuse.compile(data, "cortex-m4").evaluate(samples, labels, scores="nothing")


@pytest.mark.parametrize("frames", [None, 1, 5])
@pytest.mark.parametrize("name", ["keyword spotter", "accumulator from values", "streaming convolutions"])
def test_a_sample_of_a_model_with_state_is_a_stream(name, frames) -> None:
    """The state is reset before each sample; the last frame's outputs count."""
    data = STREAM_MODELS[name]
    samples = drawn(data, 5, frames)
    wanted = outputs_of(data, samples, frames)[0].reshape(5, -1)
    function = Path("m.py")
    np.save("wanted.npy", wanted)
    quantized = read_tflite("m.tflite", data).outputs[0]
    function.write_text(
        "import numpy as np\n"
        "def differing(outputs, labels):\n"
        f"    real = np.float32({quantized.scale!r} * (np.load('wanted.npy').astype(float) - {quantized.zero_point}))\n"
        "    return float((next(iter(outputs.values())).reshape(real.shape) != real).sum())\n"
    )
    found = tinyfuse.compile(data, "cortex-m4").evaluate(samples, [0] * 5, metric="m.py:differing")
    assert found.exact and found.score.value == found.interpreter.value == 0


@pytest.mark.parametrize("step, feed_rows", [(1, False), (3, False), (2, True)])
@pytest.mark.parametrize("data", [padded(), wake_word()], ids=["padded", "wake word"])
def test_a_sliding_window_is_filled_for_each_sample(data, step, feed_rows) -> None:
    samples = drawn(data, 6)
    labels = outputs_of(data, samples)[0].reshape(6, -1).argmax(axis=1)
    found = tinyfuse.compile(data, "cortex-m4", slide=step, feed_rows=feed_rows).evaluate(samples, labels)
    assert found.exact and found.score.value == 1.0


def test_a_window_that_the_model_keeps_itself() -> None:
    data = STREAM_MODELS["streaming convolutions"]
    module = tinyfuse.compile(data, "cortex-m4", slide=1)
    frames = 24
    samples = drawn(data, 3, frames)
    labels = outputs_of(data, samples, frames)[0].reshape(3, -1).argmax(axis=1)
    found = module.evaluate(samples, labels)
    assert found.exact and found.score.value == 1.0
    with pytest.raises(tinyfuse.UsageError, match="has no result before"):
        module.evaluate(drawn(data, 3, 1), labels)


def test_float_models_and_other_dtypes() -> None:
    for s in (Sketch(5, dtype="float32"), Sketch(6, dtype="int16")):
        x = s.value((1, 6, 5, 3), name="x")
        data = s.build([x], [s.fully_connected(s.conv(x, 4, (3, 3)), 3)])
        samples = drawn(data, 7)
        labels = outputs_of(data, samples)[0].reshape(7, -1).argmax(axis=1)
        found = tinyfuse.compile(data, "cortex-m4").evaluate(samples["x"], labels)
        assert found.exact and found.score.value == 1.0


def test_floats_of_libm_may_differ_and_it_is_told() -> None:
    """softmax and logistic: bits that no standard defines."""
    s = Sketch(5, dtype="float32")
    x = s.value((1, 6, 5, 3), name="x")
    data = s.build([x], [s.softmax(s.fully_connected(s.unary(s.conv(x, 4, (3, 3)), "LOGISTIC"), 3))])
    found = tinyfuse.compile(data, "cortex-m4").evaluate(drawn(data, 100), [0, 1] * 50)
    assert not found.faulty and found.exact == (found.differing == 0)
    assert any("functions of libm" in warning for warning in found.warnings) != found.exact


def test_pictures_in_a_folder_for_each_class() -> None:
    images = pytest.importorskip("PIL.Image")
    x, y = np.load("x.npy"), np.load("y.npy")
    order = sorted(range(40), key=lambda i: (y[i], i))
    for i in range(40):
        place = Path("set", f"class {y[i]}", f"{i:02}.png")
        place.parent.mkdir(parents=True, exist_ok=True)
        images.fromarray((x[i, 0].astype(np.int16) + 128).astype(np.uint8)).save(place)
    Path("names.txt").write_text("\n".join(f"class {c}" for c in range(CLASSES)))
    given = ("m.tflite", "--data", "set", "--labels", "set", "--classes", "names.txt")
    data, plain = json_of(*given), json_of(*GIVEN)
    assert data["score"] == plain["score"] and data["confusion"] == plain["confusion"]
    assert {order[m["sample"]] for m in data["mistakes"]} == {m["sample"] for m in plain["mistakes"]}
    assert "two different numbers" in run(*given, "--values", "1,1").stderr
    assert any("was quantized" in note for note in json_of(*given, "--values", "-1,1")["notes"])


@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("name", ["small", "keyword spotter"])
def test_an_emulated_core_gives_the_same(name) -> None:
    data = small() if name == "small" else STREAM_MODELS[name]
    frames = None if name == "small" else 3
    samples = drawn(data, 7, frames)
    labels = outputs_of(data, samples, frames)[0].reshape(7, -1).argmax(axis=1)
    labels[3] = (labels[3] + 1) % 2
    module = tinyfuse.compile(data, "cortex-m4", kernels="tinyfuse")
    native, emulated = (module.evaluate(samples, labels, emulator=emulator) for emulator in ("host", "qemu"))
    assert emulated.exact and emulated.score == native.score and emulated.confusion == native.confusion
    assert emulated.emulator.startswith("qemu") and "arm-none-eabi-gcc" in emulated.compiler


# --- the float model -----------------------------------------------------------------------------


def pair_of_models() -> tuple[bytes, bytes]:
    """A dense layer in int8 and in float32, whose weights and inputs are powers of two: nothing is rounded."""
    weights = np.random.default_rng(0).integers(-3, 4, (3, 6))
    model = ModelBuilder()
    x = model.tensor("x", (1, 6), scale=0.25, zero_point=0)
    w = model.tensor("w", (3, 6), scale=0.5, zero_point=0, data=weights.astype(np.int8))
    b = model.tensor("b", (3,), "int32", scale=0.125, zero_point=0, data=np.zeros(3, np.int32))
    y = model.tensor("y", (1, 3), scale=4.0, zero_point=0)
    model.op("FULLY_CONNECTED", [x, w, b], [y])
    quantized = model.build([x], [y])
    model = ModelBuilder()
    x = model.tensor("x", (1, 6), "float32")
    w = model.tensor("w", (3, 6), "float32", data=(weights * 0.5).astype(np.float32))
    b = model.tensor("b", (3,), "float32", data=np.zeros(3, np.float32))
    y = model.tensor("y", (1, 3), "float32")
    model.op("FULLY_CONNECTED", [x, w, b], [y])
    return quantized, model.build([x], [y])


def test_the_float_model_is_evaluated_beside_it() -> None:
    pytest.importorskip("ai_edge_litert")
    quantized, real = pair_of_models()
    Path("q.tflite").write_bytes(quantized)
    Path("f.tflite").write_bytes(real)
    x = (np.random.default_rng(1).integers(-100, 100, (50, 6)) * 0.25).astype(np.float32)
    weights = np.random.default_rng(0).integers(-3, 4, (3, 6)) * 0.5
    np.save("x.npy", x)
    np.save("y.npy", (x @ weights.T).argmax(axis=1))
    data = json_of("q.tflite", "--data", "x.npy", "--labels", "y.npy", "--float", "f.tflite")
    assert data["float_model"]["value"] == 1.0 and data["float_by"].startswith("litert")
    assert data["score"]["value"] == data["agreement"] < 1.0  # outputs of steps of 4 tie
    assert (
        "same best class for" in run("q.tflite", "--data", "x.npy", "--labels", "y.npy", "--float", "f.tflite").stdout
    )
    for path, told in (("q.tflite", "not float32"), ("m.tflite", "not float32"), ("y.npy", "not a TensorFlow Lite")):
        result = run("q.tflite", "--data", "x.npy", "--labels", "y.npy", "--float", path)
        assert result.exit_code == 2 and told in result.stderr, result.stderr


def test_data_have_the_layout_of_the_modules_inputs() -> None:
    """A model of planes whose module has channels last, beside itself as the float model."""
    pytest.importorskip("ai_edge_litert")
    data = planes("float32")
    Path("p.tflite").write_bytes(data)
    (name, of_file), *_ = drawn(data, 5).items()
    wanted = outputs_of(data, {name: of_file})[0]
    module = tinyfuse.compile("p.tflite", "host", input_layout="nhwc", output_layout="nhwc")
    assert module.inputs[0].shape != of_file.shape[1:] and module.outputs[0].shape != wanted.shape[1:]
    samples, labels = np.moveaxis(of_file, 2, -1), np.moveaxis(wanted, 2, -1).reshape(5, -1)
    found = module.evaluate(samples, labels, metric="mae", float_model="p.tflite")
    assert found.exact and found.score.value == 0 and found.float_model.value < 1e-5 * np.abs(wanted).max()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels, told",
    [
        (np.zeros(39, int), "39 labels for 40 samples"),
        (np.arange(40) % 5, "the label of sample 4 is class 4, but the output has 4 classes"),
        (np.full(40, np.nan), "the label of sample 0 is NaN"),
        (np.array(["a"] * 40, object), "Python objects"),
    ],
    ids=["short", "classes", "nan", "objects"],
)
def test_labels_that_do_not_fit(labels, told) -> None:
    np.save("y.npy", labels, allow_pickle=True)
    result = run(*GIVEN)
    assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1


def test_data_that_do_not_fit() -> None:
    for x, told in (
        (np.full((40, 9, 8, 3), np.nan), "sample 0 of the input 'image' has NaN"),
        (np.zeros((40, 3, 9, 8), np.int8), "numpy.moveaxis(array, 1, -1)"),
        (np.zeros((40, 9, 8, 3), np.uint8), "the array is uint8"),
    ):
        np.save("x.npy", x)
        result = run(*GIVEN)
        assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1


def test_what_is_doubtful_is_a_warning() -> None:
    np.save("y.npy", np.full(40, 2))
    np.save("x.npy", np.linspace(0, 255, 40 * 9 * 8 * 3, dtype=np.float32).reshape(40, 9, 8, 3))
    data = json_of(*GIVEN)
    assert any("every label is class 2" in warning for warning in data["warnings"])
    assert any("values from 0 to 255" in warning for warning in data["warnings"])
    assert any("was quantized with scale" in note for note in data["notes"]) and data["saturated"] > 0
    assert "all labels are of one class" in run(*GIVEN, "--metric", "auc").stderr


def test_names_of_classes() -> None:
    names = ["zebra", "ape", "cat", "dog"]
    Path("y.txt").write_text("\n".join(names[label] for label in np.load("y.npy")))
    given = ("m.tflite", "--data", "x.npy", "--labels", "y.txt")
    plain = json_of(*GIVEN)
    alphabetic = json_of(*given)
    assert any("numbered by the alphabet, " in warning for warning in alphabetic["warnings"])
    Path("names.txt").write_text("\n".join(names))
    named = json_of(*given, "--classes", "names.txt")
    assert named["score"] == plain["score"] and named["confusion"] == plain["confusion"]
    assert [c["name"] for c in named["classes"]] == names and not named["warnings"]
    Path("names.txt").write_text("a\nb\nc\nd")
    assert "the label 'zebra' is none of the classes 'a', 'b', 'c', 'd'" in run(*given, "--classes", "names.txt").stderr


def test_a_model_that_waits_needs_frames() -> None:
    data = windows()
    module = tinyfuse.compile(data, "cortex-m4", kernels="tinyfuse")
    with pytest.raises(tinyfuse.UsageError, match="the model waits for more frames than a sample has"):
        module.evaluate(drawn(data, 2, 1), [0, 0])
    frames = 12
    samples = drawn(data, 3, frames)
    labels = outputs_of(data, samples, frames)[0].reshape(3, -1).argmax(axis=1)
    found = module.evaluate(samples, labels)
    assert found.exact and found.score.value == 1.0


# --- page, Python, memory ------------------------------------------------------------------------

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e&"


def test_the_page_holds_figures_and_no_markup_of_names() -> None:
    Path("names.txt").write_text(f"{HOSTILE}\nb\nc\nd", encoding="utf-8")
    result = run(*GIVEN, "--html", "page.html", "--classes", "names.txt")
    assert result.exit_code == 0 and "wrote page.html" in result.stdout, result.output
    page = Path("page.html").read_text()
    assert "<script" not in page and "<img src=x" not in page and "\u202e" not in page
    assert "Confusion matrix" in page and "data:image/png;base64," in page and "95 % confidence" in page
    assert page.count("<figure>") == len(json_of(*GIVEN)["mistakes"])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "style=" not in page
    run(*GIVEN, "--html", "again.html", "--classes", "names.txt")
    assert Path("again.html").read_text() == page


def test_pictures_of_inputs() -> None:
    assert picture_of(np.zeros((1, 5))) is None
    gray = picture_of(np.arange(12.0).reshape(1, 3, 4, 1))
    assert gray.dtype == np.uint8 and gray.shape == (3, 4) and (gray.min(), gray.max()) == (0, 255)
    assert picture_of(np.ones((1, 3, 4, 3))).tolist() == np.zeros((3, 4, 3)).tolist()
    assert picture_of(np.zeros((1, 500, 4, 1))).shape[0] <= 192
    images = pytest.importorskip("PIL.Image")
    import base64
    import io

    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    with images.open(io.BytesIO(base64.b64decode(png_uri(pixels).partition(",")[2]))) as image:
        np.testing.assert_array_equal(np.asarray(image), pixels)


def test_the_same_from_python_and_it_can_be_pickled() -> None:
    lines = []
    module = tinyfuse.compile("m.tflite", "host")
    found = module.evaluate(np.load("x.npy"), np.load("y.npy").tolist(), at_least=0.99, on_progress=lines.append)
    data = json_of(*GIVEN)
    assert (found.score.value, found.metric) == (data["score"]["value"], "top1") and not found.passed
    assert pickle.loads(pickle.dumps(found)) == found and any("of 40 samples" in line for line in lines)
    with pytest.raises(tinyfuse.UsageError, match="emulator"):
        module.evaluate("x.npy", "y.npy", emulator="none")


def test_hundreds_of_samples_in_several_batches(monkeypatch) -> None:
    """The score of the generated code is the interpreter's, over more samples than a batch has."""
    monkeypatch.setattr(evaluation, "_MOST_SAMPLES", 64)
    data = mobilenet_v2()
    samples = drawn(data, 300)
    labels = np.random.default_rng(3).integers(0, 2, 300)
    found = tinyfuse.compile(data, "cortex-m4").evaluate(samples, labels)
    assert found.exact and found.score == found.interpreter and sum(map(sum, found.confusion)) == 300


@pytest.mark.campaign
def test_ten_thousand_samples() -> None:
    for data in (mobilenet_v2(), padded(), small()):
        samples = drawn(data, 10_000)
        labels = np.random.default_rng(3).integers(0, 2, 10_000)
        found = tinyfuse.compile(data, "cortex-m4").evaluate(samples, labels)
        assert found.exact and found.differing == 0 and found.score == found.interpreter and found.samples == 10_000
