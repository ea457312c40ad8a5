"""`--weights-blob`: a module whose weights are separate from its code computes the same, accepts weights of a retrained
model, and refuses anything but a complete blob for its code."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from executors import assert_exact, plan_of
from host_program import WARNINGS, compile_c
from known_architectures import FAMILIES
from native_compiler import COMPILER, SANITIZERS
from random_graphs import Sketch
from sliding_models import padded
from stream_models import STREAM_MODELS

from tinyfuse.cli.main import main
from tinyfuse.emit import emit, emit_weights
from tinyfuse.emit.forms import make_delivery
from tinyfuse.emit.header import ports
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

needs_cross = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def small(seed: int = 7, inner: int = 6) -> bytes:
    sketch = Sketch(seed)
    x = sketch.value((1, 8, 8, 3))
    y = sketch.conv(x, inner, (3, 3), activation="RELU")
    y = sketch.depthwise(y, (3, 3), (2, 2))
    return sketch.build([x], [sketch.fully_connected(sketch.mean(y), 5)])


def trained_further(data: bytes) -> bytes:
    """The file with permuted weights in its first convolution; shapes and quantization stay."""
    weights = read_tflite("net.tflite", data).ops[0].operand(1).values
    stored, shuffled = weights.tobytes(), np.random.default_rng(5).permuted(weights, axis=3).tobytes()
    assert data.count(stored) == 1 and shuffled != stored
    return data.replace(stored, shuffled)


def blob(plan: Plan) -> bytes:
    return emit_weights(plan)[f"{plan.options.name}_weights.bin"]


# --- the same results --------------------------------------------------------------------------

WAYS = {
    "rows": (FAMILIES["mobilenet_v2"], {}),
    "speed": (FAMILIES["mobilenet_v2"], {"optimize": "speed", "weights": "auto"}),
    "fed": (FAMILIES["mobilenet_v2"], {"feed_rows": True}),
    "steps": (FAMILIES["mobilenet_v2"], {"step": True}),
    "slid": (padded, {"slide": 2}),
    "state": (lambda: STREAM_MODELS["every kind of state"], {}),
}


@needs_gcc
@pytest.mark.parametrize("way", WAYS)
def test_modules_are_exact_on_the_host(way: str) -> None:
    make, options = WAYS[way]
    assert_exact(plan_of(make(), "cortex-m4", kernels="tinyfuse", weights_blob=True, **options), on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(("way", "target"), [("speed", "cortex-m4"), ("state", "cortex-m4"), ("rows", "cortex-m55")])
def test_modules_are_exact_on_a_core(way: str, target: str) -> None:
    make, options = WAYS[way]
    assert_exact(plan_of(make(), target, kernels="tinyfuse", weights_blob=True, **options))


# --- what is bound -----------------------------------------------------------------------------

#: binds each file that is named, runs after each, and prints the status of both and the outputs
MAIN = """\
#include "net.h"
#include <stdio.h>
#include <string.h>
static NET_DEFINE_ARENA(arena);
static NET_ALIGNED(NET_WEIGHTS_ALIGN) uint8_t memory[2][(NET_WEIGHTS_BYTES / 16 + 5) * 16];
int main(int argc, char **argv)
{
    FILE *const image = fopen(argv[1], "rb");
    static uint8_t input[NET_INPUT_TENSOR_BYTES];
    int slot = 0;

    if (image == NULL || fread(input, 1, sizeof input, image) != sizeof input || net_init(arena, sizeof arena) != NET_OK) {
        return 1;
    }
    fclose(image);
    printf("unbound %d\\n", net_run(arena));
    for (int i = 2; i < argc; ++i) {
        FILE *const file = fopen(argv[i], "rb");
        const size_t bytes = fread(memory[slot], 1, sizeof memory[slot], file);
        const int bound = net_bind(memory[slot], bytes);

        fclose(file);
        slot = bound == NET_OK ? 1 - slot : slot;
        memcpy(net_input(arena, 0), input, sizeof input);
        printf("%d %d", bound, net_run(arena));
        for (size_t k = 0; k < net_output_bytes(0); ++k) {
            printf(" %d", ((const int8_t *)net_output(arena, 0))[k]);
        }
        printf("\\n");
    }
    printf("%d %d %s\\n", net_bind(NULL, 1), net_bind(memory[0] + 1, NET_WEIGHTS_BYTES), net_strerror(NET_ERROR_WEIGHTS));
    return 0;
}
"""


def bound(folder: Path, plan: Plan, image: np.ndarray, blobs: list[bytes]) -> list[str]:
    """Lines that MAIN prints for these blobs, under sanitizers."""
    for file, text in emit(plan).items():
        (folder / file).write_text(text)
    (folder / "main.c").write_text(MAIN.replace("TENSOR", ports(plan)[0][0].macro))
    sources = [folder / "main.c", folder / "net.c"]
    compile_c([COMPILER, "-std=c99", *WARNINGS, *SANITIZERS, *sources, "-lm", "-o", folder / "program"])
    files = [folder / "image", *(folder / f"blob{i}" for i in range(len(blobs)))]
    for file, data in zip(files, [image.tobytes(), *blobs], strict=True):
        file.write_bytes(data)
    done = subprocess.run([folder / "program", *files], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def _line(plan: Plan, image: np.ndarray) -> str:
    """The line that is printed for a run of the plan's model."""
    outputs = ReferenceOracle(plan.source).run_all([[image]])[0]
    return " ".join(["0 0", *map(str, outputs[0].reshape(-1).tolist())])


