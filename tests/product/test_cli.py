"""The command line for users and scripts: output, JSON, exit codes, and which files are written."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from random_graphs import Sketch
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import how_to_get
from tinyfuse.verify.emulation.code_size import measure_code
from tinyfuse.verify.emulation.compilers import Compiler
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module

ROOT = Path(__file__).resolve().parents[2]
MODEL_COMMANDS = ("gen", "report", "explain", "verify", "profile", "run", "evaluate")
CROSS, QEMU = shutil.which("arm-none-eabi-gcc"), shutil.which("qemu-system-arm")
needs_qemu = pytest.mark.skipif(not (CROSS and QEMU), reason="no cross compiler, or no QEMU")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """Runs every test in a folder of its own with one small model and one that is refused."""
    monkeypatch.chdir(tmp_path)
    Path("small.tflite").write_bytes(small())
    Path("refused.tflite").write_bytes(refused())
    return tmp_path


def small() -> bytes:
    """Depthwise and pointwise convolution: one fusion group, one output."""
    sketch = Sketch(11)
    x = sketch.value((1, 8, 6, 4))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


def refused() -> bytes:
    """A model with two operators of unsupported kinds and one that breaks a rule."""
    model = ModelBuilder()
    x = model.tensor("first/x", (1, 4), scale=0.1, zero_point=0)
    y = model.tensor("first/y", (1, 4), scale=1 / 128, zero_point=0)
    z = model.tensor("second/z", (1, 4), scale=1 / 128, zero_point=0)
    s = model.tensor("third/s", (1, 4), scale=0.5, zero_point=7)  # SOFTMAX's is 1/256, -128
    model.op("SIGN", [x], [y], table=False)
    model.op("CUSTOM", [y], [z], custom_code="mine")
    model.op("SOFTMAX", [z], [s], beta=1.0)
    return model.build([x], [s])


def tinyfuse_(*arguments):
    """Runs one command in this process, through the program's entry point."""
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def program(*arguments, **options) -> subprocess.CompletedProcess:
    """Runs one command as a process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | options.pop("env", {})
    command = [sys.executable, "-m", "tinyfuse", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, **options)


def json_of(result) -> dict:
    """Parses stdout as JSON: one object, no other output, no NaN."""

    def no(constant):
        raise AssertionError(f"{constant} is no JSON")

    value = json.loads(result.stdout, parse_constant=no)
    assert isinstance(value, dict) and value["schema_version"] == 1
    assert value["tinyfuse_version"] == tinyfuse.__version__
    return value


def files_below(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}


BEFORE = {"small.tflite", "refused.tflite"}


# --- help and version --------------------------------------------------------------------------


def test_the_program_runs_as_a_module() -> None:
    done = program("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tinyfuse {tinyfuse.__version__}\n", "")


def test_a_command_imports_no_more_than_it_needs() -> None:
    """The version, shell completion and errors of options must be fast."""
    code = "import sys; from tinyfuse.cli.main import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "jinja2", "tinyfuse.compiler", "tinyfuse.kernels.registry"} & set(done.stdout.split())


def test_the_installed_command_is_the_same_entry_point() -> None:
    assert 'tinyfuse = "tinyfuse.cli.main:main"' in (ROOT / "pyproject.toml").read_text()


def test_every_example_of_the_help_is_a_valid_command_line() -> None:
    """Parses every command line in the examples of --help, without running it."""
    found = 0
    for text in (main.epilog, *(command.epilog for _, command in commands(main))):
        for line in (text or "").splitlines():
            if line.strip().startswith("tinyfuse "):
                _, *words = shlex.split(re.split(r" {2,}| [|>]+ ", line.strip())[0])
                command: click.Command = main
                while isinstance(command, click.Group):
                    command = command.commands[words.pop(0)]
                command.make_context(str(command.name), words)
                found += 1
    assert found > 50


def commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yields every command below a group that is not a group itself."""
    for name in group.list_commands(click.Context(group)):
        command = group.commands[name]
        if isinstance(command, click.Group):
            yield from commands(command)
        else:
            yield name, command


def test_help_lists_every_command_with_examples() -> None:
    text = tinyfuse_("--help").stdout
    assert "Examples:" in text and "Exit codes:" in text
    for command in (*MODEL_COMMANDS, "operators", "targets", "devices", "cmsis-nn", "doctor"):
        assert re.search(rf"^  {command} ", text, re.MULTILINE)
    for command in MODEL_COMMANDS:
        shown = tinyfuse_(command, "--help")
        assert shown.exit_code == 0 and f"tinyfuse {command} kws.tflite" in shown.stdout


