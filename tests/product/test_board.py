"""`tinyfuse board`: modules of every sort answer over a serial line, on the host and in QEMU. A board that gives wrong
answers causes a one-sentence error."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from board_programs import firmware, host_server, in_qemu, on_a_terminal, write_board_modules
from click.testing import CliRunner, Result
from docs_blocks import blocks
from executors import plan_of
from form_builds import done
from known_architectures import two_inputs
from random_graphs import Sketch
from sliding_models import padded
from stream_models import STREAM_MODELS
from test_schemas import meets

from tinyfuse.api.boards import check_module, validate_plan
from tinyfuse.api.results import BoardValidation
from tinyfuse.board import device as device_module
from tinyfuse.board.device import Device
from tinyfuse.board.frames import ANSWER, FAILED, Decoder, Frame, Refusal, Request, encode_frame, padding
from tinyfuse.board.port import open_port
from tinyfuse.cli.main import main
from tinyfuse.emit import emit, module_digest
from tinyfuse.emit.forms import Delivery, make_delivery
from tinyfuse.errors import BoardFailed
from tinyfuse.options import BoardOptions
from tinyfuse.plan import Plan

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)


def small() -> bytes:
    sketch = Sketch(7)
    x = sketch.value((1, 8, 8, 3))
    y = sketch.depthwise(sketch.conv(x, 12, (3, 3), activation="RELU"), (3, 3), (2, 2))
    return sketch.build([x], [sketch.fully_connected(sketch.mean(y), 5)])


#: what is served -> the model, its options
SORTS: dict[str, tuple[Callable[[], bytes], dict[str, object]]] = {
    "plain": (small, {}),
    "inputs": (two_inputs, {}),
    "fed": (small, {"feed_rows": True}),
    "steps": (small, {"step": True}),
    "blob": (small, {"weights_blob": True}),
    "slid": (padded, {"slide": 2}),
    "slid_rows": (padded, {"slide": 2, "feed_rows": True}),
    "banks": (small, {"memory": ("sram=64K", "qspi=64K:slow")}),
    "parts": (small, {"memory": ("dtcm=256", "sram=64K")}),
    "state": (lambda: STREAM_MODELS["every kind of state"], {}),
}


def plan(sort: str) -> Plan:
    make, options = SORTS[sort]
    return plan_of(make(), "host", name=sort, **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plans = [plan(sort) for sort in SORTS]
    return host_server(tmp_path_factory.mktemp("server"), [*plans, plan_of(small(), name="wrong")], spoil)


def spoil(folder: Path) -> None:
    """Changes one weight of the module `wrong`."""
    path = folder / "wrong_weights.c"
    line = next(line for line in path.read_text().splitlines() if line.startswith("    ") and line.count(",") > 8)
    numbers = line.split(",")
    numbers[3] = " 98" if numbers[3] == " 99" else " 99"
    path.write_text(path.read_text().replace(line, ",".join(numbers), 1))


def validated(sort: Plan, data: bytes, port: str, **how: object) -> BoardValidation:
    line = open_port(port, 115200)
    try:
        options = BoardOptions(oracle="reference", **how)
        return validate_plan(sort, data, Device(line, port, 115200), options, lambda text: None)
    finally:
        line.close()


# --- boards that do what they should -------------------------------------------------------------


@needs_gcc
@pytest.mark.parametrize("sort", SORTS)
def test_modules_of_every_sort_are_exact(sort: str, server: Path) -> None:
    asked = plan(sort)
    with on_a_terminal([server, str([*SORTS].index(sort))]) as port:
        found = validated(asked, SORTS[sort][0](), port, runs=12)
    assert found.unproven and not found.exact and found.mismatches == 0 and found.runs == 12
    assert found.elements == 12 * sum(t.elements for t in asked.source.outputs) or "slid" in sort
    # ten a look: one from each group's begin to its end but that of an empty one, so none is left
    figures = found.figures
    assert found.counter == "the firmware's own" and found.overhead_cycles == 10 and figures is not None
    assert len(figures.groups) == len(asked.groups) and all(group.least >= 0 for group in figures.groups)
    assert figures.cycles.least > 0 and (figures.longest_step is not None) == (sort == "steps")


def test_what_the_command_says(server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain.tflite").write_bytes(small())
    with on_a_terminal([server, "0"]) as port:
        words = ["board", "validate", "plain.tflite", "--target", "host", "--port", port, "--runs", "4"]
        text = ran(*words)
        answer = ran(*words, "--json")
        other = ran(*words, "--fusion", "none")
        Path("plain.tflite").write_bytes(two_inputs())
        another = ran(*words)
    assert text.exit_code == 0 and text.stdout.startswith("exact: 0 of 20 output elements differ in 4 runs")
    assert "together" in text.stdout and "CONV_2D" in text.stdout
    data = json.loads(answer.stdout)
    meets("board-validate", data)
    assert data["exact"] and data["cycles"] >= sum(group["cycles"] for group in data["groups"])
    assert other.exit_code == 4 and "generated from this model with other options" in other.stderr
    assert another.exit_code == 4 and "has another model" in another.stderr and "--board" in another.stderr


@needs_gcc
def test_a_board_that_computes_wrong_is_told_of(server: Path, tmp_path: Path) -> None:
    """The board's flash has lost some bits, although the module's hash is right."""
    (tmp_path / "wrong.tflite").write_bytes(small())
    with on_a_terminal([server, str(len(SORTS))]) as port:
        words = ["board", "validate", str(tmp_path / "wrong.tflite"), "--target", "host", "--port", port]
        found = ran(*words, "--oracle", "reference")
    assert found.exit_code == 1 and found.stdout.startswith("NOT EXACT: ") and "first difference: run" in found.stdout


@needs_qemu
@pytest.mark.emulated
def test_semihosting_and_systick_of_a_core_without_dwt(tmp_path: Path) -> None:
    """The program of docs/board.md."""
    (main_c,) = [block.text for block in blocks("docs/board.md") if block.file == "semihosting.c"]
    asked = plan_of(small(), "cortex-m0plus", name="kws", kernels="tinyfuse")
    elf = firmware(tmp_path, main_c, asked)
    console = ["-chardev", "pty,id=line", "-semihosting-config", "enable=on,target=native,chardev=line"]
    with in_qemu(elf, asked.context.target, "-serial", "none", *console) as port:
        found = validated(asked, small(), port)
    assert found.unproven and found.counter == "SysTick" and found.warnings == ()
    assert found.figures is not None and 0 < found.figures.outside.least < found.figures.cycles.mean


# --- what is generated ---------------------------------------------------------------------------


@needs_qemu
def test_the_server_is_clean_c_and_cpp(tmp_path: Path) -> None:
    """Compiles for a core, with its clocks, and compiles the examples of docs/board.md against declarations of the
    SDKs' functions."""
    write_board_modules(tmp_path, [plan_of(small(), "cortex-m4", name="kws", kernels="tinyfuse")])
    stubs = {
        "main.h": """#include <stdint.h>
            typedef struct { int x; } UART_HandleTypeDef;
            struct systick { volatile uint32_t LOAD, VAL; };
            extern struct systick *SysTick;
            enum { HAL_OK = 0, HAL_MAX_DELAY = 0x7FFFFFFF };
            uint32_t HAL_GetTick(void);
            int HAL_UART_Receive(UART_HandleTypeDef *, uint8_t *, uint16_t, uint32_t);
            int HAL_UART_Transmit(UART_HandleTypeDef *, uint8_t *, uint16_t, uint32_t);
            #define __HAL_UART_CLEAR_OREFLAG(handle) ((void)(handle))
            """,
        "zephyr/device.h": "struct device { int x; }; extern const struct device chosen;\n"
        "#define DEVICE_DT_GET(node) (&chosen)\n#define DT_CHOSEN(name) 0\n",
        "zephyr/drivers/uart.h": "int uart_poll_in(const struct device *, unsigned char *);\n"
        "void uart_poll_out(const struct device *, unsigned char);\n",
        "zephyr/kernel.h": "#include <stdint.h>\nuint32_t k_cycle_get_32(void);\n",
        "Arduino.h": "#include <stdint.h>\n#include <stddef.h>\nstruct serial { bool available(); int read();\n"
        "void write(const uint8_t *, size_t); void begin(long); };\nextern serial Serial;\n",
    }
    for name, text in stubs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shown = {block.file: block.text for block in blocks("docs/board.md") if block.file}
    assert len(shown) == 6
    for name, text in shown.items():
        (tmp_path / name).write_text(text)
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    core = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-O2", "-c", "-I."]
    in_c = ["kws_board.c", "kws.c", *(name for name in shown if name.endswith(".c"))]
    done(["arm-none-eabi-gcc", "-std=gnu99", *core, *warnings, *in_c], tmp_path)
    done(["arm-none-eabi-gcc", "-std=c99", "-Wpedantic", *core, *warnings, "kws_board.c"], tmp_path)
    in_cpp = ["-x", "c++", "-std=c++17", *core, *warnings, "kws_board.c", "arduino.cpp"]
    done(["arm-none-eabi-g++", *in_cpp], tmp_path)


