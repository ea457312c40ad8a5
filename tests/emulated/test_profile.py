"""The profiler: exact counts, the same total as verify, and what is left where a tool is missing."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch
from test_emulation import build, needs_qemu
from toy_module import toy_inputs, toy_outputs

import tinyfuse.profile as profile_package
from tinyfuse.board_timing import BoardTiming
from tinyfuse.cli.main import main
from tinyfuse.cli.profile import profile
from tinyfuse.cli.request import Request
from tinyfuse.cli.verify import verify
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import ProfileOptions, VerifyOptions
from tinyfuse.profile.code_map import stage_of_line
from tinyfuse.profile.cycles import core
from tinyfuse.profile.image import ARENA, COLUMNS, FLASH, NONE, STACK, Image, Instruction
from tinyfuse.profile.instruction_kinds import floor_per_mac, kind_of
from tinyfuse.profile.measure import measure
from tinyfuse.profile.operands import roles
from tinyfuse.profile.picture import profile_svg
from tinyfuse.profile.plugin import Count, api_version, build_plugin, run_counted
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation.qemu import Qemu
from tinyfuse.verify.emulation.renode import Renode

needs_plugin = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler for this machine"
)
emulated = [pytest.mark.emulated, needs_qemu, needs_plugin]


PROFILED = ProfileOptions(emulator="qemu", timeout=60)
VERIFIED = VerifyOptions(emulator="qemu", oracle="reference", runs=8, timeout=60)


def quiet(text: str) -> None:
    pass


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


# --- the plugin --------------------------------------------------------------------------------

# Marks a group and runs 1 + 2 * 50 + 5 instructions in it, with a store to the arena (over an input
# that was read), a load from it and a push and pop of two registers.
_CODE = """
        register int8_t *a __asm__("r0") = arena;
        register uint32_t n __asm__("r1") = 50;
        __asm__ volatile("first: nop\\n\\t"
                         "1: subs %1, #1\\n\\tbne 1b\\n\\t"
                         "str %1, [%0, #28]\\n\\tldr %1, [%0, #28]\\n\\t"
                         "push {r4, r5}\\n\\tpop {r4, r5}\\n\\t"
                         "nop\\n"
                         "second:" : "+r"(a), "+r"(n) : : "memory", "cc");
        return (int)n;"""


def toy_image(elf: Path) -> tuple[Image, dict[str, int]]:
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as file:
        symbols = [s for s in ELFFile(file).get_section_by_name(".symtab").iter_symbols() if s.name]
    at = {symbol.name: symbol["st_value"] & ~1 for symbol in symbols}
    sizes = {symbol.name: symbol["st_size"] for symbol in symbols}
    arena = at["memory_0"] + (sizes["memory_0"] - 64) // 2
    regions = ((ARENA, arena, 64), (STACK, at["stack_limit"], at["stack_top"] - at["stack_limit"]), (FLASH, 0, 0x80000))
    borders = {at["first"]: 7, at["second"]: NONE}
    return Image(at["toy_run"], regions, borders, {}, (), {}), at


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=emulated, id=name) for name in ("cortex-m4", "cortex-m55")]
)
def test_the_plugin_counts_exactly(tmp_path, target):
    firmware = build(tmp_path, target, "qemu", run=_CODE)
    image, at = toy_image(firmware.elf)
    qemu = Qemu()
    outcome, counts = run_counted(qemu, firmware, image, build_plugin(qemu.version), core("cortex-m4"), 60)
    assert outcome.outputs == toy_outputs(toy_inputs(3))
    assert sum(count.executed for count in counts) == outcome.instructions
    inside = [count for count in counts if count.group == 7]
    assert sum(count.executed for count in inside) == 1 + 2 * 50 + 5
    (branch,) = [count for count in inside if count.address == at["first"] + 4]
    assert (branch.executed, branch.jumps) == (50, 49)
    assert [sum(count.stored[region] for count in inside) for region in range(4)] == [0, 4, 8, 0]
    assert [sum(count.loaded[region] for count in inside) for region in range(4)] == [0, 4, 8, 0]
    (push,) = [count for count in inside if count.lowest is not None]
    assert at["stack_limit"] < push.lowest < at["stack_top"]


# An instruction of 32 bits that begins in a page of QEMU's, of 1 KB, and ends in the next one.
_ACROSS_PAGES = """
        __asm__ volatile("b first\\n\\t.p2align 10\\n\\t.space 1018\\n\\t"
                         "first: nop\\n\\tnop\\n\\tmov.w r3, #0\\n\\tnop\\n"
                         "second:" : : : "r3");
        return (int)arena[0] * 0;"""


@pytest.mark.parametrize("target", [pytest.param("cortex-m4", marks=emulated, id="cortex-m4")])
def test_an_instruction_in_two_pages_is_no_jump(tmp_path, target):
    firmware = build(tmp_path, target, "qemu", run=_ACROSS_PAGES)
    image, at = toy_image(firmware.elf)
    assert at["first"] % 1024 == 1018
    qemu = Qemu()
    _, counts = run_counted(qemu, firmware, image, build_plugin(qemu.version), core("cortex-m4"), 60)
    inside = [count for count in counts if count.group == 7]
    assert [(count.address - at["first"], count.executed, count.jumps) for count in inside] == [
        (0, 1, 0), (2, 1, 0), (4, 1, 0), (8, 1, 0),
    ]  # fmt: skip


_DEBIAN_12 = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"
_DEBIAN_13 = "QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)"


@pytest.mark.parametrize(
    ("qemu", "version"),
    [
        (_DEBIAN_12, 1),
        ("QEMU emulator version 8.2.2 (Debian 1:8.2.2+ds-0ubuntu1)", 1),
        ("QEMU emulator version 9.0.0", 2),
        (_DEBIAN_13, 2),
        ("QEMU of unknown age", 2),
    ],
)
def test_the_api_version_is_one_that_the_qemu_loads(qemu, version):
    assert api_version(qemu) == version


@needs_plugin
def test_the_plugin_declares_the_version_that_the_qemu_loads(tmp_path, monkeypatch):
    """The symbol that QEMU reads before it calls anything; a plugin of another version stays in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plugins = [build_plugin(qemu) for qemu in (_DEBIAN_12, _DEBIAN_13, _DEBIAN_12)]
    versions = [ctypes.c_int.in_dll(ctypes.CDLL(path, os.RTLD_LAZY), "qemu_plugin_version") for path in plugins]
    assert [version.value for version in versions] == [1, 2, 1]


