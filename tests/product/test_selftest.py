"""`gen --selftest`: NAME_selftest() says OK exactly where every bit is right."""

from __future__ import annotations

import re
import subprocess
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from native_compiler import COMPILER, SANITIZERS
from random_graphs import Sketch
from sliding_models import padded, wake_word
from stream_models import STREAM_MODELS
from test_ops_network import network

from tinyfuse.cli.main import main
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import make_oracle

_MAIN = """\
#include "net.h"
#include <stdio.h>
static NET_DEFINE_ARENA(arena);
#ifdef NET_STATE_BYTES
static NET_DEFINE_STATE(state);
#define TEST(bytes) net_selftest(arena, bytes, state)
#else
#define TEST(bytes) net_selftest(arena, bytes)
#endif
int main(void)
{
    int first = TEST(sizeof arena), second = TEST(sizeof arena);
    printf("%d %d %d %s\\n", first, second, TEST(1), net_strerror(first));
    return 0;
}
"""


def two_inputs() -> bytes:
    sketch = Sketch(3)
    a, b = sketch.value((1, 5, 4, 3)), sketch.value((1, 5, 4, 3))
    y = sketch.conv(sketch.add(a, b), 4, (3, 3))
    return sketch.build([a, b], [y, sketch.fully_connected(y, 7)])


def generate(data: bytes, folder: Path, *options: str) -> Path:
    (folder / "net.tflite").write_bytes(data)
    command = ["gen", str(folder / "net.tflite"), "--target", "host", "-o", str(folder / "net"), *options]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder / "net"


def run(module: Path) -> list[str]:
    """Output of the program: status, status of a second call, status with a small arena, message."""
    (module / "main.c").write_text(_MAIN)
    flags = [
        "-std=c99",
        "-O0",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wpedantic",
        "-Werror",
        *SANITIZERS,
    ]
    command = [COMPILER, *flags, "main.c", "net.c", "net_weights.c", "net_selftest.c", "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=module, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return subprocess.run([module / "program"], capture_output=True, text=True, check=True).stdout.split(maxsplit=3)


@pytest.mark.parametrize(
    "make, options",
    [(two_inputs, []), (network, []), (network, ["--feed-rows"]), (lambda: STREAM_MODELS["keyword spotter"], [])],
    ids=["two inputs", "float input", "float input by rows", "state"],
)
def test_it_passes_and_holds_what_tflm_computes(make, options, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    data = make()
    module = generate(data, tmp_path, "--selftest", *options)
    graph = read_tflite("net.tflite", data)
    (outputs,) = make_oracle("tflm", data, graph).run_all(input_set(graph, 1, 0))
    crc = zlib.crc32(b"".join(array.tobytes() for array in outputs))
    assert f"0x{crc:08X}u" in (module / "net_selftest.c").read_text()
    assert run(module) == ["0", "0", "2", "no error\n"]
    assert "net_selftest.c" in (module / "CMakeLists.txt").read_text()
    assert "net_selftest.c" in (module / "manifest.json").read_text()


def frames_and_gain() -> bytes:
    """A model with frames, and an input for the whole window."""
    s = Sketch(4)
    frames, gain = s.value((1, 12, 1, 4)), s.value((1, 1, 1, 4))
    x = s.conv(s.add(frames, gain), 5, (3, 1), padding="VALID")
    return s.build([frames, gain], [s.fully_connected(x, 3)])


@pytest.mark.parametrize(
    "data, step",
    [(padded(), 4), pytest.param(wake_word(dtype="int16"), 3, marks=pytest.mark.campaign),
     pytest.param(wake_word(dtype="float32"), 2, marks=pytest.mark.campaign), (frames_and_gain(), 1)],
    ids=["int8", "int16", "float32", "another input"],
)  # fmt: skip
def test_of_a_sliding_window_it_streams(data: bytes, step: int, tmp_path: Path) -> None:
    """More than a window, twice, over memory that the first stream left."""
    module = generate(data, tmp_path, "--selftest", "--slide", str(step))
    assert run(module) == ["0", "0", "2", "no error\n"]


@pytest.mark.parametrize(
    ("file", "of", "instead"),
    [
        ("tinyfuse_await.h", "return *left > 0;", "return *left > 1;"),
        ("tinyfuse_await.h", "return *left > 0;", "return *left >= 0;"),
        ("tinyfuse_ring.h", "*cursor + 1 == height ? 0", "*cursor + 1 == height ? 1"),
    ],
    ids=["early", "late", "ring"],
)
def test_a_faulty_step_fails(file: str, of: str, instead: str, tmp_path: Path) -> None:
    """A result too early, none in time, a ring that leaves its first row out."""
    module = generate(wake_word(), tmp_path, "--selftest", "--slide", "1")
    text = (module / file).read_text()
    assert of in text
    (module / file).write_text(text.replace(of, instead))
    assert run(module)[:2] == ["5", "5"]


@pytest.mark.parametrize("file", ["net_weights.c", "net_selftest.c"])
def test_a_wrong_row_of_numbers_fails(file: str, tmp_path: Path) -> None:
    """The first row of the first array of bytes, weights or an input, with every number's sign turned."""
    module = generate(two_inputs(), tmp_path, "--selftest")
    before, array, after = re.split(r"(int8_t \w+\[\d+\] = \{\n.*\n)", (module / file).read_text(), maxsplit=1)
    first, row, _ = array.split("\n")
    turned = ", ".join(f"{int(n) ^ (128 if '_selftest' in file else -128)}" for n in row.strip(" ,").split(", "))
    (module / file).write_text(f"{before}{first}\n    {turned},\n{after}")
    assert run(module) == ["5", "5", "2", "the self-test's outputs are wrong\n"]


def test_without_the_option_nothing_of_it_is_there(tmp_path: Path) -> None:
    for path in generate(two_inputs(), tmp_path).iterdir():
        assert "selftest" not in path.name and "selftest" not in path.read_text().lower()
