"""Errors that a newcomer meets first: each names the cause and a next step that works."""

from __future__ import annotations

import io
import json
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from executors import plan_of
from random_graphs import Sketch
from tflite_builder import ModelBuilder

from tinyfuse.chip_families import _BY_TARGET, FAMILIES, find_family
from tinyfuse.cli.main import main
from tinyfuse.errors import MOST_LINES, CompileError, Problem, ToolMissing, UsageError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.targets import all_targets, load_target
from tinyfuse.toolchain import devices, packages
from tinyfuse.toolchain.devices import find_device


def small() -> bytes:
    sketch = Sketch(11)
    x = sketch.value((1, 40, 6, 4))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


def refusal(data: bytes, path: str = "m.tflite") -> CompileError:
    with pytest.raises(CompileError) as caught:
        check(fold_constants(read_tflite(path, data)))
    return caught.value


# --- files of other formats --------------------------------------------------------------------


def archive(*names: str) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return memory.getvalue()


C_ARRAY = b"#include <cstdint>\nalignas(16) const unsigned char g_model[] = {\n  0x1c, 0x00, 0x00, 0x00, 0x54, 0x46,\n"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 333288\n"


@pytest.mark.parametrize(
    ("data", "name", "what", "way"),
    [
        (LFS, "m.tflite", "Git LFS pointer", "git lfs pull"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "m.h5", "HDF5", "from_keras_model"),
        (archive("metadata.json", "config.json", "model.weights.h5"), "m.keras", ".keras", "from_keras_model"),
        (archive("m/data.pkl", "m/version"), "m.pt", "PyTorch", "litert-torch"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(9), "m.pth", "PyTorch", "tinyfuse quantize"),
        (b"\x80\x04\x95" + bytes(99), "m.pkl", "pickle", "torch.onnx"),
        (archive("a/model.tflite"), "m.zip", "with a .tflite file in it", "unpack it"),
        (archive("a/saved_model.pb"), "m.zip", "SavedModel", "from_saved_model"),
        (archive("x.txt"), "m.zip", "a ZIP archive", "give a .tflite"),
        (b"PK\x03\x04" + bytes(100), "m.zip", "a ZIP archive", "give a .tflite"),
        (b"\x08\x08\x12\x07pytorch\x1a\x051.13:" + bytes(20), "m.bin", "looks like an ONNX", "quantize_static"),
        (b"\x0a\x03abc", "m.onnx", "an ONNX model", "quantize_static"),
        (
            b"\x08\x08\x12\x07pytorch" + bytes(9) + b"\x22\x0eQuantizeLinear",
            "m.onnx",
            "quantized already",
            "tinyfuse gen",
        ),
        (b"\x0a\x03abc\x22\x0bQLinearConv", "m.onnx", "quantized already", "tinyfuse gen"),
        (b"\x10\0\0\0ET12" + bytes(99), "m.pte", "ExecuTorch", "tinyfuse gen"),
        (
            archive("m/archive_format", "m/models/model.json", "m/data/weights/data.pkl"),
            "m.pt2",
            "torch.export",
            "CortexMPassManager",
        ),
        (archive("serialized_exported_program.json", "version"), "m.pt2", "torch.export", "litert-torch"),
        (b"\x0a\x03abc", "x/saved_model.pb", "SavedModel", "from_saved_model"),
        (b"\x0a\x03abc", "frozen.pb", "frozen TensorFlow graph", "from_frozen_graph"),
        (C_ARRAY, "model.cc", "C array", "0x"),
        (b"\n<!DOCTYPE html>"[1:] + bytes(9), "m.tflite", "web page", "raw form"),
        (b"\x1f\x8b\x08" + bytes(9), "m.tar.gz", "gzip", "unpack it"),
        (b"just a text, and no model", "m.txt", "no TFL3 identifier", "give a .tflite"),
    ],
)
def test_other_formats_are_named(data: bytes, name: str, what: str, way: str) -> None:
    (problem,) = refusal(data, name).problems
    assert what in problem.message and way in problem.hint
    if "converter" in problem.hint:
        assert "representative_dataset" in problem.hint or way == "give a .tflite"


