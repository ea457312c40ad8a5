"""Data sets: every way to give samples, what is refused, and that nothing is read whole."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.labels import read_labels
from tinyfuse.data.samples import open_samples
from tinyfuse.errors import TinyfuseError, ToolMissing, UsageError

IMAGE = InputSpec("in/x", "in_x", (1, 4, 3, 2), "int8", 0.5, -3)
REAL = InputSpec("x", "x", (1, 4, 3, 2), "float32")
VECTOR = InputSpec("v", "v", (1, 5), "int16", 0.25, 0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(paths, inputs=(IMAGE,), size=3, **how):
    batches = [batch.stored for batch in open_samples(paths, inputs, **how).batches(size)]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def refused(paths, inputs=(IMAGE,), **how) -> str:
    def read_all():
        for batch in open_samples(paths, inputs, **how).batches(3):
            assert batch.stored and batch.real

    with pytest.raises(UsageError) as caught:
        read_all()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def numbers(count, shape=(4, 3, 2), seed=0, dtype=np.int8):
    return np.random.default_rng(seed).integers(-100, 100, (count, *shape)).astype(dtype)


# --- every form ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 9),
    size=st.integers(1, 10),
    shape=st.sampled_from([(4, 3, 2), (1, 4, 3, 2), (4, 1, 3, 2), (24,), (4, 3, 2, 1)]),
    order=st.sampled_from("CF"),
    dtype=st.sampled_from(["int8", "int16", ">i4", "int64"]),
    form=st.sampled_from(["npy", "npz", "packed", "folder", "csv"]),
)
def test_every_form_gives_the_samples_in_batches(tmp_path_factory, count, size, shape, order, dtype, form) -> None:
    place = tmp_path_factory.mktemp("data")
    array = np.asarray(numbers(count, shape, dtype=dtype), order=order)
    path = place / f"x.{form}"
    if form == "npy":
        np.save(path, array)
    elif form in ("npz", "packed"):
        path = place / "x.npz"
        (np.savez if form == "npz" else np.savez_compressed)(path, in_x=np.ascontiguousarray(array))
    elif form == "folder":
        path.mkdir()
        for number in range(count):
            np.save(path / f"{number:03}.npy", array[number])
    else:
        np.savetxt(path, array.reshape(count, -1), delimiter=",", fmt="%d")
    samples = open_samples(str(path), [IMAGE])
    assert len(samples) == count and samples.frames is None
    batches = list(samples.batches(size))
    assert [b.start for b in batches] == list(range(0, count, size)) and sum(b.count for b in batches) == count
    found = np.concatenate([b.stored["in/x"] for b in batches])
    assert found.dtype == np.int8 and found.shape == (count, 1, 4, 3, 2)
    np.testing.assert_array_equal(found.reshape(count, -1), array.reshape(count, -1))


def test_inputs_by_name() -> None:
    x, v = numbers(4), numbers(4, (5,), dtype=np.int16)
    np.save("x.npy", x)
    np.save("v=.npy", v)
    np.savez("both.npz", in_x=x, v=v)
    for paths in (["in/x=x.npy", "v=v=.npy"], ["both.npz"], {"v": Path("v=.npy"), "in_x": Path("x.npy")}):
        found = stored(paths, (IMAGE, VECTOR))
        np.testing.assert_array_equal(found["in/x"][:, 0], x)
        np.testing.assert_array_equal(found["v"][:, 0], v)
    assert "write NAME=FILE with the input's name" in refused(["x.npy"], (IMAGE, VECTOR))
    assert "no data for v" in refused(["in_x=x.npy"], (IMAGE, VECTOR))
    assert "given twice" in refused(["in_x=x.npy", "in/x=x.npy"])
    np.save("v.npy", v[:3])
    assert "different numbers of samples ('in/x': 4, 'v': 3)" in refused(["in_x=x.npy", "v=v.npy"], (IMAGE, VECTOR))


def test_limit_and_usual_batches() -> None:
    np.save("x.npy", numbers(10))
    samples = open_samples("x.npy", [IMAGE])
    assert [b.count for b in samples.batches(4, limit=6)] == [4, 2]
    assert [b.count for b in samples.batches()] == [10] and samples.batch_size > 1000


def test_frames_of_streams() -> None:
    array = numbers(3, (7, 5), dtype=np.int16)
    np.save("x.npy", array)
    assert "give [samples, 5]" in refused("x.npy", (VECTOR,))
    samples = open_samples("x.npy", [VECTOR], streams=True)
    assert (len(samples), samples.frames) == (3, 7)
    (batch,) = samples.batches()
    np.testing.assert_array_equal(batch.stored["v"], array.reshape(3, 7, 1, 5))


# --- numbers -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    reals=hnp.arrays(np.float32, (6, 5), elements=st.floats(-(2.0**127), 2.0**127, width=32)),
    scale=st.floats(2**-20, 2**10, width=32),
    dtype=st.sampled_from(["int8", "uint8", "int16"]),
    zero=st.integers(0, 100),
)
def test_floats_are_quantized_as_the_headers_helper_does(tmp_path_factory, reals, scale, dtype, zero) -> None:
    """value / scale in float32, halves away from zero, plus zero point, saturated."""
    path = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(path, reals)
    (batch,) = open_samples(path, [InputSpec("v", "v", (1, 5), dtype, scale, zero)]).batches()
    with np.errstate(over="ignore"):
        quotient = np.clip((reals / np.float32(scale)).astype(np.float64), -65536, 65536)
    whole = np.trunc(quotient)
    whole += np.where(np.abs(quotient - whole) >= 0.5, np.sign(quotient), 0)
    info = np.iinfo(dtype)
    np.testing.assert_array_equal(batch.stored["v"][:, 0], np.clip(whole + zero, info.min, info.max))
    np.testing.assert_array_equal(batch.real["v"][:, 0], reals)


def test_integers_become_real_numbers_for_a_float_model() -> None:
    np.save("x.npy", numbers(4))
    (batch,) = open_samples("x.npy", [IMAGE]).batches()
    np.testing.assert_array_equal(batch.real["in/x"][:, 0], 0.5 * (numbers(4).astype(np.float32) + 3))
    (batch,) = open_samples("x.npy", [REAL]).batches()
    assert batch.stored["x"].dtype == np.float32
    np.testing.assert_array_equal(batch.stored["x"][:, 0], numbers(4))


def test_saturated_numbers_are_counted() -> None:
    np.save("x.npy", np.array([[0, 1, 8191.75, 8192, -9000]], np.float32))
    (batch,) = open_samples("x.npy", [VECTOR]).batches()
    assert batch.saturated == 2


def test_bytes_stand_for_values_that_are_said() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(1, 4, 3, 2) * 11
    np.save("x.npy", pixels)
    assert "(array ^ 128).view" in refused("x.npy")
    (batch,) = open_samples("x.npy", [REAL], values=(-1.0, 1.0)).batches()
    wanted = (-1 + pixels * (2 / 255)).astype(np.float32)
    np.testing.assert_array_equal(batch.stored["x"], wanted[:, None])
    spec = InputSpec("x", "x", (1, 4, 3, 2), "int8", 1 / 127.5, 0)
    (batch,) = open_samples("x.npy", [spec], values=(-1.0, 1.0)).batches()
    assert (batch.stored["x"].min(), batch.stored["x"].max()) == (-127, 125)  # float32 divides to -127.49999
    np.testing.assert_array_equal(batch.real["x"], wanted[:, None])


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("bad, told", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_no_number_is_told_with_its_place(bad, told) -> None:
    array = np.zeros((7, 4, 3, 2), np.float32)
    array[5, 1, 2, 0] = bad
    np.save("x.npy", array)
    assert refused("x.npy") == f"sample 5 of the input 'in/x' has {told} at [0, 1, 2, 0]"


def test_shapes_that_do_not_fit() -> None:
    np.save("x.npy", numbers(7, (4, 3)))
    assert (
        "the input 'in/x' has the shape [1, 4, 3, 2], but the array has [7, 4, 3]; give [samples, 4, 3, 2]"
        in refused("x.npy")
    )
    np.save("x.npy", numbers(7, (2, 4, 3)))
    assert "numpy.moveaxis(array, 1, -1)" in refused("x.npy")
    np.save("x.npy", numbers(0))
    assert "there are no samples" in refused("x.npy")
    Path("x.csv").write_text("1,2,3,4,5\n1,2,3,4\n")
    assert "line 2 has 4 fields, but a sample has 5 numbers" in refused("x.csv", (VECTOR,))
    Path("x.csv").write_text("a,b,c,d,e\n1,2,3,4,5\n")
    assert stored("x.csv", (VECTOR,))["v"].tolist() == [[[1, 2, 3, 4, 5]]]
    Path("x.csv").write_text("1,2,3,4,5,0\n")
    assert "put the labels into a file of their own" in refused("x.csv", (VECTOR,))
    Path("x.csv").write_text("1,2,3,4,5\n1,2,3,4,x\n")
    assert "line 2: 'x' is not a number" in refused("x.csv", (VECTOR,))


def test_dtypes_that_do_not_fit() -> None:
    np.save("x.npy", numbers(2).astype(np.int16) * 100)
    assert "is int8; the array's values go from" in refused("x.npy")
    for dtype in (np.complex64, np.longdouble, "S4", "datetime64[s]", [("a", "i4")]):
        np.save("x.npy", np.zeros((2, 4, 3, 2), dtype))
        assert "give integers or floats" in refused("x.npy")
    plain = InputSpec("x", "x", (1, 5), "int32")
    np.save("x.npy", np.zeros((2, 5), np.float32))
    assert "int32 without a scale" in refused("x.npy", (plain,))


class Harmful:
    def __reduce__(self):
        return (Path("harmed").touch, ())


def test_nothing_is_unpickled() -> None:
    array = np.empty((2, 4, 3, 2), object)
    array[:] = Harmful()
    np.save("x.npy", array, allow_pickle=True)
    np.savez("x.npz", in_x=array)
    for path in ("x.npy", "x.npz"):
        assert "Python objects" in refused(path)
    with pytest.raises(UsageError, match="Python objects"):
        read_labels("x.npy")
    assert not Path("harmed").exists()


def test_files_that_are_not_there_or_no_data() -> None:
    Path("folder").mkdir()
    Path("x.bin").write_bytes(b"abc")
    Path("x.npy").write_bytes(b"abc")
    Path("x.npz").write_bytes(b"abc")
    for path, told in (
        ("no.npy", "there is no such file"), ("folder", "the folder has no files"),
        ("x.bin", "a file's name must end in .npy"), ("x.npy", "not a .npy file"), ("x.npz", "not a .npz file"),
        ("/dev/zero", "not a regular file"),
    ):  # fmt: skip
        assert told in refused(path)
    with pytest.raises(UsageError, match="no inputs"):
        open_samples("x.npy", [])


@settings(max_examples=300, deadline=None)
@given(
    at=st.integers(0, 2000), change=st.binary(min_size=1, max_size=8), cut=st.integers(0, 400), form=st.integers(0, 3)
)
def test_damaged_files_are_refused_or_read(tmp_path_factory, at, change, cut, form) -> None:
    """Never a traceback, whatever the bytes are."""
    place = tmp_path_factory.mktemp("data")
    name = ("x.npy", "x.npz", "x.csv", "p.npz")[form]
    file = io.BytesIO()
    if form == 0:
        np.save(file, numbers(20))
    elif form == 2:
        np.savetxt(file, numbers(9).reshape(9, -1), delimiter=",")
    else:
        (np.savez if form == 1 else np.savez_compressed)(file, in_x=numbers(20))
    data = bytearray(file.getvalue())
    at %= len(data)
    data[at : at + len(change)] = change
    (place / name).write_bytes(data[: max(1, len(data) - cut)])
    try:
        for batch in open_samples(place / name, [IMAGE]).batches(3):
            assert batch.stored["in/x"].shape[1:] == IMAGE.shape
    except TinyfuseError as error:
        assert "\n" not in str(error)


def test_an_archive_with_a_long_list_is_refused_unread() -> None:
    with zipfile.ZipFile("x.npz", "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number}{'x' * 60}.npy", b"")
    assert "too many files" in refused("x.npz")


def test_a_header_may_not_claim_what_is_not_there() -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": (10**15, 4, 3, 2)})
    Path("x.npy").write_bytes(file.getvalue())
    assert "the file ends before its array" in refused("x.npy")
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("in_x.npy", file.getvalue())
    assert "the file ends before its array" in refused("x.npz")


# --- pictures and sounds -------------------------------------------------------------------------


def test_pictures() -> None:
    images = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 6, 8, 3)).astype(np.uint8)
    for number, name in enumerate(("b/1.png", "a/2.png", "a/1.bmp")):
        Path(name).parent.mkdir(exist_ok=True)
        Path("set", name).parent.mkdir(parents=True, exist_ok=True)
        images.fromarray(pixels[number]).save(Path("set", name))
    order = pixels[[2, 1, 0]]  # a/1.bmp, a/2.png, b/1.png
    spec = InputSpec("x", "x", (1, 6, 8, 3), "int8", 1 / 255, -128)
    found = stored("set", (spec,))["x"]
    np.testing.assert_array_equal(found[:, 0], order.astype(np.int16) - 128)
    real = InputSpec("x", "x", (1, 6, 8, 3), "float32")
    np.testing.assert_array_equal(stored("set", (real,))["x"][:, 0], order.astype(np.float32))
    assert stored("set", (real,), values=(0.0, 1.0))["x"].max() <= 1
    gray = InputSpec("x", "x", (1, 6, 8, 1), "uint8", 1.0, 0)
    np.testing.assert_array_equal(
        stored("set", (gray,))["x"][0, 0, ..., 0], np.asarray(images.fromarray(order[0]).convert("L"))
    )
    labels = read_labels("set")
    assert labels.values.tolist() == [0, 0, 1] and labels.names == ("a", "b")
    small = InputSpec("x", "x", (1, 4, 8, 3), "int8", 1 / 255, -128)
    assert "8 x 6 pixels, but the input 8 x 4: scale and crop" in refused("set", (small,))
    assert "is not an image" in refused("set", (InputSpec("v", "v", (5,), "int8"),))
    Path("set/a/1.bmp").write_bytes(b"BM no picture")
    assert "can't be read as a picture" in refused("set", (spec,))


def test_sounds() -> None:
    soundfile = pytest.importorskip("soundfile")
    values = np.array([0, 1, -1, 1000, -32768, 5, 6, 7, 8, 9], np.int16)
    Path("set").mkdir()
    soundfile.write("set/a.wav", values, 16000)
    assert "10 values at 16,000 Hz, but the input 'v' takes 5" in refused("set", (VECTOR,))
    samples = open_samples("set", [VECTOR], streams=True)
    (batch,) = samples.batches()
    assert (len(samples), samples.frames) == (1, 2)
    np.testing.assert_array_equal(batch.stored["v"].reshape(-1), values)
    spec = InputSpec("v", "v", (10,), "float32")
    np.testing.assert_array_equal(stored("set/a.wav", (spec,))["v"][0], values / np.float32(32768))
    soundfile.write("set/a.wav", np.zeros((10, 2), np.int16), 16000)
    assert "2 channels" in refused("set", (spec,))
    Path("set/a.wav").write_bytes(b"RIFF")
    assert "can't be read as a sound" in refused("set", (spec,))


@pytest.mark.parametrize("module, name, told", [("PIL", "x.png", "images"), ("soundfile", "x.wav", "audio")])
def test_a_package_that_is_not_there_is_named_with_its_extra(module, name, told, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    Path(name).write_bytes(b"x")
    with pytest.raises(ToolMissing, match=rf"pip install '\.\[{told}\]'") as caught:
        open_samples(name, [IMAGE])
    assert "\n" not in str(caught.value)


# --- doubts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec, low, high, told",
    [
        (InputSpec("x", "x", (1, 5), "int8", 1 / 127.5, -1), 0, 255, "quantized for -0.996078 to 1.00392: divide by 127.5 and subtract 1?"),
        (InputSpec("x", "x", (1, 5), "int8", 1 / 255, -128), 0, 255, "divide by 255?"),
        (InputSpec("x", "x", (1, 5), "int8", 1.0, -128), 0, 1, "multiply by 255?"),
        (InputSpec("x", "x", (1, 5), "int8", 1.0, -128), -1, 1, "multiply by 127.5 and add 127.5?"),
        (InputSpec("x", "x", (1, 5), "int8", 1 / 255, -128), 0, 1, None),
        (InputSpec("x", "x", (1, 5), "int8", 5.6 / 255, 0), -3.4, 3.1, None),
        (InputSpec("x", "x", (1, 5), "float32"), 0, 255, "was it trained on 0 to 1 (divide by 255)"),
        (InputSpec("x", "x", (1, 5), "float32"), -4, 4, None),
        (InputSpec("x", "x", (1, 5), "float32"), -141, 154, None),
        (InputSpec("x", "x", (1, 5), "int8", 1.0, 0), 0, 400, "quantized for -128 to 127"),
    ],
)  # fmt: skip
def test_values_of_another_range_are_doubted(spec, low, high, told) -> None:
    np.save("x.npy", np.linspace(low, high, 50, dtype=np.float32).reshape(10, 5))
    doubts = open_samples("x.npy", [spec]).doubts()
    assert (doubts == ()) if told is None else (told in doubts[0]), doubts
    assert not any("65535" in doubt for doubt in doubts)


# --- labels --------------------------------------------------------------------------------------


def test_labels_of_every_form() -> None:
    np.save("y.npy", np.array([[3], [1], [0]], np.uint8))
    Path("y.csv").write_text("label\n3\n1\n0\n")
    Path("y.txt").write_text("3\n1\n\n0\n")
    for path in ("y.npy", "y.csv", "y.txt"):
        labels = read_labels(path)
        assert labels.values.tolist() == [3, 1, 0] and labels.are_classes and labels.names == () and len(labels) == 3
    Path("y.txt").write_text("yes, please\nno\nyes, please\n")
    assert read_labels("y.txt").names == ("no", "yes, please") and read_labels("y.txt").values.tolist() == [1, 0, 1]
    assert read_labels("y.txt", ("yes, please", "no")).values.tolist() == [0, 1, 0]
    Path("y.csv").write_text("0.5,1\n2,3\n")
    assert read_labels("y.csv").values.tolist() == [[0.5, 1], [2, 3]] and not read_labels("y.csv").are_classes
    np.save("y.npy", np.array([1.0, 2.0]))
    assert read_labels("y.npy").are_classes


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("y.txt", "", "there are no labels"), ("y.txt", "1\nnan\n", "sample 1 is NaN"), ("y.csv", "a,b\nc,d\n", "several names"),
        ("y.txt", "maybe\n", "none of the classes 'no', 'yes'"), ("y.bin", "1\n", ".npy, .csv or .txt"), ("y.npy", "1", "not a .npy file"),
    ],
)  # fmt: skip
def test_labels_that_are_none(name, content, told) -> None:
    Path(name).write_text(content)
    with pytest.raises(UsageError) as caught:
        read_labels(name, ("no", "yes"))
    assert told in str(caught.value) and "\n" not in str(caught.value)


# --- memory --------------------------------------------------------------------------------------

_STREAMS = """
import resource, sys
from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.samples import open_samples
spec = InputSpec("x", "x", (1, 64, 1024), "int8", 1.0, 0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = sum(int(batch.stored["x"].shape[0]) for batch in open_samples(sys.argv[1], [spec]).batches())
print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="units of ru_maxrss")
def test_a_large_file_is_never_in_memory() -> None:
    """256 MiB that take no room on disk: holes."""
    with open("x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": (4096, 64, 1024)})
        file.truncate(file.tell() + (4096 << 16))
    done = subprocess.run([sys.executable, "-c", _STREAMS, "x.npy"], capture_output=True, text=True, check=True)
    samples, kilobytes = map(int, done.stdout.split())
    assert samples == 4096 and kilobytes < 60_000, done.stdout
