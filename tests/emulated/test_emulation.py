"""Building and running verification firmware: what it measures, and that it sees every fault."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from toy_module import WEIGHTS, toy_inputs, toy_outputs, write_toy

from tinyfuse.cli.machine import choose_machine
from tinyfuse.cli.request import Request
from tinyfuse.errors import EmulationFailed, ToolMissing, UsageError
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import BuildOptions, Firmware, build_firmware, find_emulator, find_tools
from tinyfuse.verify.emulation import build as build_py
from tinyfuse.verify.emulation.board import check_board
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.renode import Renode, platform_description
from tinyfuse.verify.emulation.result import parse_outcome

CROSS = shutil.which("arm-none-eabi-gcc")
QEMU = shutil.which("qemu-system-arm")
needs_cross = pytest.mark.skipif(CROSS is None, reason="arm-none-eabi-gcc is not installed")
needs_qemu = pytest.mark.skipif(not (CROSS and QEMU), reason="no cross compiler, or no QEMU")
CORES = ["cortex-m4", "cortex-m55"]


def lacking(core: str, emulator: str) -> str:
    """Reason why the core can't be emulated here, or "" if it can."""
    if CROSS is None:
        return "arm-none-eabi-gcc is not installed"
    try:
        find_emulator(emulator, load_target(core))
    except (ToolMissing, UsageError) as error:
        return str(error)
    return ""


def emulated(core: str, emulator: str):
    reason = lacking(core, emulator)
    marks = [pytest.mark.skipif(bool(reason), reason=reason), pytest.mark.emulated]
    return pytest.param(core, emulator, marks=marks, id=core if emulator == "qemu" else f"{core}-{emulator}")


#: every test of what a core does runs on all emulators that are here
CORTEX = [emulated(core, emulator) for core in CORES for emulator in ("qemu", "renode")]
ON_M4 = [emulated("cortex-m4", emulator) for emulator in ("qemu", "renode")]
HOST = pytest.param("host", "host", id="host")
M4 = load_target("cortex-m4")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Puts the object cache outside the user's home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def build(folder: Path, target: str, emulator: str, runs: int = 3, **toy) -> Firmware:
    module, library, headers = write_toy(folder / "module", **toy)
    return build_firmware(module, toy_inputs(runs), load_target(target), [library], [headers], folder, emulator)


def run(folder: Path, target: str, emulator: str, runs: int = 3, time_limit: float = 120, **toy):
    firmware = build(folder, target, emulator, runs, **toy)
    return find_emulator(emulator, firmware.target).run(firmware, time_limit)


# --- what a good module gives ------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
def test_every_output_arrives(tmp_path, target, emulator, runs):
    outcome = run(tmp_path, target, emulator, runs)
    assert outcome.outputs == toy_outputs(toy_inputs(runs))
    assert outcome.guards == []
    if emulator == "host":
        assert outcome.instructions is None and outcome.stack_bytes is None
    else:
        assert 20 < outcome.instructions < 1000
        assert 0 < outcome.stack_bytes < 200


@pytest.mark.parametrize("target, emulator", ON_M4)
def test_instructions_and_stack_are_exact(tmp_path, target, emulator):
    """A loop of two instructions, longer than the 24 bits of the SysTick, beside 4,000 bytes of stack; in the run that
    is timed."""
    loops = 340_000_000
    code = f"""
        static int runs;
        volatile char block[4000];
        uint32_t n = ++runs == 2 ? {loops} : 1;
        block[0] = 1;
        __asm__ volatile("1: subs %0, #1\\n\\tbne 1b" : "+r"(n) : "r"(block));
        return (int)n + block[0] - 1 + 0 * (int)arena[0];"""
    plain = run(tmp_path / "plain", target, emulator)
    outcome = run(tmp_path / "loop", target, emulator, runs=2, run=code)
    assert 0 <= outcome.instructions - plain.instructions - 2 * loops < 100
    assert 4000 <= outcome.stack_bytes < 4200


@pytest.mark.parametrize("target, emulator", CORTEX)
def test_sizes_are_the_modules_alone(tmp_path, target, emulator):
    firmware = build(tmp_path, target, emulator)
    assert firmware.weight_bytes == WEIGHTS.nbytes
    assert 50 < firmware.code_bytes < 1000
    assert firmware.ram_bytes == 64 + 4  # the arena and arm_toy_zero