def test_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="not a regular file"):
        read_tflite(tmp_path)
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(CompileError, match="SavedModel.*from_saved_model"):
        read_tflite(tmp_path)


def test_the_way_back_from_a_c_array_works() -> None:
    """The command of the hint, on what `xxd -i` writes."""
    data = small()
    lines = ",\n  ".join(f"0x{byte:02x}" for byte in data)
    text = f"unsigned char model[] = {{\n  {lines}\n}};\nunsigned int model_len = {len(data)};\n"
    (problem,) = refusal(text.encode(), "model.cc").problems
    code = re.search(r'python3 -c "(.*)" < model.cc', problem.hint)[1]
    done = subprocess.run([sys.executable, "-c", code], input=text.encode(), capture_output=True, check=True)
    assert done.stdout == data


# --- models that aren't int8 -------------------------------------------------------------------


def network(data: str, weights: str, layers: int = 40, kind: str = "CONV_2D") -> bytes:
    """Convolutions and RELUs of these dtypes."""
    model = ModelBuilder()
    scales = {"scale": 0.5, "zero_point": 0} if data != "float32" else {}
    first = x = model.tensor("x", (1, 4, 4, 2), data, **scales)
    values = np.ones((2, 1, 1, 2), weights)
    for number in range(layers):
        quantized = {} if weights.startswith("float") else {"scale": 0.5, "zero_point": 0}
        w = model.tensor(f"w{number}", (2, 1, 1, 2), weights, data=values, **quantized)
        if weights == "float16":
            w, half = model.tensor(f"f{number}", (2, 1, 1, 2), "float32"), w
            model.op("DEQUANTIZE", [half], [w])
        y = model.tensor(f"y{number}", (1, 4, 4, 2), data, **scales)
        model.op(kind, [x, w, -1], [y], stride_h=1, stride_w=1)
        x = model.tensor(f"z{number}", (1, 4, 4, 2), data, **scales)
        model.op("RELU", [y], [x])
    return model.build([first], [x])


@pytest.mark.parametrize(
    ("data", "weights", "what"),
    [
        ("float32", "int8", "this is a dynamic-range quantized model"),
        ("float32", "uint8", "this is a dynamic-range quantized model"),
    ],
)
def test_the_sort_of_model_comes_first_and_the_rest_is_short(data: str, weights: str, what: str) -> None:
    error = refusal(network(data, weights))
    first, *others = error.problems
    assert what in first.message and first.operator is None
    for setting in ("representative_dataset", "supported_ops", "inference_input_type"):
        assert setting in first.hint
    assert len(others) >= 40  # every reason is there for --json
    lines = str(error).splitlines()
    assert what in lines[0] and len(lines) <= 6 and len(str(error)) < 2500
    hints = re.findall(r"\(hint: .*\)$", str(error), re.MULTILINE)
    assert len(set(hints)) == len(hints)


@pytest.mark.parametrize(("data", "weights"), [("float32", "float32"), ("float32", "float16"), ("int16", "int8")])
def test_models_of_other_dtypes_compile(data: str, weights: str) -> None:
    assert plan_of(network(data, weights, layers=2)).groups