@needs_plugin
def test_the_plugin_is_built_once_and_without_warnings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "tinyfuse.profile.plugin._FLAGS",
        ("-std=c99", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"),
    )
    plugin = build_plugin(_DEBIAN_12)
    made = plugin.stat().st_mtime_ns
    assert build_plugin(_DEBIAN_12) == plugin and plugin.stat().st_mtime_ns == made


@needs_plugin
def test_the_plugin_is_built_where_no_cache_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    gone = []
    monkeypatch.setattr("atexit.register", lambda remove, folder, **how: gone.append(folder))
    plugin = build_plugin(_DEBIAN_12)
    assert plugin.stat().st_size > 0 and [plugin.parent] == gone
    shutil.rmtree(plugin.parent)


# --- cycles ------------------------------------------------------------------------------------


_RUN = """
#include <stdlib.h>
#include "scoreboard.h"
int main(int argc, char **argv)
{
    static struct pipeline core;
    static struct step steps[32];
    long long total = 0;
    core.width = atoi(argv[1]);
    core.taken = atoi(argv[2]);
    for (int i = 4; i < argc; ++i) {
        if (!read_step(argv[i], &steps[i])) return 1;
    }
    for (int turn = 0; turn < atoi(argv[3]); ++turn) {
        for (int i = 4; i < argc; ++i) {
            if (!steps[i].free) total += (long long)issue(&core, &steps[i], turn > 0 && i == 4 && !steps[argc - 1].free);
        }
    }
    printf("%lld", total);
    return 0;
}
"""


@pytest.fixture(scope="module")
def scoreboard(tmp_path_factory) -> Path:
    """Program that runs a loop of instructions on a core's pipeline, and prints its cycles."""
    folder = tmp_path_factory.mktemp("scoreboard")
    (folder / "main.c").write_text(_RUN)
    included = Path(profile_package.__file__).parent
    subprocess.run(["cc", "-std=c99", f"-I{included}", folder / "main.c", "-o", folder / "run"], check=True)
    return folder / "run"


