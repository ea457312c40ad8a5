"""Faults of use: registers, modes, interrupts and memory that a module must leave to its caller.

Each fault leaves all outputs of an undisturbed run right. tests/emulated/test_mutations.py seeds faults of arithmetic.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from executors import plan_of
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from test_mutations import RUNS, Subject, fed, subject_of

from tinyfuse.emit import emit
from tinyfuse.verify.emulation.checked_calls import entry_points

HAS_QEMU = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
pytestmark = pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")


@cache
def subject(target: str) -> Subject:
    sketch = Sketch(1)
    x = sketch.value((1, 6, 5, 4))
    data = sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])
    return subject_of(plan_of(data, target, kernels="tinyfuse"), RUNS)


def verdict(target: str, statement: str, work: Path) -> str:
    """How `verify` finds a module with that statement at the end to be wrong; "" where it finds nothing."""
    judged = subject(target)
    files, name = emit(judged.plan), judged.plan.options.name
    anchor = f"    {name.upper()}_GROUP_END({judged.plan.groups[-1].index});"
    output = judged.plan.offset(judged.plan.graph.outputs[0])
    assert anchor in files[f"{name}.c"]
    seeded = files[f"{name}.c"].replace(anchor, f"    {statement.replace('OUTPUT', f'bytes[{output}]')}\n{anchor}")
    return judged.verdict(files | {f"{name}.c": seeded}, work)


def assembly(*instructions: str) -> str:
    return '__asm volatile("' + "\\n\\t".join(instructions) + '");'


#: a loop of some thousand instructions, in registers that need not be preserved
WAIT = ("movw r1, #1000", "1: subs r1, r1, #1", "bne 1b")

#: name -> (target, statement, words that `verify` must say)
FAULTS = {
    "r4": ("cortex-m4", assembly("mov r4, #0"), "with r4 changed"),
    "r10": ("cortex-m4", assembly("mov r10, #0"), "with r10 changed"),
    "r11": ("cortex-m4", assembly("mov r11, sp"), "with r11 changed"),
    "r8, Armv6-M": ("cortex-m0plus", assembly("mov r8, sp"), "with r8 changed"),
    "r11, Armv6-M": ("cortex-m0plus", assembly("mov r11, sp"), "with r11 changed"),
    "s16": ("cortex-m4", assembly("vmov.f32 s16, #1.0"), "with s16 changed"),
    "s19": ("cortex-m7", assembly("vmov.f32 s19, #1.0"), "with s19 changed"),
    "s31": ("cortex-m33", assembly("vmov.f32 s31, #1.0"), "with s31 changed"),
    "q4": ("cortex-m55", assembly("vmov.i32 q4, #7"), "with s16 changed"),
    "q7": ("cortex-m55", assembly("veor q7, q7, q7"), "with s28 changed"),
    "interrupts off": ("cortex-m4", assembly("cpsid i"), "with PRIMASK changed"),
    "interrupts off, Armv6-M": ("cortex-m0plus", assembly("cpsid i"), "with PRIMASK changed"),
    "interrupts on": ("cortex-m4", assembly("cpsid i", "cpsie i"), "with PRIMASK changed"),
    "faults off": ("cortex-m4", assembly("cpsid f"), "with FAULTMASK changed"),
    "BASEPRI raised": ("cortex-m4", assembly("movs r1, #0x20", "msr basepri, r1"), "with BASEPRI changed"),
    "BASEPRI cleared": ("cortex-m55", assembly("movs r1, #0", "msr basepri, r1"), "with BASEPRI changed"),
    "rounding": ("cortex-m4", assembly("vmrs r1, fpscr", "orr r1, #0x00C00000", "vmsr fpscr, r1"), "with FPSCR changed"),
    "flush to zero": ("cortex-m7", assembly("vmrs r1, fpscr", "orr r1, #0x01000000", "vmsr fpscr, r1"), "FPSCR changed"),
    "data below sp": (
        "cortex-m4",
        "{ uint32_t read; __asm volatile(\"mov r0, #77\\n\\tstr r0, [sp, #-8]\\n\\t" + "\\n\\t".join(WAIT)
        + "\\n\\tldr %0, [sp, #-8]\" : \"=r\"(read) : : \"r0\", \"r1\", \"memory\");"
        " OUTPUT = (uint8_t)(OUTPUT ^ (uint8_t)(read ^ 77u)); }",
        "outputs differ",
    ),
    "data far below sp": (
        "cortex-m55",
        "{ uint32_t read; __asm volatile(\"mov r0, #77\\n\\tstr r0, [sp, #-240]\\n\\t" + "\\n\\t".join(WAIT)
        + "\\n\\tldr %0, [sp, #-240]\" : \"=r\"(read) : : \"r0\", \"r1\", \"memory\");"
        " OUTPUT = (uint8_t)(OUTPUT ^ (uint8_t)(read ^ 77u)); }",
        "outputs differ",
    ),
    "sp as a pointer": (
        "cortex-m4",
        "__asm volatile(\"mov r0, sp\\n\\tmov sp, %0\\n\\t" + "\\n\\t".join(WAIT)
        + "\\n\\tmov sp, r0\" : : \"r\"(bytes) : \"r0\", \"r1\", \"memory\");",
        "arena changed",
    ),
    "a local that is not set": (
        "cortex-m4",
        "{ uint32_t read; __asm volatile(\"sub sp, #2000\\n\\tldr %0, [sp]\\n\\tadd sp, #2000\" : \"=r\"(read));"
        " OUTPUT = (uint8_t)(OUTPUT ^ (uint8_t)(read & 1u)); }",
        "outputs differ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", sorted({target for target, _, _ in FAULTS.values()}))
def test_unspoilt_modules_pass(tmp_path, target: str) -> None:
    assert verdict(target, "", tmp_path / "work") == ""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_use_is_seen(tmp_path, name: str) -> None:
    target, statement, seen = FAULTS[name]
    assert seen in verdict(target, statement, tmp_path / "work")


def test_entry_points_are_what_an_application_calls() -> None:
    header = emit(subject("cortex-m4").plan)["net.h"]
    found = entry_points(header, "net")
    assert {"net_init", "net_run", "net_input", "net_output_bytes", "net_strerror"} <= set(found)
    assert not any("quantize" in name for name in found)  # static inline


def test_a_state_that_must_not_move_is_seen(tmp_path) -> None:
    """A module that remembers its state's address, in a byte of padding."""
    plan = plan_of(STREAM_MODELS["svdf of int8"], "cortex-m4", kernels="tinyfuse")
    judged, files, output = subject_of(plan, RUNS), emit(plan), plan.offset(plan.graph.outputs[0])
    assert plan.state_bytes == 16
    reset, last = "    memset((uint8_t *)state + 0u, 0, 15u);", "    NET_GROUP_END(0);"
    remembers = "((uint8_t *)state)[15] = (uint8_t)((uintptr_t)state >> 2);"
    relies = f"bytes[{output}] ^= (uint8_t)(kept[15] ^ (uint8_t)((uintptr_t)state >> 2));"
    seeded = files["net.c"]
    for anchor, statement in ((reset, remembers), (last, relies)):
        assert anchor in seeded
        seeded = seeded.replace(anchor, f"    {statement}\n{anchor}")
    assert judged.verdict(files, tmp_path / "sound") == ""
    assert "outputs differ" in judged.verdict(files | {"net.c": seeded}, tmp_path / "seeded")


def test_rows_that_are_read_after_their_call_are_seen(tmp_path) -> None:
    """A module that looks at the rows of the call before; its variables are 0 again at the end of an inference."""
    plan = fed()
    judged, files, output = subject_of(plan, RUNS), emit(plan), plan.offset(plan.graph.outputs[0])
    before, after, last = "    NET_GROUP_BEGIN(0);", "    NET_GROUP_END(0);", "    NET_GROUP_END(1);"
    seeds = {
        before: "    if (state.rows > 0u && *previous != seen) { wrong = 1; }\n" + before,
        after: after + "\n    if (count > 0u) { previous = rows; seen = *rows; }",
        last: last + f"\n    bytes[{output}] ^= wrong; previous = NULL; seen = 0; wrong = 0;",
        "int net_feed_rows": "static const int8_t *previous; static int8_t seen; static uint8_t wrong;\nint net_feed_rows",
    }
    seeded = files["net.c"]
    for anchor, text in seeds.items():
        assert seeded.count(anchor) == 1
        seeded = seeded.replace(anchor, text)
    assert judged.verdict(files, tmp_path / "sound") == ""
    assert "outputs differ" in judged.verdict(files | {"net.c": seeded}, tmp_path / "seeded")
