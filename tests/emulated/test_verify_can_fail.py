"""`verify` sees a module that is wrong: one weight, one rounding constant, one byte outside the arena,
a crash, a hang, each promise of the header; state that is not reset, is shared by instances, or is written
after its end. tests/emulated/test_mutations.py seeds many more faults."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from executors import plan_of
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from test_emulation import emulated
from test_mutations import Subject, subject_of

from tinyfuse.cli.main import main
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer
from tinyfuse.cli.verify import verify as verify_request
from tinyfuse.emit import emit
from tinyfuse.errors import EmulationFailed
from tinyfuse.options import VerifyOptions
from tinyfuse.verify.emulation import module


def separable() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 6, 5, 4))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


@pytest.fixture
def model(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)  # the input of an endless inference is saved here
    path = tmp_path / "net.tflite"
    path.write_bytes(separable())
    return str(path)


@cache
def promising() -> Subject:
    return subject_of(plan_of(separable(), "cortex-m4", kernels="tinyfuse"), runs=4)


def verify(model: str, emulator: str = "qemu", timeout: float = 60.0) -> Answer:
    request = Request(model, "cortex-m4", name="net", kernels="tinyfuse")
    how = VerifyOptions(emulator=emulator, oracle="tflm", runs=4, compiler_opt="O1", timeout=timeout)
    return verify_request(request, lambda text: None, how)


def corrupt(monkeypatch, file: str, change: Callable[[str], str]) -> None:
    """Passes the text of one generated file through `change`, which must alter it."""
    emit = module.emit

    def wrong(plan):
        files = emit(plan)
        changed = change(files[file])
        assert changed != files[file]
        return files | {file: changed}

    monkeypatch.setattr(module, "emit", wrong)


def test_an_unspoilt_module_is_exact(model) -> None:
    answer = verify(model)
    assert answer.exact and answer.data["mismatches"] == 0 and not answer.data["problems"]


def test_one_wrong_weight_is_seen(model, monkeypatch) -> None:
    def change(text: str) -> str:
        start = text.index("{\n", text.index("_weights[")) + 2
        number = re.search(r"-?\d+", text[start:])
        value = int(number[0])
        return (
            text[: start + number.start()] + str(value - 90 if value > 0 else value + 90) + text[start + number.end() :]
        )

    corrupt(monkeypatch, "net_weights.c", change)
    answer = verify(model)
    assert not answer.exact and answer.data["mismatches"] > 0
    first = answer.data["first_mismatch"]
    assert first["computed"] != first["expected"]
    assert any(line.startswith("repeat with: tinyfuse verify") for line in answer.lines)


def test_one_wrong_rounding_constant_is_seen(model, monkeypatch) -> None:
    def change(text: str) -> str:
        start = text.index("{\n", text.index("_channels[")) + 2
        record = re.search(r"\{(-?\d+), (-?\d+), (-?\d+)\}", text[start:])
        bias, multiplier, shift = map(int, record.groups())
        wrong = f"{{{bias}, {multiplier}, {shift + 1}}}"
        return text[: start + record.start()] + wrong + text[start + record.end() :]

    corrupt(monkeypatch, "net_weights.c", change)
    assert verify(model).data["mismatches"] > 0


@pytest.mark.parametrize("where", ["arena[-1]", "arena[NET_ARENA_BYTES]"])
def test_one_byte_outside_the_arena_is_seen(model, monkeypatch, where: str) -> None:
    def change(text: str) -> str:
        # after the last group, so that nothing overwrites it
        return text.replace(
            "    NET_GROUP_END(0);", f"    {where.replace('arena', 'bytes')} ^= 1;\n    NET_GROUP_END(0);"
        )

    corrupt(monkeypatch, "net.c", change)
    answer = verify(model)
    assert not answer.exact and answer.data["problems"]


@pytest.mark.parametrize(("_", "emulator"), [emulated("cortex-m4", name) for name in ("qemu", "renode")])
@pytest.mark.parametrize(
    ("statement", "timeout"),
    [
        ("*(volatile uint32_t *)0xF0000000u = 1u;", 60.0),
        ("*(volatile uint32_t *)0x30000000u = *(volatile uint32_t *)0xF0000000u;", 60.0),
        ("for (;;) { }", 0.5),
    ],
    ids=["write", "read", "hang"],
)
def test_a_crash_and_a_hang_are_said(model, monkeypatch, statement: str, timeout: float, _: str, emulator: str) -> None:
    corrupt(monkeypatch, "net.c", lambda text: text.replace("    NET_GROUP_BEGIN(0);", f"    {statement}", 1))
    with pytest.raises(EmulationFailed) as failure:
        verify(model, emulator, timeout)
    assert failure.value.exit_code == 4


def test_the_input_of_an_endless_inference_is_saved(model, monkeypatch) -> None:
    """The third run's input, zero points alone, is the first that does not end."""
    fault = f"if (*(const int8_t *)net_input(arena, 0) == {promising().inputs[2][0].flat[0]}) {{ for (;;) {{ }} }}"
    begin = "    NET_GROUP_BEGIN(0);"
    corrupt(monkeypatch, "net.c", lambda text: text.replace(begin, f"    {fault}\n{begin}", 1))
    with pytest.raises(EmulationFailed, match="did not end within") as failure:
        verify(model, "qemu", 1.0)
    words = shlex.split(str(failure.value).split("repeat with: tinyfuse ")[1])
    saved = np.load("net_timeout.npz")
    assert [saved[name].tolist() for name in saved.files] == [[promising().inputs[2][0].tolist()]]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "seen"),
    [
        ("net.h", r"(_SCALE 0\.\d)\d", r"\g<1>", "NET_INPUT_V1_SCALE == 0x"),
        ("net.h", r"(_STACK_BYTES )\d+", r"\g<1>9999", "stack_bytes_otherwise == "),
        ("net.h", r"(#else\n.*_STACK_BYTES )\d+", r"\g<1>9999", "NET_STACK_BYTES == "),
        ("net.h", r"(_SHAPE \{1, )6", r"\g<1>7", "sizeof shape == sizeof expected"),
        (
            "net.c",
            r"return \(int8_t \*\)net_input",
            "return 1 + (int8_t *)net_input",
            "net_input_v1(arena) == arena + ",
        ),
        ("net.c", r"if \(bytes < \(size_t\)NET_ARENA_BYTES\)", "if (bytes == 0u)", "NET_ERROR_SIZE"),
        (
            "net.c",
            r"(net_output_bytes\(size_t index\)\n\{\n.*\n    case 0: return )\d+u",
            r"\g<1>1u",
            "net_output_bytes(0) == ",
        ),
        ("net_weights.c", r"(\n    \{-?\d+, -?\d+)(\d),", r"\g<1>7,", "are not the plan's"),
        (
            "net.c",
            r"(?=    NET_GROUP_END\(0\);)",
            "    bytes[NET_ARENA_BYTES + 9999] = 1;\n",
            "changed memory that nothing uses",
        ),
        (
            "net.c",
            r"(?=    NET_GROUP_END\(0\);)",
            # the stack of the fault handlers lies before the arena's guard
            "    bytes[-9000] = 1;\n",
            "changed memory that nothing uses",
        ),
        ("net.c", r"(?=    NET_GROUP_END\(0\);)", "    {static int runs; ++runs;}\n", "changed a static variable"),
    ],
    ids=[
        "scale",
        "stack at other levels",
        "stack",
        "shape",
        "accessor",
        "size",
        "output bytes",
        "multiplier",
        "far write",
        "far write below",
        "variable",
    ],
)
def test_broken_promises_are_problems(tmp_path, file: str, old: str, new: str, seen: str) -> None:
    """All outputs are right here. Calls the check directly; the tests above run the command."""
    files = emit(promising().plan)
    spoilt = re.sub(old, new, files[file], count=1)
    assert spoilt != files[file]
    assert seen in promising().verdict(files | {file: spoilt}, tmp_path / "work")