def test_no_command_is_a_usage_error_that_shows_the_help() -> None:
    result = tinyfuse_()
    assert result.exit_code == 2 and "Commands:" in result.output


def test_the_list_of_commands_is_whole_and_imports_none() -> None:
    listed = re.findall(r"^  ([a-z-]+)  +\S.*[^.]\.$", tinyfuse_("--help").output.split("Commands:")[1], re.M)
    assert listed == [name for name in main.commands if not main.commands[name].hidden]
    told = "import sys, atexit; atexit.register(lambda: print('numpy' in sys.modules, file=sys.stderr))"
    code = f"{told}; from tinyfuse.cli.main import main; main(['--help'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "False\n")


def test_gen_report_and_verify_share_what_changes_the_code() -> None:
    def options(command):
        return {option for parameter in main.commands[command].params for option in parameter.opts}

    shared = {"--target", "--device", "--name", "--kernels", "--fusion", "--optimize", "--weights",
              "--cmsis-nn-version", "--cmsis-nn",
              "--max-ram", "--max-flash", "--json"}  # fmt: skip
    for command in MODEL_COMMANDS:
        assert shared <= options(command)


def test_targets() -> None:
    text = tinyfuse_("targets").stdout
    listed = json_of(tinyfuse_("targets", "--json"))["targets"]
    assert {"cortex-m4", "cortex-m55", "host"} <= {t["name"] for t in listed}
    lines = [line for line in text.splitlines() if "--timing" not in line]
    assert [line.split()[0] for line in lines] == [t["name"] for t in listed]
    assert "cortex-m4: --timing nucleo-l4r5zi: ST NUCLEO-L4R5ZI" in text
    for target in listed:
        emulated = target["qemu_machine"] is not None
        assert all((target[key] is not None) == emulated for key in ("qemu_tick_ns", "flash", "ram"))


# --- JSON against docs/json.md -----------------------------------------------------------------


def documented() -> dict[str, dict]:
    """Maps each section of docs/json.md to the keys in its table; each key maps to the keys of its objects, or None."""
    found: dict[str, dict] = {}
    for section in (ROOT / "docs" / "json.md").read_text().split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        keys = found.setdefault(title, {})
        for cell, meaning in re.findall(r"^\| (`.*?) \|(.*)\|$", body, re.MULTILINE):
            objects = re.match(r" `\[?\{(.*?)\}\]?`", meaning)
            names = re.findall(r"`([^`]+)`", cell)
            keys.update(dict.fromkeys(names, _nested(objects[1]) if objects else None))
    return found


def _nested(text: str) -> dict:
    """Parses the keys of "a, b [{c, d}], e"."""
    keys: dict[str, dict | None] = {}
    for name, inner in re.findall(r"(\w+)(?: \[\{([^}]*)\}\])?", text):
        keys[name] = _nested(inner) if inner else None
    return keys


def assert_keys(value, keys: dict | None, place: str = "") -> None:
    """Checks that `value`, and each object in it with documented keys, has exactly the documented keys."""
    if keys is None:
        return
    for item in value if isinstance(value, list) else [value]:
        assert set(item) == set(keys), place
        for name, inner in keys.items():
            if item[name] is not None:
                assert_keys(item[name], inner, f"{place}.{name}")


def expected_keys(*sections: str, without: tuple[str, ...] = ()) -> dict:
    told = documented()
    merged = {name: inner for section in sections for name, inner in told[section].items()}
    return {name: inner for name, inner in merged.items() if name not in without}


def test_report_json_is_what_the_docs_say() -> None:
    value = json_of(tinyfuse_("report", "small.tflite", "--target", "host", "--json"))
    keys = expected_keys("Every answer about a model", "report, and gen", without=("files", "output", "evidence"))
    assert len(keys) == 48
    assert_keys(value, keys)
    assert value["model"] == "small.tflite"
    assert value["model_sha256"] == hashlib.sha256(small()).hexdigest()
    assert value["target"] == "host"
    assert value["options"]["max_ram"] is None
    assert value["arena_lower_bound"] <= value["arena_bytes"] <= value["unfused_arena_bytes"]
    assert value["code_bytes_measured"] is False and value["code_bytes"] > 0
    (port,) = value["inputs"]
    assert (port["shape"], port["dtype"]) == ([1, 8, 6, 4], "int8")


