"""Names of tensors, subgraphs, signatures, metadata and files that look like code, markup, paths or commands to a terminal
stay names: in every output form, report and message.

test_generated_code.py compiles C with such names of tensors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import flatbuffers
import pytest
from click.testing import CliRunner
from native_compiler import COMPILER
from random_graphs import Sketch

pytest.importorskip("ai_edge_litert", reason="needs the PyPI package ai-edge-litert")

from host_program import WARNINGS, compile_c
from tflite_structure import NAMES as ALL_NAMES
from tflite_structure import schema

from tinyfuse.cli.main import main
from tinyfuse.emit.forms import FORMS

#: longer ones are refused
NAMES = [name for name in ALL_NAMES if len(name) <= 65536]


@cache
def named(count: int = 24) -> bytes:
    """A network whose every name is one of NAMES: of tensors, subgraph, signatures and their entries, metadata, and the
    description."""
    sketch = Sketch(1)
    x = ends = sketch.value((1, 6, 5, 4))
    outputs = []
    for number in range(count // 4):
        y = sketch.conv(ends, 4, (3, 3)) if number % 2 else sketch.relu(ends)
        outputs.append(sketch.fully_connected(y, 3) if number % 3 == 0 else y)
        ends = y
    s = schema()
    model = s.ModelT.InitFromObj(s.Model.GetRootAs(bytearray(sketch.build([x], outputs))))
    (graph,) = model.subgraphs
    for number, tensor in enumerate(graph.tensors):
        tensor.name = NAMES[number % len(NAMES)]
    graph.name = model.description = "*/ \n#error <script>alert(1)</script>"
    model.signatureDefs, model.metadata = [], []
    for number, name in enumerate(NAMES):
        entry = s.MetadataT()
        entry.name, entry.buffer = name, 0
        model.metadata.append(entry)
        if number % 8 == 0:
            signature = s.SignatureDefT()
            signature.signatureKey, signature.subgraphIndex = name, 0
            signature.inputs, signature.outputs = (_entries(s, ends, number) for ends in (graph.inputs, graph.outputs))
            model.signatureDefs.append(signature)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _entries(s, tensors, number: int) -> list:
    entries = []
    for place, tensor in enumerate(tensors):
        entry = s.TensorMapT()
        entry.name, entry.tensorIndex = NAMES[(number + place) % len(NAMES)], int(tensor)
        entries.append(entry)
    return entries


class _Tags(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def assert_text(name: str, text: str) -> None:
    """Checks that a file is text without control characters, and well-formed where a parser is at hand."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ufeff]", text), name
    if name.endswith(".json"):
        json.loads(text)
    if name.endswith((".svg", ".pdsc", ".xml")):
        xml.etree.ElementTree.fromstring(text)
    if name.endswith((".html", ".svg")):
        tags = _Tags()
        tags.feed(text)
        assert not [tag for tag in tags.found if any(attribute.startswith("on") for attribute in tag[1])], name
        assert "alert(1)</script>" not in text.replace("\\u003c", "<") or tags.found.count(("script", ())) <= 2, name


def run(*words: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    assert_text("stdout", done.output)
    return done.output


def files_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pack"
    }


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder, below one that must stay as it is."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("form", FORMS)
def test_of_all_in_each_output_form(inside: Path, form: str) -> None:
    (inside / "net.tflite").write_bytes(named())
    run(
        "gen",
        "net.tflite",
        "--target",
        "cortex-m4",
        "--format",
        form,
        "-o",
        "out",
        "--selftest",
        "--kernels",
        "tinyfuse",
    )
    assert sorted(path.name for path in inside.parent.rglob("*") if path.parent != inside / "out" and path.is_file()
                  and not path.is_relative_to(inside / "out")) == ["net.tflite"]  # fmt: skip
    for name, text in files_of(inside / "out").items():
        assert_text(name, text)
        assert max(map(len, text.splitlines()), default=0) < 20_000, name


def test_of_all_in_reports(inside: Path) -> None:
    (inside / "net.tflite").write_bytes(named())
    given = ("net.tflite", "--target", "cortex-m4")
    run(
        "report",
        *given,
        "--html",
        "page.html",
        "--svg",
        "arena.svg",
        "--rows-svg",
        "rows.svg",
        "--dump-passes",
        "--costs",
    )
    (inside / "net.json").write_text(run("report", *given, "--json"))
    run("explain", *given)
    json.loads(run("explain", *given, "--json"))
    (inside / "net.tflite").write_bytes(named(16))
    (inside / "other.json").write_text(run("report", *given, "--json"))
    run("diff", "net.json", "other.json")
    for name in ("page.html", "arena.svg", "rows.svg"):
        assert_text(name, (inside / name).read_text())


FILES = (
    "x*/ #error y.tflite", "a\nb.tflite", "quo\"te'.tflite", "$(touch pwned).tflite", "`touch pwned`.tflite", "a;b & c.tflite",
    "-o.tflite", "{{ 7 * 7 }}.tflite", "{% raw %}.tflite", "${x}.tflite", "#error.tflite", "back\\.tflite", "\u202e.tflite",
    "<script>alert(1)</script>.tflite", "\x1b[31m.tflite", "é.tflite", "\udcff.tflite", "%s%n.tflite", "a:b.tflite", " .tflite",
)  # fmt: skip


#: of these, those that only a campaign takes
_IN_CAMPAIGNS = {"`touch pwned`.tflite", "-o.tflite", "${x}.tflite", "#error.tflite", "back\\.tflite", "é.tflite", "%s%n.tflite",
                 "{% raw %}.tflite", "a:b.tflite", " .tflite", "a;b & c.tflite"}  # fmt: skip


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=[pytest.mark.campaign] if file in _IN_CAMPAIGNS else []) for file in FILES]
)
def test_of_a_file(inside: Path, file: str) -> None:
    (inside / "net.tflite").write_bytes(named(8))
    place = inside / file.replace("/", "\u2215")
    (inside / "net.tflite").rename(place)
    words = ["gen", f"./{place.name}", "--target", "host", "-o", "out", "--selftest"]
    if not set("\n\\").intersection(place.name):  # Make can't write these
        words += ["--depfile", "out.d"]
    said = run(*words)
    if "--depfile" in words:
        rules = os.fsdecode((inside / "out.d").read_bytes())
        assert re.sub(r"\\(.)", r"\1", rules).replace("$$", "$").startswith(f"out/manifest.json: {place.name} ")
    files = files_of(inside / "out")
    for name, text in files.items():
        assert_text(name, text)
    (next_line,) = (line for line in said.splitlines() if line.startswith("next: "))
    words = next_line.removeprefix("next: tinyfuse verify ").removesuffix(" --target host")
    shown = subprocess.run(["bash", "-c", f"printf %s {words}"], capture_output=True, check=True).stdout
    assert os.fsdecode(shown) == f"./{place.name}"
    sources = [inside / "out" / name for name in files if name.endswith(".c")]
    compile_c([COMPILER, "-std=c99", *WARNINGS, f"-I{inside / 'out'}", "-DTINYFUSE_ANY_CPU", "-fsyntax-only", *sources])
    assert not list(inside.parent.rglob("pwned"))