def instruction(text: str) -> Instruction:
    mnemonic, _, operands = text.partition(" ")
    return Instruction(0, 4 if mnemonic.endswith(".w") or mnemonic.startswith("v") else 2, mnemonic, operands, None)


def cycles_of_a_turn(scoreboard: Path, cpu: str, code: list[str]) -> float:
    """Cycles of a loop's turn, over 20 turns after the first ones."""
    on = core(cpu)
    assert on is not None
    steps = [on.step(instruction(text)) for text in code]
    words = next(iter(on.settings(()))).split()[1:]

    def total(turns: int) -> int:
        done = subprocess.run([scoreboard, *words, str(turns), *steps], check=True, capture_output=True, text=True)
        return int(done.stdout)

    return (total(30) - total(10)) / 20


@needs_plugin
@pytest.mark.parametrize(
    "cpu, code, cycles",
    [
        # load right behind load: one cycle, unless its address is that load's result
        ("cortex-m4", ["ldr r0, [r1]", "add r0, r2", "bne 0"], 2 + 1 + 1 + 2),
        ("cortex-m4", ["ldr r0, [r1]", "ldrb.w r2, [r1]", "ldrsh r3, [r1]", "add r0, r2"], 4 + 1 + 2),
        ("cortex-m4", ["ldr r0, [r1]", "ldr r2, [r0]", "add r0, r2"], 4 + 1 + 2),
        ("cortex-m4", ["ldr r0, [r1]", "str r0, [r2]", "ldrd r0, r1, [r2]"], 2 + 1 + 3 + 2),
        ("cortex-m33", ["push {r4-r7, lr}", "smlad r0, r1, r2, r0", "sdiv r0, r1, r2"], 6 + 1 + 12 + 2),
        ("cortex-m3", ["ldr r0, [r1]", "mla r0, r1, r2, r0", "smull r0, r1, r2, r3"], 2 + 4 + 2 + 2),
        ("cortex-m0plus", ["ldrb r0, [r1]", "ldrb r2, [r1]", "strb r0, [r3]", "muls r0, r1"], 7 + 1),
        ("cortex-m0plus", ["push {r4-r7, lr}", "pop {r4-r7, pc}"], 13 + 1),
        # two pipes overlap; one pipe's two beats don't
        ("cortex-m55", ["vldrb.u8 q0, [r0]", "vadd.i32 q2, q3, q4", "vldrb.u8 q1, [r0]", "vadd.i32 q2, q3, q4",
                        "letp lr, 0"], 4),
        ("cortex-m55", ["vldrb.u8 q0, [r0]", "vldrb.u8 q1, [r0]", "vadd.i32 q2, q3, q4", "letp lr, 0"], 4),
        ("cortex-m55", ["vmladava.s8 r0, q0, q1", "vmladava.s8 r0, q0, q1", "le lr, 0"], 4),
        ("cortex-m55", ["adds r0, #1", "lsls r2, r3", "adds r1, #1", "lsls r4, r3", "le lr, 0"], 2),
        ("cortex-m55", ["add.w r0, r0, #1", "add.w r2, r2, #1", "le lr, 0"], 2),
        ("cortex-m55", ["lsls r0, r3", "lsls r2, r3", "le lr, 0"], 2),
        # single loads pair with multiplications, several loads issue alone
        ("cortex-m7", ["smlad r2, r6, r8, r2", "ldr r0, [r1]", "smlad r3, r6, r8, r3", "ldr r4, [r1]"], 2),
        ("cortex-m7", ["smlad r2, r6, r8, r2", "ldrd r0, r4, [r1]", "smlad r3, r6, r8, r3"], 3),
        ("cortex-m7", ["ldm r3!, {r4-r7}", "nop"], 3),
        ("cortex-m7", ["smlad r0, r1, r2, r0", "smlad r3, r1, r2, r3"], 2),
        ("cortex-m7", ["sxtb16 r0, r1", "sxtb16 r2, r3", "add r4, r5"], 2),
        ("cortex-m7", ["ldr r0, [r1]", "add r2, r0", "mov r3, r4"], 2),
        ("cortex-m85", ["vldrb.u8 q0, [r0]", "vmladava.s8 r2, q2, q3", "letp lr, 0"], 2),
        ("cortex-m85", ["vldrb.u8 q0, [r0]", "vldrb.u8 q1, [r0]", "letp lr, 0"], 4),
    ],
)  # fmt: skip
def test_cycles_of_a_loop(scoreboard, cpu, code, cycles):
    assert cycles_of_a_turn(scoreboard, cpu, code) == cycles