def test_a_module_without_it_is_as_it_was_and_forms_take_it() -> None:
    asked = plan("plain")
    without, beside = emit(asked), emit(asked, delivery=Delivery(board=True))
    assert beside.keys() - without.keys() == {"plain_board.c"} and "board" not in without["plain.c"]
    assert "plain_board.c" in beside["CMakeLists.txt"]
    single = emit(asked, delivery=make_delivery(["single-file"], {}, board=True))
    assert "plain_board.c" not in single and "int plain_board_serve(" in single["plain.c"]
    assert "plain_board_serve" in single["README.md"]
    arduino = emit(plan_of(small(), "generic32", name="plain"), delivery=make_delivery(["arduino"], {}, board=True))
    assert "src/plain/plain_board.c" in arduino


# --- the board's side of hostile lines -----------------------------------------------------------


@needs_gcc
def test_the_server_refuses_what_is_no_request_and_goes_on(server: Path) -> None:
    """Under sanitizers: indexes, offsets and lengths out of range, damage, unknown types, and noise."""
    rng = random.Random(3)
    hello = encode_frame(Frame(Request.HELLO, 77, b""))
    bad = [
        (Request.WRITE, struct.pack("<HI", 1, 0)), (Request.WRITE, struct.pack("<HI", 0, 192) + b"x"),
        (Request.WRITE, struct.pack("<HI", 0, 0xFFFFFFFF) + b"xy"), (Request.WRITE, b"\0"), (Request.WRITE, b""),
        (Request.READ, struct.pack("<HIH", 1, 0, 1)), (Request.READ, struct.pack("<HIH", 0, 4, 2)),
        (Request.READ, struct.pack("<HIH", 0, 0xFFFFFFFF, 2)), (Request.READ, b"\0\0"),
        (Request.READ, struct.pack("<HIH", 0, 0, 65535)), (Request.GROUPS, struct.pack("<HH", 0, 32)),
        (Request.GROUPS, struct.pack("<HH", 65535, 2)), (Request.GROUPS, b""), (Request.RUN, b""),
        (Request.RUN, b"\1\1"), (0, b""), (77, b"abc"), (FAILED, b"\1"),
    ]  # fmt: skip
    sent = b"".join(encode_frame(Frame(kind, number, payload)) for number, (kind, payload) in enumerate(bad))
    sent += hello[:-1] + bytes([hello[-1] ^ 1]) + b"TF\1\5\xff\xff"
    for _ in range(300):
        kind, payload = rng.choice([1, 2, 3, 4, 5, 200]), rng.randbytes(rng.choice([0, 1, 4, 6, 8, 40, 256]))
        frame = encode_frame(Frame(kind, rng.randrange(256), payload))
        sent += frame if rng.random() < 0.7 else frame[: rng.randrange(len(frame))] + rng.randbytes(rng.randrange(9))
    ended = subprocess.run([server, "0"], input=sent + padding(256) + hello, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr.decode()
    decoder, answers = Decoder(), []
    decoder.longest = 256
    decoder.add(ended.stdout)
    while (answer := decoder.next()) is not None:
        answers.append(answer)
    assert decoder.noise == decoder.damaged == 0
    reasons = [Refusal.OUTSIDE] * 15 + [Refusal.UNKNOWN] * 3 + [Refusal.DAMAGED, Refusal.TOO_LONG]
    assert [(a.type, a.payload) for a in answers[: len(reasons)]] == [(FAILED, bytes([r])) for r in reasons]
    assert answers[-1].type == Request.HELLO + ANSWER and answers[-1].number == 77
    assert bytes.fromhex(plan("plain").graph.sha256) in answers[-1].payload


# --- this side of hostile boards -----------------------------------------------------------------


class FakeBoard:
    """A serial line with a simulated board: `answer` maps a frame to reply bytes. Time advances while nothing
    arrives."""

    def __init__(self, answer: Callable[[Frame], bytes], greeting: bytes = b"") -> None:
        self.now, self._answer, self._waiting = 0.0, answer, greeting
        self._decoder, self.requests = Decoder(), []
        self._decoder.longest = 32768

    def clock(self) -> float:
        return self.now

    def write(self, data: bytes) -> None:
        self._decoder.add(data)
        while (frame := self._decoder.next()) is not None:
            self.requests.append(Request(frame.type))
            self._waiting += self._answer(frame)

    def read(self) -> bytes:
        self.now += 0.05
        data, self._waiting = self._waiting[:7], self._waiting[7:]
        return data

    def device(self) -> Device:
        return Device(self, "/dev/ttyX", 115200, self.clock)


def greeting(asked: Plan, **changed: object) -> bytes:
    """Payload of a correct board's hello message."""
    fields = {
        "version": 1, "counter": 1, "chunk": 128, "inputs": 1, "outputs": 1, "groups": len(asked.groups),
        "arena": asked.arena_bytes, "state": 0, "overhead": 0, "sha": bytes.fromhex(asked.graph.sha256),
        "code": module_digest(asked),
    } | changed  # fmt: skip
    return struct.pack("<BBHHHHIII32s32s", *fields.values())


def honest(asked: Plan, **changed: object) -> Callable[[Frame], bytes]:
    """A board that answers hello correctly and computes only zeros."""
    payloads = {
        Request.HELLO: lambda request: greeting(asked, **changed),
        Request.WRITE: lambda request: b"",
        Request.RUN: lambda request: struct.pack("<iII", 0, 5, 0),
        Request.READ: lambda request: bytes(struct.unpack_from("<H", request.payload, 6)[0]),
        Request.GROUPS: lambda request: bytes(8 * struct.unpack_from("<H", request.payload, 2)[0]),
    }
    return lambda request: answered(request, payloads[Request(request.type)](request))


def answered(request: Frame, payload: bytes) -> bytes:
    return encode_frame(Frame(request.type + ANSWER, request.number, payload))


@pytest.fixture(scope="module")
def asked() -> Plan:
    return plan("plain")


def failure(asked: Plan, answer: Callable[[Frame], bytes], before: bytes = b"") -> str:
    board = FakeBoard(answer, before)
    with pytest.raises(BoardFailed) as error:
        validate_plan(asked, small(), board.device(), BoardOptions(oracle="reference", runs=1), lambda text: None)
    assert error.value.exit_code == 4 and "\n" not in str(error.value)
    assert board.now < 100, "every wait ends"
    return str(error.value)


def test_a_board_that_is_silent_or_talks_nonsense(asked: Plan) -> None:
    assert "did not answer within 10 s: nothing arrived" in failure(asked, lambda request: b"")
    noise = failure(asked, lambda request: b"Hello, world!\r\n")
    assert "b'Hello, world!" in noise and "--baud 115200" in noise
    assert "arrived damaged" in failure(asked, lambda request: answered(request, greeting(asked))[:-1] + b"\0\0")
    assert "did not answer" in failure(asked, lambda request: b"TF\x81\1\xff\xff" * 50)
    echo = failure(asked, encode_frame)
    assert "did not answer" in echo


def test_a_board_that_never_ceases_to_talk(asked: Plan) -> None:
    frames = encode_frame(Frame(200, 9, b"status")) * 3

    class Talking(FakeBoard):
        def read(self) -> bytes:
            self.now += 0.01
            return frames

    board = Talking(lambda request: b"")
    with pytest.raises(BoardFailed, match="did not answer within 10 s"):
        board.device().hello()


def test_a_board_that_is_another(asked: Plan) -> None:
    assert "speaks version 9 of the protocol, and this tinyfuse version 1" in failure(asked, honest(asked, version=9))
    assert "speaks no version" in failure(asked, lambda request: answered(request, b""))
    assert "bytes instead of 86" in failure(asked, lambda request: answered(request, greeting(asked) + b"x"))
    assert "has another model" in failure(asked, honest(asked, sha=bytes(32)))
    assert "with other options, or by another version of tinyfuse" in failure(asked, honest(asked, code=bytes(32)))
    assert "other sizes of inputs" in failure(asked, honest(asked, groups=65535))
    assert "frame size 65535" in failure(asked, honest(asked, chunk=65535))
    assert "frame size 0" in failure(asked, honest(asked, chunk=0))
    assert "invalid counter 200" in failure(asked, honest(asked, counter=200))


def test_a_board_that_fails_later(asked: Plan) -> None:
    well = honest(asked)

    def but(request: Request, answer: Callable[[Frame], bytes]) -> str:
        return failure(asked, lambda frame: answer(frame) if frame.type == request else well(frame))

    assert "no answer within" in but(Request.WRITE, lambda frame: b"")
    assert "did not finish an inference within" in but(Request.RUN, lambda frame: b"")
    assert "with 3 bytes instead of 5" in but(Request.READ, lambda frame: answered(frame, b"abc"))
    assert "with 128 bytes instead of 5" in but(Request.READ, lambda frame: answered(frame, bytes(128)))
    assert "with 0 bytes instead of 12" in but(Request.RUN, lambda frame: answered(frame, b""))
    refused = encode_frame(Frame(FAILED, 0, bytes([Refusal.DAMAGED])))
    assert "arrived damaged, 3 times in a row, to write" in but(Request.WRITE, lambda frame: refused)
    assert "although its description" in but(
        Request.WRITE, lambda frame: encode_frame(Frame(FAILED, frame.number, bytes([Refusal.OUTSIDE])))
    )
    ended = but(Request.RUN, lambda frame: answered(frame, struct.pack("<iII", 11, 0, 0)))
    assert "returned error 11" in ended and "NAME_bind" in ended
    assert "error -7" in but(Request.RUN, lambda frame: answered(frame, struct.pack("<iII", -7, 0, 0)))


def test_a_bad_line_costs_time_and_no_result(asked: Plan) -> None:
    """Boot messages, lost and damaged answers: what can be asked again is."""
    well, turns = honest(asked), iter(range(10**9))

    def spoiled(frame: Frame) -> bytes:
        answer, turn = well(frame), next(turns)
        if frame.type == Request.RUN or turn % 3:
            return b"noise TF" + answer
        return answer[:-3] if turn % 2 else answer[:5] + bytes([answer[5] ^ 1]) + answer[6:]

    board = FakeBoard(spoiled, b"*** booting TF TF\x81\1\x50")
    found = validate_plan(asked, small(), board.device(), BoardOptions(oracle="reference", runs=4), lambda text: None)
    assert found.elements == 20 and found.mismatches > 0
    assert board.requests.count(Request.RUN) == 4, "no inference runs twice"


def test_nothing_counts(asked: Plan) -> None:
    board = FakeBoard(honest(asked, counter=0))
    found = validate_plan(asked, small(), board.device(), BoardOptions(oracle="reference", runs=1), lambda text: None)
    assert found.figures is None and "the board counts no cycles" in found.warnings[-1]


def test_a_port_that_can_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.tflite").write_bytes(small())
    words = ["board", "validate", str(tmp_path / "m.tflite"), "--target", "host", "--port"]
    for port in ("/dev/no_such_port", str(tmp_path), "nonsense://x", ""):
        found = ran(*words, port)
        assert found.exit_code == 2 and f"can't open --port {port}" in found.stderr and "port" in found.stderr
    answer = json.loads(ran(*words, "/dev/no_such_port", "--json").stdout)
    meets("error", answer)
    monkeypatch.setattr("tinyfuse.toolchain.extras.importlib.util.find_spec", lambda name: None)
    missing = ran(*words, "/dev/no_such_port")
    assert missing.exit_code == 3 and "pip install '.[board]'" in missing.stderr


def test_a_board_that_is_unplugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The port ends: a terminal whose other end is closed."""
    import pty

    monkeypatch.setattr(device_module, "GREETING", 2.0)
    master, slave = pty.openpty()
    line = open_port(os.ttyname(slave), 115200)
    os.close(slave)
    os.close(master)
    with pytest.raises(BoardFailed, match="cannot be read any more|accepts no more bytes"):
        Device(line, "/dev/ttyX", 115200).hello()
    line.close()


def test_only_the_very_module_passes(asked: Plan) -> None:
    device = FakeBoard(honest(asked)).device()
    check_module(asked, device.hello())


def ran(*words: str) -> Result:
    return CliRunner().invoke(main, words, catch_exceptions=False)