def test_a_partly_quantized_model_says_how_much(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.tensor("x", (1, 4), scale=0.5, zero_point=0)
    w = model.tensor("w", (4, 4), scale=0.5, zero_point=0, data=np.ones((4, 4), np.int8))
    y = model.tensor("y", (1, 4), scale=0.5, zero_point=0)
    f, z = (model.tensor(name, (1, 4), "float32") for name in "fz")
    v = model.tensor("v", (4, 4), scale=0.5, zero_point=0, data=np.ones((4, 4), np.int8))
    model.op("FULLY_CONNECTED", [x, w, -1], [y])
    model.op("DEQUANTIZE", [y], [f])
    model.op("FULLY_CONNECTED", [f, v, -1], [z])
    assert "1 of its 2 layers" in str(refusal(model.build([x], [z])))


def test_int8_models_are_refused_for_what_they_break_alone() -> None:
    model = ModelBuilder()
    x = model.tensor("x", (1, 4), scale=0.5, zero_point=0)
    y = model.tensor("y", (1, 4), scale=0.5, zero_point=0)
    model.op("SIGN", [x], [y], table=False)
    (problem,) = refusal(model.build([x], [y])).problems
    assert "not supported" in problem.message


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("ethos-u", "Vela was given"),
        ("edgetpu-custom-op", "edgetpu_compiler was given"),
        ("XC_conv2d_v2", "xmos-ai-tools was given"),
        ("NeutronGraph", "neutron-converter was given"),
    ],
)
def test_compiled_models_get_one_sentence(code: str, what: str) -> None:
    """Vela's scratch tensors are read and never made, and its command stream is uint8: neither is the matter."""
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 4), scale=0.5, zero_point=0) for name in "xy")
    stream = model.tensor("stream", (16,), "uint8", data=np.zeros(16, np.uint8))
    scratch, fast = (model.tensor(name, (1 << 20,), "uint8") for name in ("scratch", "scratch_fast"))
    model.op("CUSTOM", [stream, scratch, fast, x], [y], custom_code=code, custom_options=b"\1\4\1")
    (problem,) = refusal(model.build([x], [y])).problems
    assert what in problem.hint and "damaged" not in str(problem)


def test_many_different_reasons_are_counted(tmp_path: Path) -> None:
    model = ModelBuilder()
    first = x = model.tensor("x", (1, 4), scale=0.5, zero_point=0)
    for number in range(2 * MOST_LINES):
        y = model.tensor(f"y{number}", (1, 4), scale=0.5, zero_point=0)
        if number % 2:
            model.op("SOFTMAX", [x], [y])
        else:
            model.op("CUSTOM", [x], [y], custom_code=f"c{number}")
        x = y
    path = tmp_path / "m.tflite"
    path.write_bytes(model.build([first], [x]))
    shown = CliRunner().invoke(main, ["gen", str(path), "--target", "host"])
    assert shown.exit_code == 2 and len(shown.stderr.splitlines()) <= MOST_LINES + 1
    answer = CliRunner().invoke(main, ["gen", str(path), "--target", "host", "--json"])
    assert len(json.loads(answer.stdout)["error"]["problems"]) == 2 * MOST_LINES


def test_lines_name_places_and_count_the_rest() -> None:
    alike = [Problem("is odd", operator=f"op {i}", hint="make it even") for i in range(9)]
    one = Problem("is bad", tensor="tensor 1", hint="make it even")
    assert str(CompileError("m", [*alike, one])).splitlines() == [
        "m: op 0: is odd; so with op 1, op 2, op 3, 5 more (hint: make it even)",
        "m: tensor 1: is bad",
    ]
    many = [Problem(f"reason {i}") for i in range(MOST_LINES + 2)]
    assert str(CompileError("m", many)).endswith("m: and 2 more reasons: --json shows all")


# --- targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "target"),
    [("Cortex-M4", "cortex-m4"), ("cortexm4", "cortex-m4"), ("CORTEX_M55", "cortex-m55"), ("m7", "cortex-m7"),
     ("cortex-m4f", "cortex-m4"), ("Cortex-M0+", "cortex-m0plus"), ("Cortex-M33+NoFP", "cortex-m33+nofp"),
     ("Host", "host")],
)  # fmt: skip
def test_targets_are_known_however_they_are_written(name: str, target: str) -> None:
    assert load_target(name).name == target


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("cortex-m0", "--target cortex-m0plus makes code that a Cortex-M0 runs"),
        ("CortexM23", "--target cortex-m0plus makes code that a Cortex-M23 runs: Armv8-M Baseline"),
        ("cortex-m1", "--target cortex-m0plus"),
        ("cortex-m35p", "--target cortex-m33"),
        ("cortex-m52", "--target cortex-m55"),
        ("stm32f4", "--device: `tinyfuse devices stm32f4`"),
        ("nRF52840", "--device: `tinyfuse devices nRF52840`"),
        ("stm32f446", "for STM32F4 give --target cortex-m4, or --device"),
        ("nrf5340", "cortex-m33 (its network core has neither"),
        ("RP2040", "for RP2040 give --target cortex-m0plus"),
        ("rp2350", "its RISC-V cores take generic32"),
        ("ESP32-S3", "for ESP32 give --target generic32 (with --format esp-idf"),
        ("atmega328p", "no target fits ATMEGA (generated code needs an int of 32 bits)"),
        ("cortex-m44", "did you mean cortex-m4?"),
        ("cortex-m33f", "did you mean cortex-m33?"),
        ("cortex-a53", "known targets: cortex-m0plus"),
        ("riscv", "known targets: cortex-m0plus"),
        ("", "known targets: cortex-m0plus"),
    ],
)
def test_other_targets_get_advice(name: str, advice: str) -> None:
    with pytest.raises(UsageError, match=re.escape(advice)):
        load_target(name)