@pytest.mark.parametrize("size", [1, 21, 22])
def test_the_lower_bound_of_a_minimal_arena_is_the_arena(size: int) -> None:
    """Both are rounded up to the size of a C array."""
    sketch = Sketch(1)
    a, b = sketch.value((1, size)), sketch.value((1, size))
    Path("odd.tflite").write_bytes(sketch.build([a, b], [sketch.add(a, b)]))
    value = json_of(tinyfuse_("report", "odd.tflite", "--target", "host", "--json"))
    assert value["placement_optimal"] is True
    assert value["arena_lower_bound"] == value["arena_bytes"]


def test_explain_json_is_what_the_docs_say() -> None:
    value = json_of(tinyfuse_("explain", "small.tflite", "--target", "cortex-m4", "--json"))
    assert_keys(value, expected_keys("Every answer about a model", "explain"))
    assert {fusion["taken"] for fusion in value["fusions"]} <= {True, False}
    text = tinyfuse_("explain", "small.tflite", "--target", "cortex-m4").stdout
    assert f"arena {value['arena_bytes']:,} bytes" in text


def test_report_pareto_is_a_table_and_a_list() -> None:
    command = ("report", "small.tflite", "--target", "cortex-m4", "--pareto")
    front = json_of(tinyfuse_(*command, "--json"))["pareto"]
    assert set(front[0]) == {
        "arena_bytes", "state_bytes", "predicted_instructions", "predicted_cycles", "macs", "slower", "groups",
        "optimize", "options",
    }  # fmt: skip
    assert f"{front[0]['arena_bytes']:,}" in tinyfuse_(*command).stdout
    by_cycles = tinyfuse_(*command, "--count", "cycles", "--timing", "nucleo-l4r5zi").stdout
    assert "est. cycles" in by_cycles and "ms at 120 MHz" in " ".join(by_cycles.split())
    refused = tinyfuse_(*command, "--fusion", "none")
    assert refused.exit_code == 2 and "--pareto needs --fusion rows" in refused.stderr


def test_gen_json_is_what_the_docs_say_and_its_hashes_are_the_files(folder: Path) -> None:
    value = json_of(tinyfuse_("gen", "small.tflite", "--target", "host", "--json", "-o", "out"))
    assert_keys(
        value, expected_keys("Every answer about a model", "report, and gen", without=("pareto", "passes", "costs"))
    )
    assert value["output"] == "out"
    written = {
        name: hashlib.sha256((folder / "out" / name).read_bytes()).hexdigest() for name in files_below(folder / "out")
    }
    assert value["files"] == written
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert manifest["files"] == {n: h for n, h in written.items() if n != "manifest.json"}


def test_verify_json_on_the_host_has_nulls_for_what_it_cannot_measure() -> None:
    """Runs a process, so that code is compiled at the level of users (compile_cache.py)."""
    result = program("verify", "small.tflite", "--target", "cortex-m4", "--emulator", "host", "--runs", "3", "--json")
    assert result.returncode == 0
    value = json_of(result)
    assert_keys(value, expected_keys("Every answer about a model", "verify"))
    assert value["exact"] is True and value["mismatches"] == 0 and value["problems"] == []
    assert value["outputs"] == 3 * 8 * 6 * 6
    for key in ("instructions", "ram_bytes", "stack_bytes", "flash_code_bytes", "flash_weight_bytes",
                "first_mismatch", "cmsis_nn"):  # fmt: skip
        assert value[key] is None, key
    assert value["target"] == "cortex-m4"
    assert any("module for cortex-m4" in warning for warning in value["warnings"])


@pytest.mark.emulated
@needs_qemu
def test_verify_json_emulated_has_every_figure_and_its_command_repeats_it(monkeypatch) -> None:
    Path("a b.tflite").write_bytes(small())
    result = tinyfuse_("verify", "a b.tflite", "--target", "cortex-m4", "--emulator", "qemu", "--runs", "2",
                       "--oracle", "tflm", "--seed", "5", "--kernels", "tinyfuse", "--json")  # fmt: skip
    value = json_of(result)
    assert_keys(value, expected_keys("Every answer about a model", "verify"))
    for key in ("instructions", "ram_bytes", "stack_bytes", "flash_code_bytes", "flash_weight_bytes"):
        assert value[key] > 0, key
    assert value["ram_bytes"] >= value["arena_bytes"]
    assert all(name.startswith("a_b_group_") and called for name, called in value["kernel_symbols"].items())
    words = shlex.split(value["command"])
    assert words[0] == "tinyfuse"
    again = json_of(tinyfuse_(*words[1:], "--json"))
    assert again == value