@needs_qemu
def test_weights_beyond_the_flash_go_to_the_ram(tmp_path):
    firmware = build(tmp_path, "cortex-m55", "qemu", changes=("weights[24]", "weights[600000]"))
    assert firmware.weight_bytes == 600_000
    outcome = find_emulator("qemu", firmware.target).run(firmware, 30)
    assert outcome.outputs == toy_outputs(toy_inputs(3))


@pytest.mark.parametrize("target, emulator", CORTEX)
@pytest.mark.parametrize("opt", ["O1", "O3"])
def test_kernel_symbols(tmp_path, target, emulator, opt):
    """toy_group_0 is inlined into its caller, toy_group_1 is not; helpers in between are followed."""
    module, library, headers = write_toy(tmp_path / "module")
    core, options = load_target(target), BuildOptions(opt)
    firmware = build_firmware(module, toy_inputs(1), core, [library], [headers], tmp_path, emulator, options)
    assert firmware.kernel_symbols == {
        "toy_group_0": ["arm_toy_add", "tinyfuse_toy_mul", "tinyfuse_toy_scale"],
        "toy_group_1": ["tinyfuse_toy_flip"],
    }


# --- what a bad module gives -------------------------------------------------------------------


@pytest.mark.parametrize("target, emulator", CORTEX)
@pytest.mark.parametrize("offset, side", [(-1, "before"), (-500, "before"), (64, "after"), (563, "after")])
def test_writes_outside_of_the_arena_are_reported(tmp_path, target, emulator, offset, side):
    outcome = run(tmp_path, target, emulator, run=f"arena[{offset}] = 1; return 0;")
    assert outcome.guards == [f"run {n}: a byte {side} the arena changed (arena[{offset}])" for n in range(3)]


@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
def test_junk_in_the_arena_shows_what_relies_on_zeros(tmp_path, target, emulator):
    code = "arena[32] = (int8_t)(arena[32] + arena[63]); arena[63] = 7; return 0;"
    outcome = run(tmp_path, target, emulator, 4, run=code)
    differing = [a != b for a, b in zip(outcome.outputs, toy_outputs(toy_inputs(4)), strict=True)]
    assert differing == [True] * 4
    outcome = run(tmp_path, target, emulator, 1, run=code)
    assert outcome.guards == ["run 1: the same inputs gave other outputs than in run 0"]


@pytest.mark.parametrize(
    "code, message",
    [
        ("return arena[64];", "use-after-poison"),
        ("return arena[-1];", "use-after-poison"),
        ("arena[64] = 1; return 0;", "use-after-poison"),
        ("volatile int n = 24; (void)arena; return toy_weights[n];", "out of bounds|global-buffer-overflow"),
        ("volatile int n = INT32_MAX; (void)arena; return n + 1;", "signed integer overflow"),
        ("return *(int32_t *)(void *)(arena + 1);", "misaligned"),
        ("volatile float x = 1e30f; (void)arena; return (int)x;", "outside the range"),
    ],
)
def test_sanitizers_watch_the_host(tmp_path, code, message):
    with pytest.raises(EmulationFailed, match=message):
        run(tmp_path, "host", "host", run=code)


@pytest.mark.parametrize("target, emulator", CORTEX)
@pytest.mark.parametrize(
    "code, message",
    [
        ("(void)arena; __builtin_trap();", "at an undefined instruction: .*\n.*crash exception=0000000. .* pc=0000"),
        ("(void)arena; return *(volatile int *)0xF0000000;", "crash exception="),
        ("(void)arena; *(volatile int *)0xF0000000 = 1; return 0;", "crash exception="),
        ("volatile char b[999]; b[0] = 1; return arena ? run(arena) + b[0] : 0;", "stack overflow"),
    ],
    ids=["trap", "read", "write", "stack"],
)
def test_crashes_are_reported(tmp_path, target, emulator, code, message):
    if emulator == "renode" and "trap" not in code:
        message = "outside every memory of the board"  # it does not fault
    with pytest.raises(EmulationFailed, match=message):
        run(tmp_path, target, emulator, run=code)


