"""Class names from files and from the metadata in a model file, which may be hostile."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from test_numbers import run
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.errors import UsageError
from tinyfuse.frontend.labels import MAX_FILE, MAX_LABEL, MAX_LABELS

#: what would end a string, a comment or a line, make a trigraph or an escape that goes on, or turn text round
HOSTILE = ['a"b', "back\\", "??/", "*/ //", "%s%n", "\x071", "ü€\U0001f600", "\u202emirrored", "", "nul? no", " last "]


def metadata(files: list[tuple[str, int, str]]) -> bytes:
    """Metadata of a model with one output: for each label file its name, type and language."""
    builder = flatbuffers.Builder(256)

    def table(**slots: tuple[str, int]) -> int:
        builder.StartObject(8)
        for slot, (kind, value) in slots.items():
            getattr(builder, f"Prepend{kind}Slot")(int(slot[1:]), value, 0)
        return builder.EndObject()

    def vector(tables: list[int]) -> int:
        builder.StartVector(4, len(tables), 4)
        for each in reversed(tables):
            builder.PrependUOffsetTRelative(each)
        return builder.EndVector()

    made = []
    for name, kind, locale in files:
        named, language = builder.CreateString(name), builder.CreateString(locale)
        made.append(table(s0=("UOffsetTRelative", named), s2=("Int8", kind), s3=("UOffsetTRelative", language)))
    output = table(s6=("UOffsetTRelative", vector(made)))
    graph = table(s3=("UOffsetTRelative", vector([output])))
    builder.Finish(table(s3=("UOffsetTRelative", vector([graph]))), b"M001")
    return bytes(builder.Output())


def packed(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", packing) as into:
        for name, data in files.items():
            into.writestr(name, data)
    return archive.getvalue()


def model(
    classes: int = 3, files: list[tuple[str, int, str]] | None = None, archive: bytes = b"", outputs: int = 1
) -> bytes:
    """y = x with `classes` classes. Has metadata if files are named; further bytes may follow the model."""
    made = ModelBuilder()
    shape = made.tensor("shape", (2,), "int32", data=np.array([1, classes], np.int32))
    x = made.tensor("x", (classes, 1), scale=1.0)
    ys = [made.tensor(f"y{n}", (1, classes), scale=1.0) for n in range(outputs)]
    for y in ys:
        made.op("RESHAPE", [x, shape], [y])
    given = {} if files is None else {"TFLITE_METADATA": metadata(files)}
    return made.build([x], ys, metadata=given) + archive


def labels(data: bytes, **settings: object) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The labels of a module, and its warnings."""
    module = tinyfuse.compile(data, "host", name="net", **settings)
    return module.options.labels, "; ".join(module.plan.warnings)


def test_names_of_a_file_are_strings_of_c_and_cxx(tmp_path: Path) -> None:
    listed = tmp_path / "labels.txt"
    listed.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(HOSTILE).encode() + b"\n\n\r\n")
    module = tinyfuse.compile(model(len(HOSTILE)), "host", name="net", labels=[listed])
    assert module.options.labels == (tuple(HOSTILE),) and not module.plan.warnings
    main = """\
int main(void)
{
    for (size_t i = 0; net_label_y0(i) != NULL; ++i) {
        fputs(net_label_y0(i), stdout);
        putchar(0);
    }
    return net_label_y0(NET_OUTPUT_Y0_LABELS) != NULL || net_label_y0((size_t)-1) != NULL;
}
"""
    for compiler in ("gcc", "g++"):
        assert run(tmp_path, module.plan, main, compiler).decode().split("\0") == [*HOSTILE, ""]


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_names_of_the_metadata(packing: int) -> None:
    archive = packed({"labels.txt": b"a\nb\nc\n", "es.txt": b"x\ny\nz"}, packing)
    files = [("scores.txt", 4, ""), ("values.txt", 3, ""), ("es.txt", 2, "es"), ("labels.txt", 2, "")]
    assert labels(model(3, files, archive)) == ((("a", "b", "c"),), "")
    assert labels(model(3, [("es.txt", 3, "")], archive)) == ((("x", "y", "z"),), "")
    assert labels(model(3, [], archive)) == ((), "")
    assert labels(model(3, None, archive)) == ((), "")


