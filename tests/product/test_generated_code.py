"""Generated files: the same bytes on every machine, free of warnings, and safe for any model name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cross_compilers import NAMES, cross_compiler
from executors import assert_all_exact, assert_exact, plan_of
from host_program import WARNINGS, compile_c
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from test_ops_network import network
from tflite_builder import ModelBuilder

from tinyfuse.emit import emit
from tinyfuse.emit.identifiers import default_module_name, module_name
from tinyfuse.emit.selftest import SelfTest
from tinyfuse.errors import UsageError
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn
from tinyfuse.verify.selftest import embedded_selftest

ROOT = Path(__file__).resolve().parents[2]


def separable() -> bytes:
    """A fusion group of two convolutions, a residual, and a vector at the end; weights are per channel."""
    sketch = Sketch(5)
    x = sketch.value((1, 9, 7, 8))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 8, (1, 1), activation="RELU")
    z = sketch.fully_connected(sketch.add(x, y), 5)
    return sketch.build([x], [sketch.softmax(z)])


# --- determinism -------------------------------------------------------------------------------


def generate(folder: Path, seed: int, target: str, home: Path) -> dict[str, bytes]:
    """Files of a `gen` of folder/net.tflite, run in that folder."""
    folder.mkdir(parents=True)
    (folder / "net.tflite").write_bytes(separable())
    command = [sys.executable, "-m", "tinyfuse", "gen", str(folder / "net.tflite"), "--target", target, "-o", "out"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed), "HOME": str(home)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.parametrize("target", ["host", "cortex-m55"])
def test_the_same_model_and_options_give_the_same_bytes_everywhere(tmp_path: Path, target: str) -> None:
    one = generate(tmp_path / "here", 1, target, tmp_path)
    two = generate(tmp_path / "some where" / "el'se", 2, target, tmp_path / "nobody")
    assert one == two and len(one) > 7
    for name, data in one.items():
        text = data.decode("ascii")
        for place in (str(tmp_path), str(ROOT), str(Path.home()), "some where"):
            assert place not in text, (name, place)
        assert not re.search(r"\b(19|20)\d\d[-/.]\d\d?[-/.]\d\d?\b|\b\d\d:\d\d:\d\d\b", text), name


# --- warnings ----------------------------------------------------------------------------------


#: target, kernels, and the compiler that CI takes: all others are a campaign
_COMPILED = (
    ("host", "tinyfuse", NAMES), ("cortex-m0plus", "tinyfuse", ("clang",)), ("cortex-m4", "tinyfuse", ("gcc",)),
    ("cortex-m55", "tinyfuse", NAMES), ("cortex-m4", "cmsis-nn", ("clang",)), ("cortex-m55", "cmsis-nn", ("gcc",)),
)  # fmt: skip


@pytest.mark.parametrize(("compiler", "target", "kernels"), [
    pytest.param(compiler, target, kernels, marks=[] if compiler in now else [pytest.mark.campaign])
    for target, kernels, now in _COMPILED for compiler in NAMES
])  # fmt: skip
def test_no_warning_from_any_compiler(tmp_path: Path, compiler: str, target: str, kernels: str) -> None:
    """Alone and as one translation unit with the weights, which is how some firmwares build."""
    tree = find_cmsis_nn(None)
    if kernels == "cmsis-nn" and (tree is None or tree.version != (4, 0)):
        pytest.skip("needs CMSIS-NN 4.0, which PyPI's bakenn carries")
    command = [compiler]
    if target != "host":
        command = cross_compiler(compiler, load_target(target))
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    for number, data in enumerate((separable(), network(), STREAM_MODELS["every kind of state"])):
        plan = plan_of(data, target, kernels=kernels, cmsis_nn_version="4.0")
        if plan.uses_cmsis_nn:
            command += [f"-isystem{folder}" for folder in tree.include_dirs]
        folder = write(tmp_path / str(number), emit(plan, embedded_selftest(plan)))
        sources = ["net.c", "net_weights.c", "net_selftest.c"]
        (folder / "all.c").write_text("".join(f'#include "{name}"\n' for name in sources))
        compile_c([*command, "-std=gnu11", *WARNINGS, "-fsyntax-only", folder / "all.c"])
        # some of gcc's warnings come from its optimizer, clang's do not
        how = ["-fsyntax-only"] if compiler == "clang" else ["-O2", "-c", "-o", folder / "part.o"]
        for part in sources:
            compile_c([*command, "-std=c99", *WARNINGS, folder / part, *how])


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("opt", ["-O2", "-O3"])
def test_no_warning_whatever_the_length(tmp_path: Path, target: str, opt: str) -> None:
    """Calls are specialised by constant lengths, and the optimizer warns where it then misreads the loop
    over the rest: it did for an ADD of 36 elements on Helium."""
    if not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("needs arm-none-eabi-gcc")
    sketch, inputs, outputs = Sketch(1), [], []
    for length in range(1, 50, 5):  # every rest of a division by eight
        a, b = sketch.value((1, 1, 1, length)), sketch.value((1, 1, 1, length))
        inputs += [a, b]
        outputs += [sketch.add(a, b), sketch.add(a, b, kind="MUL"), sketch.scale_channels(a, "SUB")]
    folder = write(tmp_path, emit(plan_of(sketch.build(inputs, outputs), target, kernels="tinyfuse", fusion="none")))
    command = ["arm-none-eabi-gcc", *load_target(target).flags, "-std=c99", *WARNINGS, opt, "-c"]
    compile_c([*command, folder / "net.c", "-o", folder / "net.o"])


def test_no_warning_of_an_average_in_steps(tmp_path: Path) -> None:
    """GCC 12 misread the loop over the channels that are left of a row's sum, where none is: only with -O3 and steps."""
    if not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("needs arm-none-eabi-gcc")
    digits = (Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite").read_bytes()
    folder = write(tmp_path, emit(plan_of(digits, "cortex-m4", step=True)))
    command = ["arm-none-eabi-gcc", *load_target("cortex-m4").flags, "-std=c99", *WARNINGS, "-O3", "-c"]
    compile_c([*command, folder / "net.c", "-o", folder / "net.o"])


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


# --- names -------------------------------------------------------------------------------------

HOSTILE = [
    "", "", " ", "_", "__", "a", "A", "a", "a_2", "int", "int", "INT", "if_", "class", "namespace", "NULL", "errno",
    "main", "bytes", "bytes", "count", "init", "run", "arena", "index", "0", "9lives", "x*/ #error y", "/* open",
    "// line \\", "end \\", "??/", "??)\n??/", "new\nline #error", "cr\r#error", 'quo"te', "quo'te", "%s%n", "${X}",
    "$(rm)", "`rm`", "{{ name }}", "{% raw %}", "a;b;c", "\t\v\f", "\u00e9\u00e8", "\u540d\u524d", "\u202egnol",
    "\U0001f600", "\x1b[2J", "x" * 10_000, "x" * 10_000, "*/" * 5_000, b"\xff\xfe", b"nul\0inside", "INPUT_A_BYTES",
    "a_bytes", "StatefulPartitionedCall:0", "-1", "_Bool", "_Static_assert", "net_run", "tinyfuse_rows_slide",
]  # fmt: skip


def badly_named() -> bytes:
    """A RELU for each name, with input and output of that name, and a network whose tensors and constants all have such
    names."""
    model, inputs, outputs = ModelBuilder(), [], []
    for name in HOSTILE:
        inputs.append(model.tensor(name, (1, 3), scale=0.5, zero_point=1))
        outputs.append(model.tensor(name, (1, 3), scale=0.5, zero_point=1))
        model.op("RELU", inputs[-1:], outputs[-1:], table=False)
    for name in HOSTILE[::4]:
        constant = model.tensor(name, (4, 3), scale=0.5, zero_point=0, data=np.ones((4, 3), np.int8))
        outputs.append(model.tensor(name, (1, 4), scale=0.5, zero_point=1))
        model.op("FULLY_CONNECTED", [outputs[-2], constant, -1], outputs[-1:])
        outputs.append(model.tensor(name, (1, 3), scale=0.5, zero_point=1))
        constant = model.tensor(name, (3, 4), scale=0.5, zero_point=0, data=np.ones((3, 4), np.int8))
        model.op("FULLY_CONNECTED", [outputs[-2], constant, -1], outputs[-1:])
    return model.build(inputs, outputs)


@cache
def badly_named_plan() -> Plan:
    return plan_of(badly_named())


def test_hostile_tensor_names_give_exact_clean_c() -> None:
    """Compiled with every warning an error, and run under sanitizers."""
    assert_all_exact([badly_named_plan()])


def test_hostile_tensor_names_stay_in_their_places(tmp_path: Path) -> None:
    """Printable ASCII alone, no line too long to read; the header is C++ too."""
    plan = badly_named_plan()
    files = emit(plan, embedded_selftest(plan))
    for name, text in files.items():
        assert not set(text) - {"\n", *map(chr, range(32, 127))}, name
        assert "??" not in text, name
        assert max(map(len, text.splitlines())) < 400, name
    folder = write(tmp_path, files)
    (folder / "main.cpp").write_text('#include "net.h"\nint main() { return net_init(nullptr, 0) == NET_OK; }\n')
    compile_c(["g++", "-std=c++17", *WARNINGS, "-fsyntax-only", folder / "main.cpp"])


@cache
def planned() -> tuple[Plan, SelfTest]:
    """Compiles a module of any name."""
    plan = plan_of(network())
    return plan, embedded_selftest(plan)


@pytest.mark.parametrize(
    "file",
    ["int", "1*&", "", ".", "string", "math", "STDINT", "tinyfuse_copy", "tinyfuse", "arm_nnfunctions", "*/", '"',
     "\u00e9", "a b", "x" * 240, "-", "main", "CMakeLists"],
)  # fmt: skip
def test_a_module_called_after_any_file_compiles(tmp_path: Path, file: str) -> None:
    """Compiles in one folder with -I: the module's name must not collide with a header that it includes."""
    name = default_module_name(f"{tmp_path}/{file}.tflite")
    assert module_name(name) == name
    plan, selftest = planned()
    files = emit(replace(plan, options=replace(plan.options, name=name)), selftest)
    folder = write(tmp_path / "out", files)
    assert len({path.lower() for path in files}) == len(files)
    parts = [folder / part for part in (f"{name}.c", f"{name}_weights.c", f"{name}_selftest.c")]
    compile_c(["gcc", "-std=c99", *WARNINGS, f"-I{folder}", "-fsyntax-only", *parts])


@pytest.mark.parametrize("name", ["string", "Math", "stdint", "tinyfuse_copy", "tinyfuse_x", "arm_x", "cmsis_gcc"])
def test_a_name_that_hides_a_header_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="header"):
        module_name(name)


# --- numbers without a C literal ---------------------------------------------------------------


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_constants_that_are_not_finite(target: str) -> None:
    """Tests infinities and NaN, as in attention masks, in arrays and as arguments."""
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    numbers = np.float32([np.inf, -np.inf, np.nan, -3e38])
    model = ModelBuilder()
    x, added, padded = (model.tensor(name, (1, n), "float32") for name, n in (("x", 4), ("added", 4), ("padded", 6)))
    model.op("ADD", [x, model.tensor("c", (4,), "float32", data=numbers)], [added], fused_activation_function="NONE")
    around = model.tensor("around", (2, 2), "int32", data=np.int32([[0, 0], [1, 1]]))
    model.op("PADV2", [x, around, model.tensor("value", (), "float32", data=np.array(-np.inf, np.float32))], [padded])
    data = model.build([x], [added, padded])
    assert_exact(plan_of(data, target))
    assert_exact(plan_of(data, target, weights_blob=True))


@pytest.mark.parametrize("scale", [1e36, 3e38])
def test_scales_beyond_which_there_are_no_reals(scale: float) -> None:
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 4), scale=scale, zero_point=3) for name in "xy")
    model.op("RELU", [x], [y])
    assert_exact(plan_of(model.build([x], [y])))