@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
def test_a_module_that_hangs_is_ended(tmp_path, target, emulator):
    with pytest.raises(EmulationFailed, match=r"did not end within 0\.4 s"):
        run(tmp_path, target, emulator, time_limit=0.4, run="volatile int n = arena != NULL; while (n) {} return 0;")


@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
@pytest.mark.parametrize(
    "changes, message",
    [
        (("return run(arena)", "return run(arena) + 3"), "error run returned 3"),
        (("bytes < TOY_ARENA_BYTES", "bytes < 65"), "error init returned 1"),
        (("index ? 5 : 24", "index ? 6 : 24"), "other input bytes a run than were given: 30"),
        (("index ? 56 : 32", "index ? 60 : 32"), "an output lies outside of the arena, offset 60"),
        (("index ? 24 : 0", "index ? 24 : -8"), "an input lies outside of the arena, offset"),
    ],
)
def test_broken_promises_of_the_interface(tmp_path, target, emulator, changes, message):
    with pytest.raises(EmulationFailed, match=message):
        run(tmp_path, target, emulator, changes=changes)


@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
def test_the_arena_is_no_better_aligned_than_promised(tmp_path, target, emulator):
    outcome = run(tmp_path, target, emulator, run="return (uintptr_t)arena % 32 == 16 ? 0 : 9;")
    assert outcome.guards == []


@pytest.mark.parametrize("target, emulator", [*CORTEX, HOST])
def test_warnings_of_the_module_are_errors(tmp_path, target, emulator):
    with pytest.raises(EmulationFailed, match=r"failed on toy\.c:.*\n.*\n?.*conversion"):
        run(tmp_path, target, emulator, run="int n = arena[1]; arena[0] = n; return 0;")


@needs_cross
def test_too_many_inputs_for_the_board(tmp_path):
    module, library, headers = write_toy(tmp_path / "module")
    inputs = [[np.zeros(17 << 20, np.int8), np.zeros(5, np.int8)]]
    with pytest.raises(UsageError, match="exceeds the BULK of the emulated board by .* --emulator host"):
        build_firmware(module, inputs, M4, [library], [headers], tmp_path, "qemu")


@pytest.mark.parametrize(
    ("weights", "arena", "run", "runs", "message"),
    [
        (3 << 20, 1 << 20, 150528, 8, None),  # an image network of 224 by 224
        (
            3 << 20,
            1 << 20,
            150528,
            99,
            "3,145,728 bytes, an arena of 1,048,576 and 99 inputs of 150,528 .*--runs 90 fit",
        ),
        (3 << 20, 5 << 20, 150528, 1, "4 MB of RAM and 16 MB beside it.*--emulator host"),
        (17 << 20, 1 << 20, 150528, 1, "--emulator host"),
        (1 << 20, 1 << 20, 150528, 99, None),  # the weights fit the flash
    ],
)
def test_what_does_not_fit_the_board_is_told_before_the_build(weights, arena, run, runs, message):
    if message is None:
        return check_board(M4, weights, arena, run, runs)
    with pytest.raises(UsageError, match=message):
        check_board(M4, weights, arena, run, runs)
    return None


@needs_qemu
def test_weights_beyond_the_flash_go_to_the_boards_large_memory(tmp_path):
    firmware = build(tmp_path, "cortex-m4", "qemu", changes=("weights[24]", "weights[5000000]"))
    assert find_emulator("qemu", M4).run(firmware, 30).outputs == toy_outputs(toy_inputs(3))


# --- records -----------------------------------------------------------------------------------

GOOD = "output 0 0 0102\noutput 1 0 0304\nresult runs=2 bytes=4 crc=b63cfbcd ticks=10016 stack=8\n"
NO_FIRMWARE = Firmware(Path("toy.elf"), M4, "qemu", runs=2, compiler="", opt="O2")


def test_records_are_read():
    outcome = parse_outcome("noise\n" + GOOD, NO_FIRMWARE, tick_ns=31.25)
    assert outcome.outputs == [[b"\1\2"], [b"\3\4"]]
    assert (outcome.instructions, outcome.stack_bytes) == (314, 8)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("0304", "0305", "damaged"),
        ("0304", "03", "damaged"),
        ("output 0", "output 3", "damaged"),
        ("output 1 0 0304\n", "", "damaged"),
        ("output 1 0 0304", "output 1 0 03x4", "damaged"),
        ("stack=8", "stack=", "without a result line"),
        ("result", "crash pc=0 result", "crash pc=0"),
        (GOOD, "", "without a result line"),
    ],
)
def test_damaged_records_are_failures(old, new, message):
    with pytest.raises(EmulationFailed, match=message):
        parse_outcome(GOOD.replace(old, new), NO_FIRMWARE, tick_ns=1)