@pytest.mark.emulated
@needs_qemu
def test_profile_json_is_what_the_docs_say() -> None:
    result = tinyfuse_("profile", "small.tflite", "--target", "cortex-m4", "--kernels", "tinyfuse", "--json")
    keys = expected_keys("Every answer about a model", "profile")
    assert set(json_of(result)) == {name for name in keys if "[]" not in name}


@needs_qemu
def test_a_compiler_makes_the_code_size_a_measured_one() -> None:
    value = json_of(tinyfuse_("report", "small.tflite", "--target", "cortex-m4", "--kernels", "tinyfuse", "--json"))
    assert value["code_bytes_measured"] is True and 500 < value["code_bytes"] < 20_000


@needs_qemu
@pytest.mark.parametrize(
    "form", [{}, {"step": True}, {"weights_blob": True}], ids=lambda form: "".join(form) or "plain"
)
def test_the_code_size_is_that_of_firmware(tmp_path, form: dict) -> None:
    """Only the module's code is compiled to measure it; functions of its form count, too."""
    options = Options(name="small", kernels="tinyfuse", **form)
    plan = compile_graph(read_tflite("small.tflite"), load_target("cortex-m4"), options)
    firmware = build_module(plan, None, input_set(plan.source, 1, 0), "qemu", "O2", tmp_path / "firmware")
    assert measure_code(plan, None, tmp_path / "size").module == firmware.code_bytes


@needs_qemu
def test_what_the_linker_adds_is_told_and_counts(folder: Path) -> None:
    """Floats in software: __aeabi_fadd and its like, which no figure of the module has."""
    s = Sketch(5, dtype="float32")
    image = s.value((1, 6, 6, 2))
    (folder / "floats.tflite").write_bytes(s.build([image], [s.conv(image, 4, (3, 3), activation="RELU")]))
    command = ("floats.tflite", "--target", "cortex-m0plus", "--kernels", "tinyfuse")
    value = json_of(tinyfuse_("report", *command, "--json"))
    assert value["code_bytes_measured"] and value["helper_bytes"] > 1500
    told = " ".join(tinyfuse_("report", *command).stdout.split())
    assert f"{value['helper_bytes']:,} more for functions of the C library" in told
    flash = value["weight_bytes"] + value["code_bytes"] + value["helper_bytes"]
    for runs in (("report",), ("verify", "--runs", "1")):
        refused = tinyfuse_(*runs[:1], *command, *runs[1:], "--max-flash", flash - 1)
        assert refused.exit_code == 1 and "functions of the C library" in refused.stderr, refused.stderr
        assert f"--max-flash {flash} would fit" in refused.stderr
        assert tinyfuse_(*runs[:1], *command, *runs[1:], "--max-flash", flash).exit_code == 0
    with_fpu = json_of(tinyfuse_("report", "floats.tflite", "--target", "cortex-m4", "--json"))
    assert with_fpu["helper_bytes"] < 500