@pytest.mark.parametrize(
    "code, found",
    [
        ("smlad r2, r6, r8, r2", ("", "r2", "r6 r8", "r2", "")),
        ("mla ip, r0, r1, sl", ("", "r10", "r0 r1", "r12", "")),
        ("smlal r0, r1, r2, r3", ("", "r0 r1", "r2 r3", "r0 r1", "")),
        ("add r0, r1", ("", "", "r0 r1", "r0", "")),
        ("adds r0, r1, #2", ("", "", "r1", "r0 flags", "")),
        ("movne r0, #1", ("", "", "r0 flags", "r0", "")),
        ("muls r0, r1", ("", "", "r0 r1", "r0 flags", "")),
        ("cmp r0, r1", ("", "", "r0 r1", "flags", "")),
        ("bne.n 100 <r1>", ("", "", "flags", "", "")),
        ("ldr r0, [r1, r2, lsl #2]", ("r1 r2", "", "", "r0", "")),
        ("ldr r0, [r1], #4", ("r1", "", "", "r0", "r1")),
        ("strd r0, r1, [sp, #8]!", ("r13", "", "r0 r1", "", "r13")),
        ("ldm r1!, {r4-r6, lr}", ("r1", "", "", "r4 r5 r6 r14", "r1")),
        ("pop {r4, pc}", ("r13", "", "", "r4 r15", "r13")),
        ("vldrw.u32 q1, [r0, q2]", ("r0 s8 s9 s10 s11", "", "", "s4 s5 s6 s7", "")),
        ("vmladava.s8 r0, q0, q1", ("", "r0", "s0 s1 s2 s3 s4 s5 s6 s7", "r0", "")),
        ("vmladav.s8 r0, q0, q0", ("", "", "s0 s1 s2 s3", "r0", "")),
        ("vmov r0, r1, q0[2], q0[0]", ("", "", "s0 s1 s2 s3", "r0 r1", "")),
        ("vmov q0[2], q0[0], r0, r4", ("", "", "r0 r4 s0 s1 s2 s3", "s0 s1 s2 s3", "")),
        ("vfma.f32 s0, s1, s2", ("", "s0", "s1 s2", "s0", "")),
        ("vmls.f32 s0, s1, s2", ("", "s0", "s1 s2", "s0", "")),
    ],
)
def test_registers_of_an_instruction(code, found):
    def named(mask: int) -> str:
        names = [f"r{n}" for n in range(16)] + [f"s{n}" for n in range(32)] + ["flags"]
        return " ".join(name for bit, name in enumerate(names) if mask >> bit & 1)

    assert tuple(map(named, roles(instruction(code)))) == found


def test_a_board_waits_for_its_flash():
    image = Image(0, (), {}, {}, (), {0: instruction("ldr r0, [r1]")})
    loaded = (40, 4) + (0,) * (COLUMNS - 2)
    counts = [Count(NONE, NONE, 0, 11, 0, 22, None, loaded, (0,) * COLUMNS)]
    board = BoardTiming(mhz=10.0, wait_states=5, line=8, reads=1.5, fetch=1.1)
    total = measure(counts, image, True, board).total
    assert total.flash_bytes == 40 and total.cycles == pytest.approx(1.1 * 22 + 40 * 1.5 * 5 / 8)
    assert measure(counts, image, False, board).total.cycles is None