# --- the object cache --------------------------------------------------------------------------


@needs_cross
def test_library_objects_are_cached_by_content(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    objects = tmp_path / "cache" / "tinyfuse" / "objects"

    def made() -> int:
        return len(list(objects.iterdir()))

    build(tmp_path / "1", "cortex-m4", "qemu")
    assert made() == 3  # the function, and the harness's port and checked calls
    build(tmp_path / "2", "cortex-m4", "qemu")
    assert made() == 3
    build(tmp_path / "3", "cortex-m4", "qemu", changes=("ADDEND 1", "ADDEND 2"))
    assert made() == 4
    build(tmp_path / "4", "cortex-m55", "qemu")
    assert made() == 7
    for cached in objects.iterdir():
        cached.write_bytes(b"not an object")
    with pytest.raises(EmulationFailed):  # so it is really used
        build(tmp_path / "5", "cortex-m4", "qemu")


@needs_qemu
def test_a_cache_that_can_not_be_written_is_no_problem(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run(tmp_path, "cortex-m4", "qemu").guards == []


# --- finding the tools -------------------------------------------------------------------------


def program(folder: Path, name: str, python: str) -> Path:
    """Writes an executable Python script."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(python)}")
    path.chmod(0o755)
    return path


# Prints what Renode 1.16 and its nightly builds print, reads paths as their Monitor does, and leaves its
# temporary folder after when it is killed.
FAKE_RENODE = r"""
    import os, re, shutil, sys, tempfile, time
    if "--version" in sys.argv:
        print("Renode v1.16.1.15858")
        print("  build: 3407d830-202605281920")
        print("  build type: Release")
        print("  runtime: .NET 8.0.11")
        sys.exit(int(os.environ.get("STATUS", "0")))
    assert sys.stdin.read() == "" and "--hide-log" not in sys.argv
    folder = os.path.join(tempfile.gettempdir(), "renode-%d" % os.getpid())
    os.mkdir(folder)

    def path(command, text):
        found = re.search(command + r" @((?:(?!;)((\\ )|\S))+)", text)
        return found[1].replace("\\ ", " ")

    script = open(path("include", sys.argv[-1])).read()
    assert os.path.exists(path("LoadELF", script)), "There was an error executing command"
    with open(path("CreateFileBackend", script), "x") as file:
        file.write(os.environ["UART"])
    time.sleep(float(os.environ.get("LATER", "0")))
    print(os.environ.get("LOG", ""), flush=True)
    time.sleep(float(os.environ.get("SLEEP", "0")))
    shutil.rmtree(folder)
"""

READ = "12:00:01.2345 [WARNING] sysbus: [cpu: 0x2F6] ReadDoubleWord from non existing peripheral at 0xF0000000."
WRITE = (
    "12:00:01.2346 [WARNING] sysbus: [cpu: 0x2F8] WriteDoubleWord to non existing peripheral at 0x30000000, value 0x1"
)
#: more lines than an error shows follow the one that says what happened
THROWN = "Fatal error:\nSystem.NullReferenceException: Object reference not set to an instance of an object.\n" + (
    "  at Antmicro.Renode.Peripherals.CPU.CortexM.ThrowArgumentException () [0x00000] in <0>:0\n" * 40
)


@pytest.fixture
def renode(tmp_path, monkeypatch) -> Path:
    """Writes a fake Renode: it writes $UART to the UART's file and $LOG to its log, and exits after $SLEEP s."""
    path = program(tmp_path / "with space", "renode", FAKE_RENODE)
    monkeypatch.setenv("RENODE_PATH", str(path))
    monkeypatch.setenv("UART", GOOD)
    return path


def renode_firmware(tmp_path) -> Firmware:
    elf = tmp_path / "with space" / "toy.elf"
    elf.write_bytes(b"")
    return Firmware(elf, M4, "renode", runs=2, compiler="", opt="O2")


@pytest.mark.parametrize("sleep", ["0", "60"])
def test_renode_gives_the_outcome_at_once(tmp_path, renode, monkeypatch, sleep):
    monkeypatch.setenv("SLEEP", sleep)
    emulator = find_emulator("renode", M4)
    for _ in range(2):  # the file of the run before is in the way
        outcome = emulator.run(renode_firmware(tmp_path), 30)
        # 10.016 ticks of one instruction, and the one that the measurement leaves out
        assert outcome.outputs == [[b"\1\2"], [b"\3\4"]] and outcome.instructions == 11
    assert emulator.version == "Renode v1.16.1.15858, build 3407d830-202605281920"


@pytest.mark.parametrize(
    "uart, log, sleep, limit, message",
    [
        ("output 0 0 01", "", "60", 2, "did not end within 2 s"),
        ("output 0 0 01", "12:00 [ERROR] cpu: CPU abort [PC=0x0]: no memory.", "60", 30, "CPU abort"),
        ("output 0 0 01\n", "", "0", 30, "without a result line"),
        ("", "There was an error executing command", "0", 30, "wrote nothing under Renode\n.*an error exec"),
        ("crash exception=00000003\n", "", "60", 30, "crash exception=00000003"),
        (GOOD.replace("0304", "0303"), "", "0", 30, "damaged"),
        (GOOD, READ, "60", 30, "outside every memory of the board.*\n.*ReadDoubleWord .* 0xF0000000"),
        ("output 0 0 01", f"{WRITE}\n" * 999, "60", 30, "outside every memory of the board.*\n.*WriteDoubleWord"),
        (GOOD.replace("ticks=10016", "ticks=-835000"), "", "0", 30, "clock ran backwards by 835000 thousandths"),
        ("", THROWN, "60", 30, r"^Renode threw an exception: System\.NullReferenceException: Object reference not set"),
        ("wrong vmullb.s8\n", "", "60", 30, "this Renode computes VMULLB.S8 wrongly.*use QEMU .* build of Renode that"),
    ],
    ids=["hang", "abort", "no result", "nothing", "crash", "damage", "read", "write", "clock", "throws", "wrong core"],
)
def test_renode_fails_well(tmp_path, renode, monkeypatch, uart, log, sleep, limit, message):
    for name, value in (("UART", uart), ("LOG", log), ("SLEEP", sleep)):
        monkeypatch.setenv(name, value)
    with pytest.raises(EmulationFailed, match=message):
        find_emulator("renode", M4).run(renode_firmware(tmp_path), limit)


def test_renodes_log_is_waited_for(tmp_path, renode, monkeypatch):
    """The line of a stray access may come after the result."""
    for name, value in (("LOG", READ), ("LATER", "0.05"), ("SLEEP", "60")):
        monkeypatch.setenv(name, value)
    with pytest.raises(EmulationFailed, match="outside every memory"):
        find_emulator("renode", M4).run(renode_firmware(tmp_path), 30)


def test_a_killed_renode_leaves_nothing_behind(tmp_path, renode, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("SLEEP", "60")
    find_emulator("renode", M4).run(renode_firmware(tmp_path), 30)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("name", ["a;b", "a\tb", "a\\b"])
def test_paths_that_the_monitor_can_not_read_are_refused_before_the_build(tmp_path, renode, monkeypatch, name):
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with pytest.raises(UsageError, match="Monitor can't read .* set TMPDIR"):
        find_emulator("renode", M4)


def test_a_renode_that_does_not_run_is_found_out_before_the_build(renode, monkeypatch):
    monkeypatch.setenv("STATUS", "1")
    with pytest.raises(ToolMissing, match=r"a Renode that runs .*--version ended with code 1: Renode v1\.16"):
        find_emulator("renode", M4)
    renode.write_text("no program of this machine")
    with pytest.raises(ToolMissing, match="a Renode that runs .* can't be started"):
        find_emulator("renode", M4)


def test_renode_platform_and_script(tmp_path, renode):
    emulator = find_emulator("renode", M4)
    emulator.run(renode_firmware(tmp_path), 30)
    text = platform_description(M4)
    assert 'cpuType: "cortex-m4"' in text
    assert "flash: Memory.MappedMemory @ sysbus 0x00000000\n    size: 0x400000\n" in text
    assert "ram: Memory.MappedMemory @ sysbus 0x20000000\n    size: 0x400000\n" in text
    assert "bulk: Memory.MappedMemory @ sysbus 0x21000000\n    size: 0x1000000\n" in text
    folder = str(tmp_path / "with space").replace(" ", "\\ ")
    assert (tmp_path / "with space" / "verify.resc").read_text().splitlines()[1:5] == [
        f"machine LoadPlatformDescription @{folder}/platform.repl",
        f"uart0 CreateFileBackend @{folder}/uart.txt true",
        f"sysbus LoadELF @{folder}/toy.elf",
        "cpu VectorTableOffset 0x00000000",
    ]


def test_what_renode_logs_of_exceptions_that_it_survives_is_no_failure(tmp_path, renode, monkeypatch):
    monkeypatch.setenv("LOG", "12:00:01.2345 [WARNING] cpu: a System.TimeoutException was handled")
    assert find_emulator("renode", M4).run(renode_firmware(tmp_path), 30).instructions == 11


@pytest.mark.parametrize(
    ("tried", "computed", "named"),
    [
        ("clrm {r2, r3}", "nop", "CLRM"),
        ('"vmullb.s8", 8, 1, 0', '"vmullb.u8", 8, 1, 0', "VMULLB.U8"),
        ('"vmullt.u8", 8, 0, 1', '"vmullt.s8", 8, 0, 1', "VMULLT.S8"),
        ('"vmullt.s16", 16, 1, 1', '"vmullt.u16", 16, 1, 1', "VMULLT.U16"),
        ('"vmullb.u16", 16, 0, 0', '"vmullt.u16", 16, 0, 0', "VMULLT.U16"),
        ('"vmullb.s32", 32, 1, 0', '"vmullb.u32", 32, 1, 0', "VMULLB.U32"),
    ],
)
@pytest.mark.parametrize("target, emulator", [case for case in CORTEX if "m55" in case.id])
def test_a_core_that_computes_wrongly_is_refused(tmp_path, monkeypatch, target, emulator, tried, computed, named):
    """Another instruction runs in the place of one that is tried, as on a core that takes them for each other."""
    folder = tmp_path / "firmware"
    shutil.copytree(build_py._FIRMWARE, folder)
    port = folder / "port_cortex_m.c"
    assert port.read_text().count(tried) == 1
    port.write_text(port.read_text().replace(tried, computed))
    monkeypatch.setattr(build_py, "_FIRMWARE", folder)
    with pytest.raises(EmulationFailed, match=rf"^this \w+ computes {named} wrongly, so its results"):
        run(tmp_path, target, emulator)


@needs_cross
def test_renode_firmware_ends_in_test_exit(tmp_path):
    from tinyfuse.verify.emulation.elf import symbol_size

    firmware = build(tmp_path, "cortex-m4", "renode")
    assert symbol_size(firmware.elf, "test_exit") > 0


def bare_path(monkeypatch, folder: Path) -> None:
    monkeypatch.delenv("RENODE_PATH", raising=False)
    monkeypatch.setenv("PATH", str(folder))


def test_renode_is_looked_for_in_order(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    bare_path(monkeypatch, folder)
    with pytest.raises(ToolMissing, match="renode-run download"):
        Renode()
    installed = program(tmp_path / "renode_1.16", "renode", "")
    program(folder, "renode-run", f"print({str(installed.parent)!r})")
    assert Renode().program == installed
    on_path = program(folder, "renode", "")
    assert Renode().program == on_path
    named = program(tmp_path / "named", "renode", "")
    monkeypatch.setenv("RENODE_PATH", str(named.parent))
    assert Renode().program == named
    given = program(tmp_path, "my-renode", "")
    assert Renode(str(given)).program == given
    with pytest.raises(UsageError, match="is not Renode's program"):
        Renode(str(tmp_path / "nothing"))


def test_auto_prefers_qemu_which_faults_where_no_memory_is(renode, monkeypatch, tmp_path):
    m55, host = load_target("cortex-m55"), load_target("host")
    monkeypatch.setenv("PATH", str(program(tmp_path / "gcc", "arm-none-eabi-gcc", "").parent))
    assert find_emulator("auto", M4).name == find_emulator("auto", m55).name == "renode"
    assert choose_machine(Request("net.tflite", "cortex-m4"), "auto", "gcc")[2] == [
        "run on Renode, because QEMU is not installed or has no board with this core"
    ]
    assert choose_machine(Request("net.tflite", "cortex-m4"), "renode", "gcc")[2] == []
    program(renode.parent, "qemu-system-arm", "print('QEMU emulator version 7.2.22')")
    monkeypatch.setenv("PATH", str(renode.parent))
    assert find_emulator("auto", M4).name == find_emulator("auto", m55).name == "qemu"
    assert find_emulator("auto", host).name == "host"
    assert find_emulator("qemu", M4).version == "QEMU emulator version 7.2.22"
    for kind in ("qemu", "renode"):
        with pytest.raises(UsageError, match="host"):
            find_emulator(kind, host)
    with pytest.raises(UsageError, match="unknown emulator 'qqq'"):
        find_emulator("qqq", M4)


def test_missing_tools_are_named(tmp_path, monkeypatch):
    bare_path(monkeypatch, tmp_path)
    with pytest.raises(ToolMissing, match="apt-get install qemu-system-arm"):
        find_emulator("auto", M4)
    with pytest.raises(ToolMissing) as both:
        find_tools("auto", M4, "gcc")
    assert [line.split()[0] for line in str(both.value).splitlines()] == ["qemu-system-arm", "arm-none-eabi-gcc"]
    with pytest.raises(ToolMissing, match="apt-get install gcc-arm-none-eabi"):
        build(tmp_path / "1", "cortex-m4", "qemu")
    with pytest.raises(ToolMissing, match="apt-get install gcc"):
        build(tmp_path / "2", "host", "host")


# --- inputs ------------------------------------------------------------------------------------


def quantized_input(dtype: str = "int8") -> Tensor:
    return Tensor("x", (1, 4, 4, 3), dtype, Quant((0.5,), (-3,)))


def test_input_set_has_the_corners_and_repeats():
    graph = Graph("m", "", (), (quantized_input(), quantized_input("int16")), ())
    sets = input_set(graph, 8, seed=1)
    assert [[int(a.min()) for a in run] for run in sets[:3]] == [[-128, -32768], [127, 32767], [-3, -3]]
    assert all(len(np.unique(array)) == 1 for run in sets[:3] for array in run)
    uniform, ends, flat, narrow, uniform_again = sets[3:]
    assert all(len(np.unique(array)) > 30 for run in (uniform, uniform_again) for array in run)
    assert [sorted(np.unique(array).tolist()) for array in ends] == [[-128, 127], [-32768, 32767]]
    assert all((array == array[0, 0, 0]).all() and array.std() > 0 for array in flat)
    for array, dim in zip(narrow, (64, 16384), strict=True):
        assert len(np.unique(array)) > 10 and np.ptp(array.astype(int)) <= dim
    assert [(a.dtype, a.shape) for a in sets[5]] == [(np.int8, (1, 4, 4, 3)), (np.int16, (1, 4, 4, 3))]
    again = input_set(graph, 8, seed=1)
    assert all(np.array_equal(a, b) for x, y in zip(sets, again, strict=True) for a, b in zip(x, y, strict=True))
    assert not np.array_equal(sets[3][0], input_set(graph, 6, seed=2)[3][0])
    (first,) = input_set(graph, 1, 0)
    assert len(np.unique(first[0])) > 30


def test_float_inputs_cover_ties_and_saturation():
    source = Tensor("x", (1, 1000), "float32")
    stored = Tensor("q", (1, 1000), "int8", Quant((0.25,), (-3,)))
    graph = Graph("m", "", (Op("QUANTIZE", (source,), (stored,)),), (source,), (stored,))
    smallest, largest, zero, random = (run[0] for run in input_set(graph, 4, 0))
    assert smallest.dtype == random.dtype == np.float32
    assert smallest.max() < (-128 + 3) * 0.25 and largest.min() > (127 + 3) * 0.25
    assert not zero.any()
    assert np.isfinite(random).all()
    ties = np.mod(random / np.float32(0.25), 1) == 0.5
    assert 150 < ties.sum() < 350