@needs_qemu
def test_code_is_measured_once(tmp_path, monkeypatch) -> None:
    """Later commands know the bytes, but not of other code, nor from a file that isn't theirs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiled: list[str] = []
    run = Compiler.run
    monkeypatch.setattr(Compiler, "run", lambda self, *rest: compiled.append(rest[1]) or run(self, *rest))
    command = ("report", "small.tflite", "--target", "cortex-m4", "--kernels", "tinyfuse", "--json")
    measured = json_of(tinyfuse_(*command))["code_bytes"]
    assert len(compiled) == 2  # the code, and linking it
    assert json_of(tinyfuse_(*command))["code_bytes"] == measured and len(compiled) == 2
    assert json_of(tinyfuse_(*command, "--weights", "unpacked"))["code_bytes"] != measured and len(compiled) == 4
    for kept in (tmp_path / "cache" / "tinyfuse" / "code_bytes").iterdir():
        kept.write_bytes(b"1e3\xff")
    assert json_of(tinyfuse_(*command))["code_bytes"] == measured and len(compiled) == 6


def test_floats_have_no_scale() -> None:
    model = ModelBuilder()
    x = model.tensor("x", (1, 4), "float32")
    q = model.tensor("q", (1, 4), scale=0.5, zero_point=3)
    model.op("QUANTIZE", [x], [q])
    Path("float.tflite").write_bytes(model.build([x], [q]))
    value = json_of(tinyfuse_("report", "float.tflite", "--target", "host", "--json"))
    assert (value["inputs"][0]["scale"], value["inputs"][0]["zero_point"]) == (None, None)
    assert (value["outputs"][0]["scale"], value["outputs"][0]["zero_point"]) == (0.5, 3)


def test_operators_json_is_what_the_docs_say() -> None:
    keys = documented()["operators"]
    for operator in json_of(tinyfuse_("operators", "--json"))["operators"]:
        assert_keys(operator, keys)


def test_targets_json_is_what_the_docs_say() -> None:
    keys = documented()["targets"]
    for target in json_of(tinyfuse_("targets", "--json"))["targets"]:
        assert_keys(target, keys)


ERRORS = {
    "unknown option": (["gen", "small.tflite", "--target", "host", "--nonsense"], "No such option"),
    "unknown command": (["generate", "small.tflite"], "No such command"),
    "no target": (["gen", "small.tflite"], "Missing option '--target'"),
    "no model": (["report", "--target", "host"], "Missing argument 'MODEL'"),
    "unknown target": (["gen", "small.tflite", "--target", "cortex-m1000"], "known targets: cortex-m0plus"),
    "bad kernels": (["gen", "small.tflite", "--target", "host", "--kernels", "best"], "'best'"),
    "bad version": (["gen", "small.tflite", "--target", "host", "--cmsis-nn-version", "3.0"], "'3.0'"),
    "bad name": (["gen", "small.tflite", "--target", "host", "--name", "2nd net"], "--name '2nd net'"),
    "empty name": (["gen", "small.tflite", "--target", "host", "--name", ""], "--name ''"),
    "name of a header": (["gen", "small.tflite", "--target", "host", "--name", "string"], "hide the header string.h"),
    "empty output": (["gen", "small.tflite", "--target", "host", "-o", ""], "-o '' names no folder"),
    "bad size": (["gen", "small.tflite", "--target", "host", "--max-ram", "much"], "'much' is not a size"),
    "negative size": (["gen", "small.tflite", "--target", "host", "--max-flash", "-1"], "not a size"),
    "no runs": (["verify", "small.tflite", "--target", "host", "--runs", "0"], "--runs"),
    "no number": (["gen", "small.tflite", "--target", "host", "--recompute", "nan"], "nan is not a finite number"),
    "endless": (["verify", "small.tflite", "--target", "host", "--timeout", "inf"], "inf is not a finite number"),
    "no number of milliseconds": (["front-end", "-o", "x", "--window", "nan"], "nan is not a finite number"),
    "negative seed": (["verify", "small.tflite", "--target", "host", "--seed", "-1"], "--seed"),
    "emulator without board": (["verify", "small.tflite", "--target", "host", "--emulator", "qemu"], "QEMU has no"),
    "no CMSIS-NN there": (["report", "small.tflite", "--target", "cortex-m4", "--kernels", "cmsis-nn",
                           "--cmsis-nn", "."], "holds no CMSIS-NN: no Include/arm_nnfunctions.h in the folder itself"),
    "no CMSIS-NN there, and none needed": (["gen", "small.tflite", "--target", "host", "--cmsis-nn", "."],
                                           "--cmsis-nn . holds no CMSIS-NN"),
    "no folder of CMSIS-NN": (["gen", "small.tflite", "--target", "host", "--cmsis-nn", "none"],
                              "--cmsis-nn none: there is no such file or folder"),
    "name that is a keyword": (["gen", "small.tflite", "--target", "host", "--name", "int"], "'int' is a keyword of C"),
    "missing model": (["gen", "none.tflite", "--target", "host"], "none.tflite: there is no such file"),
    "a folder": (["gen", ".", "--target", "host"], "not a regular file"),
    "unsupported": (["gen", "refused.tflite", "--target", "host"], "not supported"),
}  # fmt: skip


@pytest.mark.parametrize("arguments, message", ERRORS.values(), ids=ERRORS)
def test_every_usage_error_is_one_clear_message(folder: Path, arguments, message) -> None:
    """Exit code 2; text on stderr and nothing on stdout, or JSON on stdout and nothing on stderr."""
    plain = tinyfuse_(*arguments)
    assert (plain.exit_code, plain.stdout) == (2, "")
    assert message in plain.stderr and "Traceback" not in plain.stderr
    assert all(line.startswith("tinyfuse: ") for line in plain.stderr.splitlines())
    as_json = tinyfuse_(*arguments, "--json")
    assert (as_json.exit_code, as_json.stderr) == (2, "")
    error = json_of(as_json)["error"]
    assert error["exit_code"] == 2 and message in error["message"]
    assert files_below(folder) == BEFORE


def test_json_errors_have_the_documented_keys() -> None:
    text = (ROOT / "docs" / "json.md").read_text().partition("\n## Errors")[2]
    assert "error: {message, exit_code, model?, problems? [{message, operator, tensor, hint}]}" in text
    value = json_of(tinyfuse_("report", "refused.tflite", "--target", "host", "--json"))
    assert set(value) == {"schema_version", "tinyfuse_version", "error"}
    assert set(value["error"]) == {"message", "exit_code", "model", "problems"}
    for problem in value["error"]["problems"]:
        assert set(problem) == {"message", "operator", "tensor", "hint"}


def test_an_unsupported_model_tells_everything_at_once(folder: Path) -> None:
    result = tinyfuse_("gen", "refused.tflite", "--target", "host")
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("tinyfuse: refused.tflite: op ") for line in lines)
    assert "op 0 SIGN 'first/y': this operator is not supported" in lines[0]
    assert "op 1 CUSTOM mine 'second/z'" in lines[1] and "(hint: " in lines[1]
    assert "op 2 SOFTMAX 'third/s': tensor 3 'third/s' int8[1,4]" in lines[2] and "(hint: " in lines[2]
    error = json_of(tinyfuse_("gen", "refused.tflite", "--target", "host", "--json"))["error"]
    assert error["model"] == "refused.tflite"
    assert [p["operator"] for p in error["problems"]] == [
        "op 0 SIGN 'first/y'", "op 1 CUSTOM mine 'second/z'", "op 2 SOFTMAX 'third/s'"
    ]  # fmt: skip
    assert error["problems"][2]["tensor"] == "tensor 3 'third/s' int8[1,4]"
    assert files_below(folder) == BEFORE


@pytest.mark.parametrize("kept", [0, 7, 8, 100, -1])
def test_a_truncated_model_is_refused(folder: Path, kept: int) -> None:
    Path("cut.tflite").write_bytes(small()[:kept])
    result = tinyfuse_("gen", "cut.tflite", "--target", "host")
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("tinyfuse: cut.tflite: ") and "hint: " in result.stderr
    assert files_below(folder) == BEFORE | {"cut.tflite"}


# --- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["gen", "report", "verify"])
@pytest.mark.parametrize("option, told", [("--max-ram", "the arena takes"), ("--max-flash", "weights (")])
def test_what_does_not_fit_fails_before_anything_is_written(folder: Path, command, option, told) -> None:
    arguments = (command, "small.tflite", "--target", "host", option, "100")
    result = tinyfuse_(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr and f"{option} allows 100" in result.stderr
    error = json_of(tinyfuse_(*arguments, "--json"))["error"]
    assert error["exit_code"] == 1 and told in error["message"]
    assert files_below(folder) == BEFORE


def test_limits_are_inclusive_and_leave_an_old_folder_alone(folder: Path) -> None:
    arena = json_of(tinyfuse_("gen", "small.tflite", "--target", "host", "-o", "out", "--json"))["arena_bytes"]
    before = {name: (folder / "out" / name).stat().st_mtime_ns for name in files_below(folder / "out")}
    fits = tinyfuse_("report", "small.tflite", "--target", "host", "--max-ram", arena)
    assert fits.exit_code == 0
    too_large = tinyfuse_("gen", "small.tflite", "--target", "host", "-o", "out", "--max-ram", arena - 1)
    assert too_large.exit_code == 1
    assert before == {name: (folder / "out" / name).stat().st_mtime_ns for name in files_below(folder / "out")}


@pytest.mark.parametrize("size, wanted", [("1K", 1024), ("2KiB", 2048), (" 1M ", 1 << 20), ("3kb", 3072)])
def test_sizes_have_units(size, wanted) -> None:
    command = ("report", "small.tflite", "--target", "host", "--json", "--max-ram", size)
    assert json_of(tinyfuse_(*command))["options"]["max_ram"] == wanted


# --- the folder --------------------------------------------------------------------------------


def test_report_writes_nothing_and_gen_writes_its_folder_alone(folder: Path) -> None:
    shown = tinyfuse_("report", "small.tflite", "--target", "host")
    assert (
        shown.exit_code == 0 and shown.stderr == "" and "Arena: addresses upward, groups to the right" in shown.stdout
    )
    assert files_below(folder) == BEFORE
    made = tinyfuse_("gen", "small.tflite", "--target", "host")
    assert made.exit_code == 0 and made.stderr == ""
    assert made.stdout.startswith("small_tinyfuse: ") and "arena " in made.stdout
    new = files_below(folder) - BEFORE
    assert {name.split("/")[0] for name in new} == {"small_tinyfuse"}
    assert {f"small_tinyfuse/{n}" for n in ("small.h", "small.c", "small_weights.c", "small_weights.h",
                                            "CMakeLists.txt", "report.txt", "manifest.json")} <= new  # fmt: skip
    assert (folder / "small_tinyfuse" / "report.txt").read_text() == shown.stdout


def test_a_foreign_folder_needs_force(folder: Path) -> None:
    Path("src").mkdir()
    Path("src/theirs.c").write_text("precious")
    arguments = ("gen", "small.tflite", "--target", "host", "-o", "src")
    result = tinyfuse_(*arguments)
    assert result.exit_code == 2 and "--force" in result.stderr
    assert files_below(folder / "src") == {"theirs.c"}
    assert tinyfuse_(*arguments, "--force").exit_code == 0
    assert Path("src/theirs.c").read_text() == "precious"
    # from now on the folder is known, and other options replace what they change
    assert tinyfuse_(*arguments, "--fusion", "none").exit_code == 0


def test_our_folder_follows_the_name(folder: Path) -> None:
    for name in ("one", "two"):
        assert tinyfuse_("gen", "small.tflite", "--target", "host", "-o", "out", "--name", name).exit_code == 0
    names = files_below(folder / "out")
    assert "two.c" in names and not any(name.startswith("one") for name in names)


@pytest.mark.parametrize("output", ["small.tflite", "small.tflite/out"])
def test_a_file_in_the_way_is_left_alone(folder: Path, output: str) -> None:
    result = tinyfuse_("gen", "small.tflite", "--target", "host", "-o", output, "--force")
    assert result.exit_code == 2 and "small.tflite" in result.stderr
    assert files_below(folder) == BEFORE and Path("small.tflite").read_bytes() == small()


# --- tools that are missing --------------------------------------------------------------------


@pytest.mark.parametrize(
    "tools, missing",
    [((), "qemu-system-arm was not found: apt-get install"),
     (("qemu-system-arm",), "arm-none-eabi-gcc was not found: apt-get install")],
)  # fmt: skip
def test_a_missing_tool_is_named(folder: Path, monkeypatch, tools, missing) -> None:
    Path("bin").mkdir()
    for tool in tools:
        Path("bin", tool).write_text("#!/bin/sh\necho QEMU emulator version 7.2\n")
        Path("bin", tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    arguments = ("verify", "small.tflite", "--target", "cortex-m4", "--emulator", "qemu", "--kernels", "tinyfuse")
    result = tinyfuse_(*arguments)
    assert (result.exit_code, result.stdout) == (3, "") and missing in result.stderr
    assert json_of(tinyfuse_(*arguments, "--json"))["error"]["exit_code"] == 3


def test_a_bundle_without_cmsis_nn_says_how_to_get_it(folder: Path, monkeypatch) -> None:
    for name in ("CMSIS_NN_PATH", "CMSIS_PATH", "CMSIS_PACK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(folder / "home"))
    monkeypatch.setattr("tinyfuse.toolchain.cmsis_nn.find._bakenn", lambda: None)
    arguments = ("gen", "small.tflite", "--target", "cortex-m4", "--kernels", "cmsis-nn")
    result = tinyfuse_(*arguments, "--bundle")
    assert result.exit_code == 3 and "CMSIS-NN was not found: " in result.stderr
    assert files_below(folder) == BEFORE
    # without --bundle none is needed
    assert tinyfuse_(*arguments).exit_code == 0
    # where it was tinyfuse that chose its kernels, there is a way without
    way = "--kernels auto"
    assert way not in result.stderr and way in how_to_get("mixed") and way not in how_to_get("cmsis-nn")


# --- what a terminal shows ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a [dim] :car: [bold/].tflite", "caf\u00e9.tflite", "b\udcff.tflite"])
def test_odd_paths_are_shown_as_they_are(folder: Path, name: str) -> None:
    """On a terminal, where progress is shown too; the last name is not valid UTF-8."""
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(small())
    try:
        person, terminal = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a pseudo-terminal, which this system has not (/dev/pts): {error}")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8:strict"}
    try:
        command = [sys.executable, "-m", "tinyfuse", "gen", name, "--target", "host", "-o", f"out {name}"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=terminal, timeout=120)
        shown = os.read(person, 100_000).decode()
    finally:
        os.close(person)
        os.close(terminal)
    assert done.returncode == 0, shown
    readable = name.replace("\udcff", "\\udcff")
    assert f"reading {readable}" in shown and "planning for host" in shown
    assert done.stdout.decode().startswith(f"out {readable}: ")


def test_names_of_a_model_cannot_drive_the_terminal() -> None:
    model = ModelBuilder()
    evil = "\x1b[2J\x07\r\n[red]:car:"
    x = model.tensor(f"x{evil}", (1, 4), scale=0.5, zero_point=0)
    y = model.tensor(f"y{evil}", (1, 4), scale=0.5, zero_point=0)
    model.op("RELU", [x], [y], table=False)
    Path("evil.tflite").write_bytes(model.build([x], [y]))
    bad = ModelBuilder()
    t = bad.tensor(f"x{evil}", (1, 4), "int64", scale=0.5, zero_point=0)
    u = bad.tensor(f"y{evil}", (1, 4), "int64", scale=0.5, zero_point=0)
    bad.op("RELU", [t], [u], table=False)
    Path("bad.tflite").write_bytes(bad.build([t], [u]))
    for result in (
        tinyfuse_("report", "evil.tflite", "--target", "host"),
        tinyfuse_("gen", "evil.tflite", "--target", "host"),
        tinyfuse_("gen", "bad.tflite", "--target", "host"),
    ):
        assert not set(result.output) & set("\x1b\x07\r"), result.output
    assert tinyfuse_("gen", "bad.tflite", "--target", "host").exit_code == 2


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_full_disk_is_one_line(as_json: list[str]) -> None:
    command = [sys.executable, "-m", "tinyfuse", "report", "small.tflite", "--target", "host", *as_json]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "tinyfuse: No space left on device\n")


@pytest.mark.parametrize(("target", "code"), [("host", 0), ("hosts", 2)])
def test_closed_streams_are_no_traceback(target: str, code: int) -> None:
    command = f"{shlex.quote(sys.executable)} -m tinyfuse report small.tflite --target {target} >&- 2>&-"
    done = subprocess.run(["bash", "-c", command], env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=60)
    assert done.returncode == code


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    command = f"{shlex.quote(sys.executable)} -m tinyfuse report small.tflite --target host | true"
    done = subprocess.run(["bash", "-c", command], env=os.environ | {"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_feed_rows_is_an_option_of_what_generates_code() -> None:
    value = json_of(tinyfuse_("report", "small.tflite", "--target", "host", "--feed-rows", "--json"))
    assert value["options"]["feed_rows"] is True and value["fed_input"] == value["inputs"][0]["name"]
    assert "is passed row by row" in tinyfuse_("report", "small.tflite", "--target", "host", "--feed-rows").stdout
    assert tinyfuse_("gen", "small.tflite", "--target", "host", "--feed-rows").exit_code == 0
    assert "small_feed_rows" in Path("small_tinyfuse/small.h").read_text()
    done = tinyfuse_("profile", "small.tflite", "--target", "cortex-m4", "--feed-rows")
    assert done.exit_code == 2 and "NAME_run" in done.output


def test_report_draws_the_arena_and_the_rows() -> None:
    from xml.etree import ElementTree

    done = tinyfuse_("report", "small.tflite", "--target", "host", "--svg", "a.svg", "--rows-svg", "r.svg")
    assert done.exit_code == 0
    texts = [
        [e.text for e in ElementTree.parse(name).iter("{http://www.w3.org/2000/svg}text")]
        for name in ("a.svg", "r.svg")
    ]
    assert texts[0][0].startswith("Arena: ")
    assert any("DEPTHWISE_CONV_2D" in text for text in texts[1])
    tinyfuse_(
        "report", "small.tflite", "--target", "host", "--fusion", "none", "--kernels", "cmsis-nn", "--rows-svg", "n.svg"
    )
    ElementTree.parse("n.svg")


def test_the_commands_of_the_docs_draw_their_pictures(folder: Path) -> None:
    text = (ROOT / "docs" / "fusion.md").read_text().replace("\\\n", " ")
    for command in re.findall(r"^tinyfuse (report .*)$", text, re.MULTILINE):
        words = shlex.split(command.replace("docs/images/", "").replace("examples/", f"{ROOT}/examples/"))
        assert tinyfuse_(*words).exit_code == 0
    assert set(re.findall(r"\(images/(.*?)\)", text)) == {path.name for path in folder.glob("*.svg")}


def test_every_picture_of_the_docs_is_shown() -> None:
    shown = {
        name for page in (ROOT / "docs").glob("*.md") for name in re.findall(r"\(images/(.*?)\)", page.read_text())
    }
    assert shown == {picture.name for picture in (ROOT / "docs/images").iterdir()}