# --- kinds of instructions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, mnemonics",
    [
        ("multiply", "mul muls mla mls.w smlad smlsdx smulbb smlawb smlal umull umaal vmladava.s8 vmlaldavax.s16 "
                     "vmla.s32 vmul.f32 vfma.f32 vmullb.s8 vrmlaldavh.s32 mulne"),
        ("load", "ldr ldrb.w ldrsh ldrd ldm ldmia.w pop vldrb.u8 vldr vldmia vld40.8 ldrle"),
        ("store", "str strb.w strd stmia push vstrb.8 vstr vst20.16"),
        ("widen", "sxtb sxtb16 uxtab16 pkhbt rev16 vmovlb.s8 vshllt.s16 vrev32.8"),
        ("requantize", "smmul smmlar smmlsr ssat usat16 vqrdmulh.s32 vqrdmlah.s32 vqdmulh.s32 vrshl.s32 vqmovnb.s32"),
        ("branch", "b b.n bne.n ble.w bls.n bl blx bx cbz cbnz tbb le letp dlstp.8 wls it itte"),
        ("other", "mov movs add.w adds subs lsls asrs bic cmp vadd.i32 vmax.s8 vmov vdup.32 vmin.s8 smax nop adcs"),
    ],
)  # fmt: skip
def test_kinds_of_instructions(kind, mnemonics):
    assert {mnemonic: kind_of(mnemonic) for mnemonic in mnemonics.split()} == dict.fromkeys(mnemonics.split(), kind)


@pytest.mark.parametrize(
    "target, dtype, floor",
    [
        ("cortex-m4", "int8", 1 / 2), ("cortex-m4", "int16", 1 / 2), ("cortex-m4", "float32", 2),
        ("cortex-m55", "int8", 1 / 16), ("cortex-m55", "int16", 1 / 8), ("cortex-m0plus", "int8", 1 / 2),
        ("cortex-m3", "int16", 1),
    ],
)  # fmt: skip
def test_floors(target, dtype, floor):
    assert floor_per_mac(load_target(target), dtype) == floor


# --- the command -------------------------------------------------------------------------------


def test_lines_belong_to_the_stage_that_counts_its_row_next():
    source = (
        "int f(void)\n{\n    if (a) {\n        g();\n        ++y1;\n    h();\n        ++y0;\n}\nint k(void)\n{\n}\n"
    )
    stages = stage_of_line(source)
    assert [stages[line] for line in (4, 6, 10)] == [1, 0, 0]


def test_lines_of_a_stage_that_makes_several_rows_a_call_are_its_own():
    source = (
        "int f(void)\n{\n        g();\n        y1 = tinyfuse_min(y1 + 4, 9);\n        h();\n        y0 = y0 + 2;\n}\n"
    )
    stages = stage_of_line(source)
    assert [stages[line] for line in (3, 4, 5, 6)] == [1, 1, 0, 0]