def test_families_name_targets_that_are_there() -> None:
    assert set(FAMILIES.values()) <= set(all_targets())
    named = [find_family(name).note for name in FAMILIES if find_family(name).note]
    for target in re.findall(r"cortex-m\w+(?:\+\w+)*", " ".join(named)):
        assert target in all_targets()
    written = " ".join(_BY_TARGET.values()).split()
    assert len(set(written)) == len(written)


def test_a_device_without_any_data_is_told_by_its_family(monkeypatch) -> None:
    """Offline, and without cmsis-pack-manager."""

    def nothing(*_: object) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(devices, "open_cache", lambda: SimpleNamespace(index={}))
    monkeypatch.setattr(devices, "update_descriptions", nothing)
    with pytest.raises(ToolMissing, match="can't be reached.*for STM32F4 give --target cortex-m4"):
        find_device("STM32F446RE", print)
    with pytest.raises(ToolMissing, match="can't be reached; name a --target"):
        find_device("XYZ1", print)
    with pytest.raises(UsageError, match="no CMSIS-Pack describes 'esp32c3'; for ESP32 give --target generic32"):
        find_device("esp32c3", print)

    def missing() -> None:
        raise ToolMissing("cmsis-pack-manager", "install it")

    monkeypatch.setattr(devices, "open_cache", missing)
    with pytest.raises(ToolMissing, match="install it; .*for NRF52 give --target cortex-m4"):
        find_device("nRF52840", print)


# --- words of other tools ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "command"),
    [("generate", "gen"), ("compile", "gen"), ("analyze", "report"), ("validate", "verify"), ("benchmark", "profile")],
)
def test_commands_of_other_tools_are_told(word: str, command: str) -> None:
    shown = CliRunner().invoke(main, [word, "m.tflite"])
    assert shown.exit_code == 2 and f"'{word}'; did you mean '{command}'?" in shown.stderr


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("keil", "give cmsis-pack"), ("IAR", "give cmsis-pack"), ("stm32cubeide", "source folder and an include path"),
        ("ncs", "give zephyr"), ("nrf_connect", "give zephyr"), ("espidf", "give esp-idf"),
    ],
)  # fmt: skip
def test_build_systems_without_a_form_are_told(name: str, way: str) -> None:
    shown = CliRunner().invoke(main, ["gen", "m.tflite", "--target", "cortex-m4", "--format", name])
    assert shown.exit_code == 2 and way in shown.stderr and "docs/firmware-projects.md" in shown.stderr


def test_lists_of_tensors_lead_to_a_fixed_batch() -> None:
    """TensorFlow 2.21 makes them of Keras 3's LSTM and GRU where the batch is open."""
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 4), scale=0.5, zero_point=0) for name in "xy")
    items = model.tensor("items", (), "variant")
    model.op("CUSTOM", [x], [items], custom_code="FlexTensorListReserve")
    model.op("CUSTOM", [items], [y], custom_code="FlexTensorListStack")
    (problem,) = refusal(model.build([x], [y])).problems
    assert (
        "Keras 3" in problem.message
        and "batch_shape=(1, ...)" in problem.hint
        and "TF_USE_LEGACY_KERAS=1" in problem.hint
    )


# --- what would fit ----------------------------------------------------------------------------