@needs_gcc
def test_one_code_takes_the_weights_of_a_model_that_was_trained_further(tmp_path: Path) -> None:
    first = plan_of(small(), weights_blob=True)
    second = plan_of(trained_further(small()), weights_blob=True)
    assert blob(first) != blob(second)
    [[image]] = input_set(first.source, 1, 3)
    lines = bound(tmp_path, first, image, [blob(first), blob(second), blob(first)])
    assert lines[0].startswith("unbound 11")
    assert lines[1:4] == [_line(first, image), _line(second, image), _line(first, image)]
    assert _line(first, image) != _line(second, image)
    assert lines[4] == "1 3 no weights are bound, or they are for other code"


@needs_gcc
def test_what_is_no_blob_for_the_code_is_refused_and_what_was_bound_stays(tmp_path: Path) -> None:
    plan = plan_of(small(), weights_blob=True)
    [[image]] = input_set(plan.source, 1, 3)
    good = blob(plan)
    rng = np.random.default_rng(0)
    looked_at = [*range(48), *range(96, 104), *rng.integers(48, len(good), 100).tolist(), len(good) - 1]
    damaged = [good[:at] + bytes([good[at] ^ (1 << int(rng.integers(8)))]) + good[at + 1 :] for at in looked_at]
    others = {"wider": small(inner=7), "of other quantization": small(seed=2)}
    bad = {
        **{f"byte {at}": data for at, data in zip(looked_at, damaged, strict=True)},
        "nothing": b"", "cut short": good[:-1], "a header": good[:96], "zeros": bytes(len(good)),
        **{name: blob(plan_of(data, weights_blob=True)).ljust(len(good), b"\0") for name, data in others.items()},
        "as code": emit(plan)["net.c"].encode()[: len(good)].ljust(len(good)),
    }  # fmt: skip
    lines = bound(tmp_path, plan, image, [good, *bad.values(), good + b"more"])
    expected = _line(plan, image)
    assert lines[1] == lines[-2] == expected
    for name, line in zip(bad, lines[2:-2], strict=True):
        status, computed = line.split(" ", 1)
        assert status == ("2" if name in ("nothing", "cut short", "a header") else "11"), (name, line)
        assert computed == expected.split(" ", 1)[1], name


# --- the file ----------------------------------------------------------------------------------


def test_the_file_is_what_its_format_says() -> None:
    plan = plan_of(small(), weights_blob=True)
    data = blob(plan)
    magic, version, count, crc = struct.unpack_from("<4sIII", data)
    assert (magic, version, count, crc) == (b"TFWB", 1, len(data), zlib.crc32(data[16:]))
    assert data[48:80].hex() == plan.graph.sha256
    assert f"#define NET_WEIGHTS_BYTES {len(data)}\n" in emit(plan)["net.h"]
    arrays = sum(array.nbytes for array in plan.unique_constants.values())
    assert len(data) - 96 - 16 * len(plan.unique_constants) <= arrays <= len(data) - 96
    assert emit_weights(plan_of(small())) == {}


def test_it_is_the_same_however_the_module_is_handed_over() -> None:
    plan = plan_of(small(), weights_blob=True)
    digest = blob(plan)[16:48]
    text = ", ".join(f"0x{byte:02X}u" for byte in digest[:16])
    for forms in ([], ["single-file"], ["zephyr"], ["arduino"]):
        files = emit(plan, delivery=make_delivery(forms, {}))
        holding = [file for file, content in files.items() if text in content]
        assert len(holding) == 1 and holding[0].endswith("net.c"), forms


@pytest.mark.parametrize(
    "change", ["a zero point", "a scale of the input", "another target", "another order of weights"]
)
def test_the_code_is_another_one_where_constants_of_it_are(change: str) -> None:
    plan = plan_of(small(), weights_blob=True)
    sketch = Sketch(1)
    if change == "another target":
        other = plan_of(small(), "cortex-m4", weights_blob=True)
    elif change == "another order of weights":
        other = plan_of(small(), "cortex-m4", weights_blob=True, weights="unpacked", kernels="tinyfuse")
        plan = plan_of(small(), "cortex-m4", weights_blob=True, kernels="tinyfuse")
    else:
        quant = {"zero_point": 9} if change == "a zero point" else {"scale": 0.75}
        x = sketch.value((1, 4, 4, 2), **({"scale": 0.5, "zero_point": 1} | quant))
        other = plan_of(sketch.build([x], [sketch.relu(x)]), weights_blob=True)
        sketch = Sketch(1)
        x = sketch.value((1, 4, 4, 2), scale=0.5, zero_point=1)
        plan = plan_of(sketch.build([x], [sketch.relu(x)]), weights_blob=True)
    assert blob(plan)[16:48] != blob(other)[16:48]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder has the file, its manifest lists it, and no form's program runs a module whose weights it lacks."""
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(small())
    words = ["gen", "m.tflite", "--target", "cortex-m4", "--weights-blob", "--format", "zephyr", "--format", "cmake"]
    with pytest.raises(SystemExit) as ended:
        main.main([*words, "-o", "out"])
    assert ended.value.code == 0
    assert Path("out/m_weights.bin").read_bytes()[:4] == b"TFWB" and not Path("out/m_weights.c").exists()
    assert '"m_weights.bin"' in Path("out/manifest.json").read_text()
    assert not [path for path in Path("out").rglob("*") if {"samples", "tests"} & set(path.parts)]