def test_rings_that_a_stage_moves_after_its_row_are_its_own():
    drop = "        first2 = tinyfuse_stack_drop(stack, at, 3, 0, first2, y1, 8, taken);\n"
    stages = stage_of_line(f"int f(void)\n{{\n        g();\n        ++y1;\n{drop}        h();\n        ++y0;\n}}\n")
    assert [stages[line] for line in range(3, 8)] == [1, 1, 1, 0, 0]
    slide = "        first2 = tinyfuse_rows_slide(ring, first2, y1, y2, 8);\n"
    source = f"int f(void)\n{{\n        g();\n        ++y1;\n{slide}{slide}        h();\n        ++y0;\n}}\n"
    stages = stage_of_line(source)
    assert [stages[line] for line in range(3, 9)] == [1, 1, 1, 1, 0, 0]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A convolution, a depthwise and a pointwise one: one group of several operators."""
    sketch = Sketch(3)
    x = sketch.value((1, 8, 8, 3), 0.05, 3)
    y = sketch.conv(x, 8, (3, 3))
    y = sketch.depthwise(y, (3, 3))
    y = sketch.conv(y, 8, (1, 1))
    path = tmp_path_factory.mktemp("model") / "three.tflite"
    path.write_bytes(sketch.model.build([x.index], [y.index]))
    return path


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=emulated, id=name) for name in ("cortex-m4", "cortex-m55")]
)
def test_the_profile_has_the_instructions_of_verify(model, target):
    request = Request(str(model), target, kernels="tinyfuse")
    data = profile(request, quiet, PROFILED)
    verified = verify(request, quiet, VERIFIED).data
    assert data["instructions"] == verified["instructions"]
    assert data["stack_bytes"] == verified["stack_bytes"]
    groups = data["groups"]
    for key in ("instructions", "calls"):
        assert data["outside_groups"][key] + sum(group[key] for group in groups) == data[key]
    for group in groups:
        assert sum(op["instructions"] for op in group["operators"]) == group["instructions"]
        for op in group["operators"]:
            assert sum(op["instruction_kinds"].values()) == op["instructions"]
            assert op["floor_per_mac"] * op["macs"] <= op["instruction_kinds"]["multiply"] < op["instructions"]
            assert sum(f["instructions"] for f in op["functions"]) == op["instructions"]
            assert any(f["name"] == op["kernel"] for f in op["functions"])
        assert 0 < group["stack_bytes"] <= data["stack_bytes"]
    assert max(group["stack_bytes"] for group in groups) == data["stack_bytes"]
    assert data["loaded_bytes"]["arena"] > data["macs"] / 100
    assert data["loaded_bytes"]["other"] == data["stored_bytes"]["other"] == 0
    assert data["stored_bytes"]["flash"] == 0
    assert data["estimated_cycles"] > data["instructions"] / 2
    unfused = verify(Request(str(model), target, kernels="tinyfuse", fusion="none"), quiet, VERIFIED).data
    for key in ("instructions", "arena_bytes", "stack_bytes"):
        assert data["unfused"][key] == unfused[key]


@needs_qemu
@needs_plugin
@pytest.mark.emulated
def test_a_module_in_steps_is_counted_too(model):
    """Regression: nothing was counted, because inferences run in steps, except for the timed one, which calls
    NAME_run."""
    data = profile(Request(str(model), "cortex-m4", kernels="tinyfuse", step=True), quiet, PROFILED)
    assert all(group["instructions"] > 0 for group in data["groups"])
    inside = sum(group["instructions"] for group in data["groups"])
    assert data["outside_groups"]["instructions"] + inside == data["instructions"]


def run_cli(*arguments: object):
    return CliRunner().invoke(main, ["profile", *map(str, arguments)])


@needs_qemu
@needs_plugin
@pytest.mark.emulated
def test_the_command(model, tmp_path):
    common = (model, "--target", "cortex-m4", "--kernels", "tinyfuse", "--fusion", "none")
    svg = tmp_path / "three.svg"
    answer = run_cli(*common, "--json", "--svg", svg)
    assert answer.exit_code == 0
    data = json.loads(answer.stdout)
    assert data["schema_version"] == 1 and data["unfused"] is None
    picture = ElementTree.fromstring(svg.read_text())
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert f"one inference: {data['instructions']:,} instructions, 100.0 %" in titles
    text = run_cli(*common).stdout
    assert f"{data['instructions']:,}" in text and "DEPTHWISE_CONV_2D" in text and "█" in text
    assert "are estimated from" in text
    assert "above 2 times the floor" in text and text.count("DEPTHWISE_CONV_2D") == 2


@needs_qemu
@pytest.mark.emulated
def test_without_a_compiler_the_totals_are_left(model, monkeypatch):
    def none(qemu_version: str) -> Path:
        raise ToolMissing("a C compiler for this machine", "apt-get install gcc")

    monkeypatch.setattr("tinyfuse.api.profiling.build_plugin", none)
    request = Request(str(model), "cortex-m4", kernels="tinyfuse", fusion="none")
    data = profile(request, quiet, PROFILED)
    assert data["instructions"] > 0 and data["stack_bytes"] > 0
    assert any("a C compiler" in warning for warning in data["warnings"])
    for usage in (data, data["outside_groups"], *data["groups"], *data["groups"][0]["operators"]):
        assert usage["loaded_bytes"] is usage["calls"] is usage["estimated_cycles"] is None
    with pytest.raises(UsageError, match="--svg needs"):
        profile_svg(data)
    text = run_cli(model, "--target", "cortex-m4", "--kernels", "tinyfuse").stdout
    assert f"{data['instructions']:,}" in text and " - " in text and "the floor" not in text


def test_the_host_is_no_core(model):
    answer = run_cli(model, "--target", "host")
    assert answer.exit_code == 2 and "emulated core" in answer.stderr


def test_renode_has_no_counter(model, monkeypatch):
    class Absent(Renode):
        def __init__(self, path=None):
            raise ToolMissing("Renode", "https://renode.io")

    monkeypatch.setattr("tinyfuse.verify.emulation.Renode", Absent)
    assert run_cli(model, "--target", "cortex-m4", "--emulator", "renode").exit_code == 3