def options_told(text: str) -> list[tuple[list[str], int]]:
    """Options that a message names, with the bytes that it says they take."""
    found = re.findall(r"(--[a-z][^;]*?) takes ([\d,]+) bytes", text.partition("needs at least")[2])
    return [(flags.split(), int(size.replace(",", ""))) for flags, size in found]


def test_too_little_ram_says_what_would_do(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(small())
    command = ["report", str(path), "--target", "cortex-m4", "--kernels", "tinyfuse"]
    shown = CliRunner().invoke(main, [*command, "--max-ram", "100"])
    assert shown.exit_code == 1
    told = options_told(shown.stderr)
    assert ["--feed-rows", "--optimize", "ram"] in [flags for flags, _ in told]
    for flags, size in told:
        fitting = CliRunner().invoke(main, [*command, *flags, "--max-ram", str(size), "--json"])
        assert fitting.exit_code == 0
        assert json.loads(fitting.stdout)["arena_bytes"] == size


def test_nothing_is_tried_that_takes_long(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tinyfuse.cli.fitting.MOST_OPERATORS", 1)
    path = tmp_path / "m.tflite"
    path.write_bytes(small())
    command = ["report", str(path), "--target", "cortex-m4", "--kernels", "tinyfuse", "--max-ram", "100"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 1 and shown.stderr.rstrip().endswith("; --optimize ram may take less")
    assert "may take less" not in CliRunner().invoke(main, [*command, "--optimize", "ram"]).stderr


def test_options_that_do_not_work_for_the_model_are_not_named(tmp_path: Path) -> None:
    """A fully connected layer has no rows to feed."""
    sketch = Sketch(3)
    x = sketch.value((1, 64))
    path = tmp_path / "m.tflite"
    path.write_bytes(sketch.build([x], [sketch.fully_connected(x, 32)]))
    command = ["report", str(path), "--target", "cortex-m4", "--kernels", "tinyfuse", "--max-ram", "10"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 1 and "neither --optimize ram nor --feed-rows takes less" in shown.stderr
    (least,) = re.findall(r"; nothing that was tried fits: ([\d,]+) is the least\n", shown.stderr)
    fits = [*command[:-1], least.replace(",", "")]
    assert CliRunner().invoke(main, fits).exit_code == 0


# --- missing tools -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "release", "program", "command"),
    [
        ("linux", {"ID": "debian"}, "arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"),
        ("linux", {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "cmake", "apt-get install cmake"),
        ("linux", {"ID": "fedora"}, "newlib", "dnf install arm-none-eabi-gcc-cs arm-none-eabi-newlib"),
        ("linux", {"ID": "arch"}, "qemu-system-arm", "pacman -S qemu-system-arm"),
        ("linux", {"ID": "plan9"}, "qemu-system-arm", "https://www.qemu.org/download (on Debian: apt-get install"),
        ("linux", None, "cmake", "https://cmake.org/download"),
        ("darwin", None, "arm-none-eabi-gcc", "brew install --cask gcc-arm-embedded"),
        ("darwin", None, "qemu-system-arm", "brew install qemu"),
        ("darwin", None, "gcc", "xcode-select --install"),
        ("win32", None, "arm-none-eabi-objdump", "winget install Arm.GnuArmEmbeddedToolchain"),
        ("win32", None, "cmake", "winget install Kitware.CMake"),
    ],
)
def test_missing_tools_are_told_for_the_system(monkeypatch, system, release, program, command) -> None:
    def of_this_machine() -> dict[str, str]:
        if release is None:
            raise OSError
        return release

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "freedesktop_os_release", of_this_machine)
    assert command in packages.how_to_get(program)


def test_every_tool_is_known_everywhere() -> None:
    """No system lacks a command, and no file beside packages.py has one of its own."""
    for program in ("arm-none-eabi-gcc", "newlib", "arm-none-eabi-objdump", "qemu-system-arm", "gcc", "cmake"):
        assert packages.how_to_get(program)
    sources = Path(packages.__file__).parents[1].rglob("*.py")
    assert [p.name for p in sources if re.search(r"apt(-get)? install|\"apt-get", p.read_text())] == ["packages.py"]