# --- state -----------------------------------------------------------------------------------


@pytest.fixture
def stream_model(tmp_path) -> str:
    path = tmp_path / "net.tflite"
    path.write_bytes(STREAM_MODELS["accumulator from values"])
    return str(path)


def verify_stream(model: str) -> Answer:
    request = Request(model, "cortex-m4", name="net", kernels="tinyfuse")
    how = VerifyOptions(emulator="qemu", oracle="tflm", compiler_opt="O1", timeout=60.0)
    return verify_request(request, lambda text: None, how)


def test_unspoilt_streams_are_exact(stream_model) -> None:
    answer = verify_stream(stream_model)
    assert answer.exact and (answer.data["runs"], answer.data["frames"]) == (64, 16)
    assert "in streams of 16" in answer.lines[0] and "state 16" in " ".join(answer.lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    memcpy((uint8_t *)state", "    (void)memcpy; if (0) memcpy((uint8_t *)state"),
        ("    uint8_t *const kept = (uint8_t *)state;",
         "    static uint8_t shared[NET_STATE_BYTES]; uint8_t *const kept = state == NULL ? NULL : shared;"),
    ],
    ids=["no reset", "one state for all"],
)  # fmt: skip
def test_wrong_streams_are_seen(stream_model, monkeypatch, before: str, after: str) -> None:
    corrupt(monkeypatch, "net.c", lambda text: text.replace(before, after))
    answer = verify_stream(stream_model)
    assert not answer.exact and answer.data["mismatches"] > 0


@pytest.mark.parametrize("where", ["kept[-1]", "kept[NET_STATE_BYTES]"])
def test_one_byte_outside_the_state_is_seen(stream_model, monkeypatch, where: str) -> None:
    corrupt(monkeypatch, "net.c", lambda text: text.replace("    NET_GROUP_END(0);", f"    {where} ^= 1;"))
    answer = verify_stream(stream_model)
    assert not answer.exact and "the state changed (state[" in answer.data["problems"][0]
