"""Faults of use to seed into generated modules: what a module must not do to its caller, and what it must not rely on.

    for fault in FAULTS:
        plan = PLANS[fault.model]()
        fault.seeded(emit(plan), plan)  # the module's files with the fault

tests/support/mutations.py seeds faults of arithmetic. Most of these here leave the outputs of an undisturbed run right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial

from executors import plan_of
from random_graphs import Sketch
from sliding_models import padded
from stream_models import STREAM_MODELS

from tinyfuse.plan import Plan

LABELS = ("yes", "no", 'a "third" one', "4", "5", "6")


def _separable(**more: int) -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 6, 5, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    return sketch.build([x], [sketch.fully_connected(y, 6)] if more else [y])


def _floats() -> bytes:
    sketch = Sketch(1, dtype="float32")
    x = sketch.value((1, 5, 4, 3))
    return sketch.build([x], [sketch.conv(x, 4, (3, 3))])


@cache
def plan_for(model: str) -> Plan:
    """Plan of a model below: "conv", or "conv cortex-m55" for another target than the Cortex-M4."""
    name, _, target = model.partition(" ")
    data, options = {
        "conv": (_separable, {}),
        "labels": (partial(_separable, dense=1), {"labels": (LABELS,)}),
        "float": (_floats, {}),
        "svdf": (lambda: STREAM_MODELS["svdf of int8"], {}),
        "fed": (_separable, {"feed_rows": True}),
        "slide": (padded, {"slide": 2}),
        "step": (_separable, {"step": True}),
        "blob": (_separable, {"weights_blob": True}),
        "staged": (_separable, {"fusion": "none", "memory": ("dtcm=64K", "qspi=1M:slow")}),
    }[name]
    return plan_of(data(), target or "cortex-m4", kernels="tinyfuse", **options)


@dataclass(frozen=True)
class Fault:
    """A fault of use.

    group  heading of the table
    model  argument of plan_for
    edits  place -> C text that is put before it. A place is "begin" or "end", of the inference's first or last group;
           or "FILE: PATTERN", whose first match is replaced by the text
    seen   words that verify must say
    by     "default", or "thorough" if only `verify --thorough` must see it
    """

    group: str
    name: str
    model: str
    edits: dict[str, str]
    seen: str
    by: str = "default"

    def seeded(self, files: dict[str, str], plan: Plan) -> dict[str, str]:
        """Files with the fault. In a text, OUTPUT is the first byte of the first output."""
        found, output = dict(files), f"bytes[{plan.offset(plan.graph.outputs[0])}]"
        places = {
            "begin": r"net.c: (?= *NET_GROUP_BEGIN\(0\);)",
            "end": rf"net.c: (?= *NET_GROUP_END\({plan.groups[-1].index}\);)",
        }
        for place, text in self.edits.items():
            file, _, pattern = places.get(place, place).partition(": ")
            line = f"    {text}\n" if place in places else text
            changed, count = re.subn(pattern, line.replace("\\", "\\\\").replace("OUTPUT", output).replace("\\\\g<", "\\g<"),
                                     found[file], count=1, flags=re.M)  # fmt: skip
            assert count == 1 and changed != found[file], (self.name, place)
            found[file] = changed
        return found


def assembly(*instructions: str) -> str:
    return _on_core('__asm volatile("' + "\\n\\t".join(instructions) + '");')


def _on_core(statement: str) -> str:
    return f"\n#if !defined(TINYFUSE_ANY_CPU)\n    {statement}\n#endif\n    "


#: a loop of some thousand instructions, in registers that need not be preserved
WAIT = ("movw r1, #1000", "1: subs r1, r1, #1", "bne 1b")


def _below_sp(distance: int) -> str:
    first, last = ("mov r0, #77", f"str r0, [sp, #-{distance}]"), (f"ldr %0, [sp, #-{distance}]",)
    text = "\\n\\t".join((*first, *WAIT, *last))
    return f'{{ uint32_t read; __asm volatile("{text}" : "=r"(read) : : "r0", "r1", "memory"); OUTPUT ^= (uint8_t)(read ^ 77u); }}'


def _reads(instruction: str, mask: int) -> str:
    """Statement that lets the output depend on a register that nobody set."""
    return f'{{ uint32_t read; __asm volatile("{instruction}" : "=r"(read)); OUTPUT ^= (uint8_t)((read & {mask:#x}u) != 0u); }}'


def _faults(group: str, rows: dict[str, tuple]) -> list[Fault]:
    """Faults of a group: name -> (model, edits or the text at the end, words[, by])."""
    return [
        Fault(group, name, model, {"end": edits} if isinstance(edits, str) else edits, *more)
        for name, (model, edits, *more) in rows.items()
    ]


def _changes(register: str, model: str, *instructions: str) -> tuple[str, str, str]:
    return model, assembly(*instructions), f"with {register} changed"


_SCS = "(*(volatile uint32_t *){:#x}u)".format

REGISTERS = {
    "r4": _changes("r4", "conv", "mov r4, #0"),
    "r5": _changes("r5", "conv", "mov r5, #0"),
    "r6": _changes("r6", "conv cortex-m3", "mov r6, #0"),
    "r8, Armv6-M": _changes("r8", "conv cortex-m0plus", "mov r8, sp"),
    "r9": _changes("r9", "conv cortex-m33", "mov r9, #1"),
    "r10": _changes("r10", "conv", "mov r10, #0"),
    "r11": _changes("r11", "conv", "mov r11, sp"),
    "r11, Armv6-M": _changes("r11", "conv cortex-m0plus", "mov r11, sp"),
    "s16": _changes("s16", "conv", "vmov.f32 s16, #1.0"),
    "s19": _changes("s19", "conv cortex-m7", "vmov.f32 s19, #1.0"),
    "s31": _changes("s31", "conv cortex-m33", "vmov.f32 s31, #1.0"),
    "q4": _changes("s16", "conv cortex-m55", "vmov.i32 q4, #7"),
    "q7": _changes("s28", "conv cortex-m55", "veor q7, q7, q7"),
    "interrupts off": _changes("PRIMASK", "conv", "cpsid i"),
    "interrupts off, Armv6-M": _changes("PRIMASK", "conv cortex-m0plus", "cpsid i"),
    "interrupts on": _changes("PRIMASK", "conv", "cpsid i", "cpsie i"),
    "faults off": _changes("FAULTMASK", "conv", "cpsid f"),
    "BASEPRI raised": _changes("BASEPRI", "conv", "movs r1, #0x20", "msr basepri, r1"),
    "BASEPRI cleared": _changes("BASEPRI", "conv cortex-m55", "movs r1, #0", "msr basepri, r1"),
    "unprivileged": (*_changes("CONTROL", "conv", "mrs r1, control", "orr r1, #1", "msr control, r1")[:2], "stopped"),
    "rounding": _changes("FPSCR", "conv", "vmrs r1, fpscr", "orr r1, #0x00C00000", "vmsr fpscr, r1"),
    "flush to zero": _changes("FPSCR", "conv cortex-m7", "vmrs r1, fpscr", "orr r1, #0x01000000", "vmsr fpscr, r1"),
    "default NaN": _changes("FPSCR", "conv cortex-m33", "vmrs r1, fpscr", "orr r1, #0x02000000", "vmsr fpscr, r1"),
    "loop tail predication": _changes("FPSCR", "conv cortex-m55", "mov r1, #2", "dlstp.8 lr, r1"),
    "a VPT block left open": ("conv cortex-m55", assembly("movw r1, #0xFFFF", "movt r1, #0x00F8", "vmsr vpr, r1"),
                              "VPR"),
    "relies on Q": ("conv", {"end": _reads("mrs %0, apsr", 1 << 27)}, "outputs differ"),
    "relies on GE": ("conv", {"end": _reads("mrs %0, apsr", 0xF0000)}, "outputs differ"),
    "relies on FPSCR.QC": ("conv cortex-m55", {"end": _reads("vmrs %0, fpscr", 1 << 27)}, "outputs differ"),
    "relies on P0": ("conv cortex-m55", {"begin": "uint32_t p0; __asm volatile(\"vmrs %0, p0\" : \"=r\"(p0));",
                                         "end": "OUTPUT ^= (uint8_t)(p0 != 0u);"}, "outputs differ"),
    "relies on s0": ("conv", {"begin": "uint32_t s0; __asm volatile(\"vmov %0, s0\" : \"=r\"(s0));",
                              "end": "OUTPUT ^= (uint8_t)(s0 != 0u);"}, "outputs differ"),
    "init leaves s16": ("conv", {r"net.c: (int net_init.*\n\{\n)": "\\g<1>" + assembly("vmov.f32 s16, #1.0") + "\n"},
                        "net_init returned with s16 changed"),
    "an accessor leaves r7": ("conv", {r"net.c: (net_output_bytes.*\n\{\n)": "\\g<1>" + assembly("mov r8, #0") + "\n"},
                              "net_output_bytes returned with r8 changed"),
    "rounding assumed": ("float", {r"net.c: if \(.*rounds_to_nearest.*\) \{": "if (0) {"}, "ERROR_ROUNDING"),
}  # fmt: skip

#: priorities of interrupts that are off: no harness looks at them
_PRIORITIES = _SCS(0xE000E400)


def _kept_in_register(pointer: str) -> dict[str, str]:
    """Edits that keep an address in a register of the system during an inference."""
    key = f"(uint32_t)((uintptr_t){pointer} >> 2 & 0xF8u)"
    return {
        "begin": f"{_PRIORITIES} = {key};",
        "end": f"OUTPUT ^= (uint8_t)({_PRIORITIES} != {key}); {_PRIORITIES} = 0u;",
    }


INTERRUPTS = {
    "data below sp": ("conv", _below_sp(8), "outputs differ"),
    "data far below sp": ("conv cortex-m55", _below_sp(240), "outputs differ"),
    "data below sp, Armv6-M": ("conv cortex-m0plus",
                               "{ uint32_t read; __asm volatile(\"mov r1, sp\\n\\tsub r1, #16\\n\\tmov r0, #77\\n\\tstr r0, [r1]\\n\\t"
                               "mov r2, #250\\n\\tlsl r2, #3\\n1: sub r2, #1\\n\\tbne 1b\\n\\tldr %0, [r1]\" : \"=r\"(read) : : \"r0\", \"r1\", \"r2\", \"memory\");"
                               " OUTPUT ^= (uint8_t)(read ^ 77u); }", "outputs differ"),
    "sp as a pointer": ("conv", "__asm volatile(\"mov r0, sp\\n\\tmov sp, %0\\n\\t" + "\\n\\t".join(WAIT)
                        + "\\n\\tmov sp, r0\" : : \"r\"(bytes) : \"r0\", \"r1\", \"memory\");", "arena changed"),
    "static scratch": ("conv", {"net.c: (?=NET_CODE_ATTR\nint net_run)": "static volatile uint8_t scratch;\n",
                                "end": "scratch = OUTPUT; " + assembly(*WAIT) + " OUTPUT = scratch; scratch = 0;"},
                       "outputs differ"),
    "static scratch that is initialized": ("conv", {
        "net.c: (?=NET_CODE_ATTR\nint net_run)": "static volatile uint8_t scratch = 3;\n",
        "end": "scratch = OUTPUT; OUTPUT = scratch; scratch = 3;"}, "has a variable"),
    "static scratch of a kernel": ("conv", {
        r"tinyfuse_pointwise.h: \A": "#include <stdint.h>\nstatic volatile uint8_t tinyfuse_scratch;\n",
        "end": "tinyfuse_scratch = OUTPUT; OUTPUT = tinyfuse_scratch; tinyfuse_scratch = 0;"}, "has a variable"),
    "a lock between two calls": ("step", {
        "net.c: (?=NET_CODE_ATTR\nint net_step)": "static volatile uint8_t busy;\n",
        "net.c: (    switch \\(cursor->group\\) \\{)": "    if (busy) { return NET_ERROR_CURSOR; }\n    busy = 1;\n\\g<1>",
        "end": "busy = 0;", r"net.c:  +NET_GROUP_END\(0\);": "busy = 0; NET_GROUP_END(0);"}, "an interrupt made an inference"),
    "interrupts masked for a while": ("conv", assembly("mrs r2, primask", "cpsid i", *WAIT, "msr primask, r2"), "masked"),
    "interrupts masked by BASEPRI": ("conv", assembly("mrs r2, basepri", "movs r1, #1", "msr basepri, r1", *WAIT,
                                                      "msr basepri, r2"), "masked"),
    "the vector table": ("conv", _SCS(0xE000ED08) + " ^= 0x400u;", ""),
    "lazy stacking": ("conv", _SCS(0xE000EF34) + " ^= 0x40000000u;", "system register"),
    "the coprocessors": ("conv cortex-m7", _SCS(0xE000ED88) + " &= ~0x200000u;", "system register"),
    "unaligned accesses": ("conv cortex-m3", _SCS(0xE000ED14) + " ^= 0x8u;", "system register"),
    "sleep on exit": ("conv cortex-m33", _SCS(0xE000ED10) + " ^= 0x2u;", "system register"),
    "the timer": ("conv", _SCS(0xE000E014) + " ^= 0x2u;", "system register"),
    "an interrupt enabled": ("conv", _SCS(0xE000E100) + " = 0x4u;", "system register"),
    "scratch in a system register": ("conv", _kept_in_register("arena"), "outputs differ"),
    "scratch in a system register, Armv6-M": ("conv cortex-m0plus", _kept_in_register("arena"), "outputs differ"),
    "scratch in a system register, Armv8.1-M": ("conv cortex-m55", _kept_in_register("arena"), "outputs differ"),
    "the state's address in a system register": ("svdf", _kept_in_register("state"), "outputs differ"),
    "frames in a system register": ("slide", _kept_in_register("frames"), "outputs differ"),
    "a lock in a system register": ("conv", {
        r"net.c: (int net_run(?:.*\n)*?)(    if \(arena == NULL)":
            f"\\g<1>    if ({_PRIORITIES} != 0u) {{ return NET_ERROR_NULL; }}\n    {_PRIORITIES} = 8u;\n\\g<2>",
        "end": _PRIORITIES + " = 0u;"}, "which gave status"),
}  # fmt: skip

_ARRAY = "*(volatile uint8_t *)(uintptr_t)net_g0s0_weights"
MEMORY = {
    "a byte before the arena": ("conv", "bytes[-1] ^= 1;", "before the arena"),
    "a byte behind the arena": ("conv", "bytes[NET_ARENA_BYTES] ^= 1;", "after the arena"),
    "a byte far behind": ("conv", "bytes[NET_ARENA_BYTES + 40000] = 1;", "memory"),
    "a byte far before": ("conv", "bytes[-9000] = 1;", "memory"),
    "a byte before, put back": ("conv", "{ volatile uint8_t *const p = bytes - 1; const uint8_t old = *p;"
                                " *p = (uint8_t)~old; *p = old; }", "AddressSanitizer", "thorough"),
    "a byte behind, put back": ("conv", "{ volatile uint8_t *const p = bytes + NET_ARENA_BYTES; const uint8_t old = *p;"
                                " *p = (uint8_t)~old; *p = old; }", "AddressSanitizer", "thorough"),
    "a word far behind, put back": ("conv", "{ volatile uint32_t *const p = (volatile uint32_t *)(void *)(bytes + 65536);"
                                    " const uint32_t old = *p; *p = ~old; *p = old; }", "not the module's"),
    "a word far behind is read": ("conv", "(void)*(volatile uint32_t *)(void *)(bytes + 65536);", "not the module's"),
    "a word far behind is read, Armv6-M": ("conv cortex-m0plus", "(void)*(volatile uint32_t *)(void *)(bytes + 65536);",
                                           "not the module's"),
    "a word far behind is read, Armv8.1-M": ("conv cortex-m55", "(void)*(volatile uint32_t *)(void *)(bytes + 65536);",
                                             "not the module's"),
    "a peripheral is read": ("conv", "(void)*(volatile uint32_t *)0x40004000u;", "not the module's"),
    "the guard is read": ("conv", "OUTPUT ^= bytes[-1];", "outputs differ"),
    "weights are written": ("conv", _ARRAY + " = 77;", "not the module's"),
    "weights are written, put back": ("conv", "{ const uint8_t old = " + _ARRAY + "; " + _ARRAY + " = (uint8_t)~old; "
                                      + _ARRAY + " = old; }", "not the module's"),
    "code is written": ("conv", "*(volatile uint8_t *)((uintptr_t)&net_init & ~(uintptr_t)1u) ^= 0u;", "not the module's"),
    "a local that is not set": ("conv", "{ uint32_t read; __asm volatile(\"sub sp, #2000\\n\\tldr %0, [sp]\\n\\tadd sp, #2000\""
                                " : \"=r\"(read)); OUTPUT ^= (uint8_t)(read & 1u); }", "outputs differ"),
    "a local of C that is not set": ("conv", "{ volatile uint8_t local[64]; OUTPUT ^= (uint8_t)(local[5] != 0u); }",
                                     "outputs differ"),
    "an arena of zeros": ("conv", {"begin": "const uint8_t read = bytes[300];", "end": "OUTPUT ^= (uint8_t)(read != 0u);"},
                          "outputs differ"),
    "padding of the state": ("svdf", "OUTPUT ^= (uint8_t)(kept[15] != 0u);", "outputs differ"),
    "a byte behind the state": ("svdf", "kept[NET_STATE_BYTES] ^= 1;", "after the state"),
    "a byte before the state": ("svdf", "kept[-1] ^= 1;", "before the state"),
    "reset writes too much": ("svdf", {r"net.c: state \+ 0u, 0, 15u": "state + 0u, 0, 17u"}, "state"),
    "init writes behind": ("conv", {r"net.c: (int net_init(?:.*\n)*?)(    return NET_OK;)":
                                    "\\g<1>    ((uint8_t *)arena)[NET_ARENA_BYTES] = 1;\n\\g<2>"}, "after the arena"),
    "an accessor writes": ("conv", {r"net.c: (\*net_input\(void \*arena, size_t index\)\n\{\n)":
                                    "\\g<1>    if (arena != NULL) { ((uint8_t *)arena)[-2] = 1; }\n"}, "before the arena"),
    "more rows of a cursor": ("step", {r"net.c: ( +)rows\[0\] = y0;": "\\g<1>rows[0] = y0; rows[1 + (y0 > 3)] = 7;"},
                              "", "default"),
    "more stack than promised": ("conv", "{ volatile uint8_t more[NET_STACK_BYTES]; more[0] = 1; OUTPUT ^= (uint8_t)(more[0] - 1); }",
                                 "stack"),
    "the heap": ("conv", {r"net.c: (?=#include \"net.h\")": "#include <stdlib.h>\n", "end": "free(malloc(8));"}, "_sbrk"),
}  # fmt: skip

_RESET = r"net.c: (?=    memset\(\(uint8_t \*\)state \+ 0u, 0, 15u\);)"
_COUNTER = "    ((uint8_t *)state)[15] = 0u;\n"
TIME = {
    "the arena keeps a byte between runs": ("conv", {
        r"net.c: (int net_init(?:.*\n)*?)(    return NET_OK;)": "\\g<1>    ((uint8_t *)arena)[300] = 0x5A;\n\\g<2>",
        "begin": "const uint8_t read = bytes[300];", "end": "bytes[300] = 0x5A; OUTPUT ^= (uint8_t)(read != 0x5Au);"},
        "outputs differ"),
    "init is relied on": ("conv", {
        r"net.c: (int net_init(?:.*\n)*?)(    return NET_OK;)": "\\g<1>    ((uint8_t *)arena)[300] = 0x5A;\n\\g<2>",
        "begin": "const uint8_t read = bytes[300];", "end": "OUTPUT ^= (uint8_t)(read != 0x5Au);"}, "outputs differ"),
    "the arena keeps a byte between streams": ("svdf", {
        r"net.c: (int net_init(?:.*\n)*?)(    return NET_OK;)":
            "\\g<1>    ((uint8_t *)arena)[NET_ARENA_BYTES - 1] = 0x5A;\n\\g<2>",
        "begin": "const uint8_t read = bytes[NET_ARENA_BYTES - 1];",
        "end": "bytes[NET_ARENA_BYTES - 1] = 0x5A; OUTPUT ^= (uint8_t)(read != 0x5Au);"}, "outputs differ"),
    "the arena keeps a byte between slides": ("slide", {
        "begin": "const uint8_t read = bytes[NET_ARENA_BYTES - 1], first = kept[NET_STATE_BYTES - 1];",
        "end": "bytes[NET_ARENA_BYTES - 1] = 0x5A; (void)first; if (kept[NET_STATE_BYTES - 4] == 0u) "
               "{ OUTPUT ^= (uint8_t)(read != 0x5Au); }"}, "outputs differ"),
    "the state's address": ("svdf", {
        r"net.c: (?=    memset\(\(uint8_t \*\)state \+ 0u, 0, 15u\);)":
            "    ((uint8_t *)state)[15] = (uint8_t)((uintptr_t)state >> 2);\n",
        "end": "OUTPUT ^= (uint8_t)(kept[15] ^ (uint8_t)((uintptr_t)state >> 2));"}, "outputs differ"),
    "the arena's address": ("step", {
        r"net.c: ( +)NET_GROUP_END\(0\);": "\\g<1>bytes[NET_ARENA_BYTES - 1] = (uint8_t)((uintptr_t)arena >> 3);\n\\g<1>NET_GROUP_END(0);",
        "end": "if (cursor->rows[0] == 1) { OUTPUT ^= (uint8_t)(bytes[NET_ARENA_BYTES - 1] ^ (uint8_t)((uintptr_t)arena >> 3)); }"},
        "outputs differ"),
    "one state for all": ("svdf", {r"net.c: (uint8_t \*const kept = )\(uint8_t \*\)state;":
        "static uint8_t shared[NET_STATE_BYTES]; \\g<1>state == NULL ? NULL : shared;"}, ""),
    "no reset": ("svdf", {r"net.c: memset\(\(uint8_t \*\)state \+ 0u": "if (0) memset((uint8_t *)state + 0u"}, ""),
    "reset of a part": ("svdf", {r"net.c: state \+ 0u, 0, 15u": "state + 0u, 0, 14u"}, ""),
    "rows are read later": ("fed", {
        "net.c: (?=NET_CODE_ATTR\nint net_feed_rows)":
            "static const int8_t *previous; static int8_t seen; static uint8_t wrong;\n",
        r"net.c:  +NET_GROUP_BEGIN\(0\);": "    if (state.rows > 0u && *previous != seen) { wrong = 1; }\n    NET_GROUP_BEGIN(0);",
        r"net.c:  +NET_GROUP_END\(0\);": "    NET_GROUP_END(0); if (count > 0u) { previous = rows; seen = *rows; }",
        "end": "OUTPUT ^= wrong; previous = NULL; seen = 0; wrong = 0;"}, "outputs differ"),
    "rows that are aligned": ("fed", {r"net.c:  +NET_GROUP_BEGIN\(0\);":
        "    if (((uintptr_t)rows & 3u) != 0u) { return NET_ERROR_ALIGNMENT; }\n    NET_GROUP_BEGIN(0);"}, ""),
    "frames that are aligned": ("slide", {r"net.c: memcpy\(bytes \+ 0u, frames, 8u\);":
        "if (((uintptr_t)frames & 3u) != 0u) { return NET_ERROR_ALIGNMENT; } memcpy(bytes + 0u, frames, 8u);"}, ""),
    "frames are read later": ("slide", {
        r"net.c: (?=NET_CODE_ATTR\nint net_slide)": "static const int8_t *previous; static int8_t seen;\n",
        "end": "if (previous != NULL) { OUTPUT ^= (uint8_t)(*previous != seen); } previous = frames; seen = *frames;"}, ""),
    "frames are written": ("slide", "((int8_t *)(uintptr_t)frames)[0] ^= 1;", ""),
    "rows are written": ("fed", {r"net.c:  +NET_GROUP_END\(0\);":
        "    if (count > 0u) { ((int8_t *)(uintptr_t)rows)[0] ^= 1; }\n    NET_GROUP_END(0);"}, ""),
    "an inference that was left": ("step", {
        "net.c: (?=NET_CODE_ATTR\nint net_step)": "#define NET_BUSY bytes[NET_ARENA_BYTES - 1]\n",
        r"net.c: ( +)NET_GROUP_BEGIN\(0\);":
            "\\g<1>if (cursor->rows[0] == 0) { cursor->rows[NET_CURSOR_ROWS - 1] = 0; }\n\\g<1>NET_GROUP_BEGIN(0);",
        r"net.c: (    if \(cursor->check != net_cursor_check\(cursor\)\) \{)":
            "    static uint8_t steps; if (cursor->check == 0u && steps != 0u) { return NET_ERROR_CURSOR; } ++steps;\n\\g<1>",
        r"net.c: (        if \(next == 0 \|\| next == 2\) \{\n)": "\\g<1>            steps = 0;\n"}, ""),
    "a feed that was left": ("fed", {
        r"net.c: (?=NET_CODE_ATTR\nint net_begin)": "static uint8_t net_busy;\n",
        r"net.c: (?=    memset\(bytes \+ \d+u, 0, \d+u\);\n    tinyfuse_feed_store)": "    if (net_busy) { return NET_OK; }\n    net_busy = 1;\n",
        "end": "net_busy = 0;"}, ""),
    "a cursor of another inference": ("step", {r"net.c:         \*cursor = first;\n        if \(next":
        "        cursor->check = 1u;\n        if (next"}, ""),
    "a counter of 200 steps": ("svdf", {_RESET: _COUNTER, "end": "++kept[15]; OUTPUT ^= (uint8_t)(kept[15] == 200u);"},
                               "differ", "thorough"),
    "a counter of 20 steps": ("svdf", {_RESET: _COUNTER, "end": "++kept[15]; OUTPUT ^= (uint8_t)(kept[15] == 20u);"},
                              "differ", "thorough"),
    "a window that is full too soon": ("slide", {r"net_weights.c: (net_s10_initial\[\d+\] = \{\n +)-?\d+": "\\g<1>2"}, ""),
}  # fmt: skip

_DROP = {
    name: rf"net.c: if \({pattern}"
    for name, pattern in {"null": r"arena == NULL", "size": r"bytes < \(size_t\)NET_ARENA_BYTES"}.items()
}
MISUSE = {
    "init takes null": ("conv", {r"net.c: (int net_init.*\n\{\n    if \()arena == NULL": "\\g<1>0"}, "ERROR_NULL"),
    "init takes a small arena": ("conv", {_DROP["size"]: "if (0"}, "ERROR_SIZE"),
    "init takes a byte too few": ("conv", {_DROP["size"]: "if (bytes + 1u < (size_t)NET_ARENA_BYTES"}, "ERROR_SIZE"),
    "init takes any alignment": ("conv", {r"net.c: (int net_init(?:.*\n)*?    if \()\(uintptr_t\)arena % .* != 0u":
                                          "\\g<1>0"}, "ERROR_ALIGNMENT"),
    "init takes half the alignment": ("conv", {r"net.c: (int net_init(?:.*\n)*?    if \(\(uintptr_t\)arena % )\(uintptr_t\)NET_ARENA_ALIGN":
                                               "\\g<1>2u"}, "ERROR_ALIGNMENT"),
    "run takes null": ("conv", {r"net.c: (int net_run(?:.*\n)*?    if \()arena == NULL": "\\g<1>0"}, ""),
    "run takes any alignment": ("conv", {r"net.c: (int net_run(?:.*\n)*?    if \()\(uintptr_t\)arena % .* != 0u":
                                         "\\g<1>0"}, ""),
    "run takes no state": ("svdf", {r"net.c: (int net_run(?:.*\n)*?    if \(arena == NULL) \|\| state == NULL":
                                    "\\g<1>"}, ""),
    "reset takes any alignment": ("svdf", {r"net.c: if \(\(uintptr_t\)state % .* != 0u": "if (0"}, "ERROR_ALIGNMENT"),
    "run without weights": ("blob", {r"net.c: if \(net_blob == NULL": "if (0"}, ""),
    "a blob of another CRC": ("blob", {r"net.c: if \(\(crc \^ 0xFFFFFFFFu\) != net_number\(given \+ 12\)": "if (0"},
                              "ERROR_WEIGHTS"),
    "a blob of other code": ("blob", {r"net.c: memcmp\(given \+ \d+, code, sizeof code\) != 0": "0"}, "ERROR_WEIGHTS"),
    "a blob of another format": ("blob", {r"net.c: net_number\(given \+ 4\) != 1u": "0"}, "ERROR_WEIGHTS"),
    "a blob of another length": ("blob", {r"net.c: net_number\(given \+ 8\) != \(uint32_t\)NET_WEIGHTS_BYTES": "0"},
                                 "ERROR_WEIGHTS"),
    "a blob of another magic": ("blob", {r'net.c: memcmp\(given, "TFWB", 4\) != 0': "0"}, "ERROR_WEIGHTS"),
    "a blob cut short": ("blob", {r"net.c: if \(bytes < \(size_t\)NET_WEIGHTS_BYTES": "if (0"}, "ERROR_SIZE"),
    "a refused blob is bound": ("blob", {r"net.c: (?=    if \(memcmp\(given, \"TFWB\")": "    net_blob = given;\n"}, ""),
    "the CRC of a part": ("blob", {r"net.c: (for \(i = \d+; i < \(size_t\)NET_WEIGHTS_BYTES) ?(?=;)": "\\g<1> - 8u"}, ""),
    "a cursor of no step": ("step", {r"net.c: if \(cursor->check != net_cursor_check\(cursor\)": "if (0"}, "ERROR_CURSOR"),
    "a check that misses a row": ("step", {r"net.c: \(uint32_t\)cursor->rows\[0\];": "0u;"}, ""),
    "a damaged check word": ("step", {r"net.c: if \(cursor->check != net_cursor_check\(cursor\)":
                             "if ((cursor->check >> 8) != (net_cursor_check(cursor) >> 8)"}, "ERROR_CURSOR"),
    "too many rows": ("fed", {r"net.c: if \(count > \d+u - state.rows": "if (0"}, ""),
    "too few rows": ("fed", {r"net.c: if \(state.rows != \d+u": "if (0"}, "too few rows"),
    "rows before begin": ("fed", {r"net.c: if \(state.mark != NET_FEED_MARK\(state.rows\) \|\| state.rows > \d+u": "if (0"}, ""),
    "null rows": ("fed", {r"net.c: \|\| \(rows == NULL && count > 0u\)": ""}, ""),
    "null frames": ("slide", {r"net.c: \|\| frames == NULL": ""}, ""),
}  # fmt: skip

HELPERS = {
    "NaN": ("conv", {r"net.h: if \(!\(quotient > -65536.0f\)\)": "if (quotient <= -65536.0f)"}, "found[i] == stored[i]"),
    "infinity": ("conv", {r"net.h: if \(quotient > 65536.0f\)": "if (quotient > 65536.0f && quotient < 1e30f)"}, "found[i]"),
    "ties up": ("conv", {r"net.h: if \(rest >= 0.5f\)": "if (rest > 0.5f)"}, "found[i] == stored[i]"),
    "ties down": ("conv", {r"net.h: rest <= -0.5f": "rest < -0.5f"}, "found[i] == stored[i]"),
    "the low end": ("conv", {r"net.h: whole < low \? low": "whole < low ? low + 1"}, "found[i] == stored[i]"),
    "the high end": ("conv", {r"net.h: whole > high \? high": "whole > high ? high - 1"}, "found[i] == stored[i]"),
    "one too few": ("conv", {r"net.h: (net_quantize_v1.*\n\{\n(?:.*\n)*?.*)i < count": "\\g<1>i + 1u < count"}, ""),
    "one too many": ("conv", {r"net.h: (net_quantize_v1.*\n\{\n(?:.*\n)*?.*)i < count": "\\g<1>i <= count"}, ""),
    "the scale of a division": ("conv", {r"net.h: quotient = value / scale": "quotient = value * (1.0f / scale)"}, "found[i]"),
    "dequantize without zero point": ("conv", {r"net.h: - \(-128\)\)": "- (-127))"}, "found[i] == expected[i]"),
    "dequantize rounds twice": ("conv", {r"net.h: (0\.\d+f) \* \(float\)\(\(int32_t\)from\[i\] - \((-?\d+)\)\)":
        "\\g<1> * (float)from[i] - \\g<1> * (\\g<2>)"}, "found[i] == expected[i]"),
    "dequantize one too many": ("conv", {r"net.h: (net_dequantize_v4.*\n\{\n(?:.*\n)*?.*)i < count": "\\g<1>i <= count"}, ""),
    "argmax takes the last of a tie": ("conv", {r"net.h: values\[i\] > values\[best\]": "values[i] >= values[best]"}, "argmax"),
    "argmax leaves out the last": ("conv", {r"net.h: (net_argmax(?:.*\n)*?.*)_ELEMENTS;": "\\g<1>_ELEMENTS - 1u;"}, "argmax"),
    "argmax leaves out the first": ("conv", {r"net.h: size_t best = 0, i;": "size_t best = 1, i;"}, "argmax"),
    "argmax of magnitudes": ("conv", {r"net.h: values\[i\] > values\[best\]":
                             "values[i] * values[i] > values[best] * values[best]"}, "argmax"),
    "argmax and NaN": ("float", {r"net.h: values\[i\] > values\[best\]": "!(values[i] <= values[best])"}, "argmax"),
    "argmax of null": ("conv", {r"net.h: values != NULL && ": ""}, ""),
    "labels shifted": ("labels", {r"net.h: labels\[index\]": "labels[index ^ 1u]"}, "label"),
    "a label too many": ("labels", {r"net.h: index < \(size_t\)NET_OUTPUT_\w+_LABELS \?": "index < 99u ?"}, ""),
    "a label misspelled": ("labels", {r'net.h: "yes"': '"Yes"'}, "label"),
    "copies by memcpy": ("staged", {r"net.c: memcpy\(destination, source, bytes\);": "memcpy(destination, source, bytes - 1u);"},
                         "", "thorough"),
    "no wait for copies": ("staged", {r"net.c:     net_stage_wait\(\);\n": ""}, ""),
}  # fmt: skip

LINKING = {
    "a global without prefix": ("conv", {r"net.c: (?=NET_CODE_ATTR\nint net_run)": "int scratch_size;\n"}, "scratch_size"),
    "a function without prefix": ("conv", {r"net.c: NET_CODE_ATTR\nstatic void net_group_0": "void group_0(void);\nvoid group_0(void) {}\n\\g<0>"},
                                  "group_0"),
    "a kernel that others link to": ("conv", {r"tinyfuse_matmul_4x2.h: (?=#endif[^\n]*\n\Z)":
        "int32_t tinyfuse_shared(int32_t x);\nint32_t tinyfuse_shared(int32_t x) { return x; }\n"},
                                     "tinyfuse_shared"),
    "weights without prefix": ("conv", {r'net_weights.h: (#include "net.h"\n)': "\\g<1>#define net_g0s0_weights g0s0_weights\n"},
                               "g0s0_weights"),
    "a header that is not C++": ("conv", {r"net.h: (?=#define NET_INPUTS )": "static inline int net_new(int new) { return new; }\n"},
                                 "net_header.cpp"),
    "no extern C": ("conv", {r'net.h: extern "C" \{': "namespace class {"}, "net_header.cpp"),
    "min in the header": ("conv", {r"net.h: (?=#define NET_INPUTS )":
        "static inline int32_t min(int32_t a, int32_t b) { return a < b ? a : b; }\n"}, ""),
    "ARRAY_SIZE in the header": ("conv", {r"net.h: (?=#define NET_INPUTS )":
        "enum { ARRAY_SIZE = 4 };\nstatic inline int32_t net_size(const int32_t *N) { return N[0] + ARRAY_SIZE; }\n"}, ""),
    "a header without guard": ("conv", {r"net.h: #ifndef NET_H\n#define NET_H\n": "", r"net.h: #endif\n\Z": ""}, ""),
    "a macro of all modules": ("conv", {r"net.h: NET_ALIGNED\(bytes\) ": "ALIGNED(bytes) ",
                               r"net.h: (?=#define NET_INPUTS )": "#define NET_ALIGNED ALIGNED\n"}, "ALIGNED"),
}  # fmt: skip


def _only_if(condition: str, statement: str = "bytes[-1] ^= 1;") -> dict[str, str]:
    return {"end": f"\n#if {condition}\n    {statement}\n#endif"}


LEVELS = {
    "at -O0": ("conv", _only_if("!defined(__OPTIMIZE__) && !defined(TINYFUSE_ANY_CPU)"), "O0 on qemu", "thorough"),
    "at -Os": ("conv", _only_if("defined(__OPTIMIZE_SIZE__)"), "Os on qemu", "thorough"),
    "in the portable form": ("conv", _only_if("defined(TINYFUSE_ANY_CPU)"), "AddressSanitizer", "thorough"),
    "in the portable form, arithmetic": ("conv", _only_if("defined(TINYFUSE_ANY_CPU)", "OUTPUT ^= 1;"), "differ", "thorough"),
    "signed overflow": ("conv", "{ volatile int32_t most = 2147483647; volatile int32_t sum = most + 1; (void)sum; }",
                        "signed integer overflow", "thorough"),
    "a shift that is too far": ("conv", "{ volatile int32_t by = 32; bytes[NET_ARENA_BYTES - 1] = (uint8_t)(1 << by); }",
                                "shift exponent", "thorough"),
    "a local array's end": ("conv", "{ volatile uint8_t local[4]; volatile int at = 4; local[at] = 1; }", "", "thorough"),
    "a misaligned access": ("conv", "{ volatile uint32_t *const p = (volatile uint32_t *)(void *)(bytes + 301); *p = 1; }",
                            "misaligned address", "thorough"),
    "an endless loop": ("conv", "for (;;) { }", "did not end within"),
    "an endless loop for one input": ("conv", {"begin": "const int8_t first = ((const int8_t *)net_input(arena, 0))[0];",
                                      "end": "if (first == 127) { for (;;) { } }"}, "did not end within"),
    "a crash": ("conv", "*(volatile uint32_t *)0xF0000000u = 1u;", "stopped"),
    "an undefined instruction": ("conv", assembly("udf #0"), "undefined instruction"),
}  # fmt: skip

FAULTS = [
    *_faults("registers and modes", REGISTERS),
    *_faults("interrupts", INTERRUPTS),
    *_faults("memory", MEMORY),
    *_faults("time", TIME),
    *_faults("misuse", MISUSE),
    *_faults("helpers", HELPERS),
    *_faults("linking", LINKING),
    *_faults("levels", LEVELS),
]