def test_a_file_comes_before_the_metadata(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("left\nmiddle\nright")
    data = model(3, [("labels.txt", 2, "")], packed({"labels.txt": b"a\nb\nc"}), outputs=2)
    assert labels(data, labels=[tmp_path / "own.txt"])[0] == (("left", "middle", "right"), ())
    assert labels(data)[0] == (("a", "b", "c"), ())


@pytest.mark.parametrize(
    ("archive", "told"),
    [
        (b"", "the archive behind the model is damaged (File is not a zip file)"),
        (packed({"other.txt": b"a"}), "it is not there"),
        (packed({"labels.txt": b"\n \xff"}), "it is not UTF-8 text, at byte 2"),
        (packed({"labels.txt": b"\n\n"}), "it has no labels"),
        (packed({"labels.txt": b"a\n\0"}), "line 2 has a NUL"),
        (packed({"labels.txt": b"a" * (MAX_LABEL + 1)}), "line 1 has more than 1,000 bytes"),
        (packed({"labels.txt": b"a\n" * (MAX_LABELS + 1)}), "it has more than 65,536 lines"),
        (packed({"labels.txt": b"\n" * (64 << 20)}), f"more than {MAX_FILE:,} bytes in all"),
        (packed({"labels.txt": b"a"}, zipfile.ZIP_LZMA), "packed in a way that is not supported"),
        (packed({str(n): b"" for n in range(1001)}), "more than 1000 files"),
    ],
)
def test_what_is_wrong_in_a_model_s_archive_is_a_warning(archive: bytes, told: str) -> None:
    found, warnings = labels(model(3, [("labels.txt", 2, "")], archive))
    assert found == () and told in warnings and "--labels FILE gives others" in warnings


def test_damaged_metadata_and_archives_end_in_no_traceback() -> None:
    """Bytes of the metadata and of the archive turned over: labels or a warning, always a module."""
    whole, rng = model(3, [("labels.txt", 2, "")], packed({"labels.txt": b"a\nb\nc"})), random.Random(0)
    tail, start = packed({"labels.txt": b"a\nb\nc"}), whole.index(metadata([("labels.txt", 2, "")]))
    places = [*range(start, start + len(metadata([("labels.txt", 2, "")]))), *range(len(whole) - len(tail), len(whole))]
    told = set()
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.sample(places, rng.choice((1, 1, 3))):
            data[place] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        found, warnings = labels_alone(bytes(data))
        assert not (found and warnings)
        told.add(warnings.split(":")[-1][:20])
    assert len(told) > 5


def labels_alone(data: bytes) -> tuple[object, str]:
    """The labels and warnings without a plan."""
    from tinyfuse.frontend.labels import labels_of
    from tinyfuse.frontend.reader import read_tflite

    found, warnings = labels_of(read_tflite("net.tflite", data), data)
    return found, "; ".join(warnings)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    empty, much = tmp_path / "empty.txt", tmp_path / "much.txt"
    empty.write_bytes(b"")
    much.write_bytes(b"a\n" * MAX_FILE)
    for given, told in [
        ([tmp_path / "none.txt"], "No such file"),
        ([tmp_path], "folder"),
        ([empty], "it has no labels"),
        ([much], f"more than {MAX_FILE:,} bytes"),
        ([empty, empty], "2 files for 1 output;"),
        (["a\0b"], "can't be read"),
        ("labels.txt", "give a list"),
    ]:
        with pytest.raises(UsageError, match=told):
            labels(model(), labels=given)


@pytest.mark.parametrize("count", [2, 4])
def test_another_number_of_names_is_an_error(tmp_path: Path, count: int) -> None:
    """A name is looked up by the class's number: the table has one for each."""
    listed = tmp_path / "labels.txt"
    listed.write_text("name\n" * count)
    with pytest.raises(UsageError, match=f"labels.txt: {count} labels for .*, whose last dimension is 3"):
        labels(model(), labels=[listed])


def test_a_command_has_them_in_json_header_and_depfile(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "net.tflite").write_bytes(model())
    listed, depfile = tmp_path / "labels.txt", tmp_path / "net.d"
    listed.write_text("one\ntwo\nthree")
    words = ["gen", str(tmp_path / "net.tflite"), "--target", "host", "--labels", str(listed), "--json"]
    assert (
        main.commands["gen"].main(
            [*words[1:], "-o", str(tmp_path / "out"), "--depfile", str(depfile)], standalone_mode=False
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["options"]["labels"] == [["one", "two", "three"]]
    assert '"three",' in (tmp_path / "out" / "net.h").read_text()
    assert "labels.txt" in depfile.read_text()
    assert not list((tmp_path / "out").glob("*.txt.txt"))
