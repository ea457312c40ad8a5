"""Runs many modules with state in one program, and checks their contract: NAME_run, or with `--slide` NAME_slide, is
called as firmware may.

    assert_all_stream(plans)                    under sanitizers, for any target
    assert_all_stream(plans, on_core=True)      on the emulated core that they are for

Each module has two streams that take turns in one arena, of exactly its bytes: natively on the heap, on a core between
bytes that must not change. Before each step the arena is junk, and so is a state before its first reset; states are moved from step to step; the first stream is reset in
between, of `--slide` while its window is full. Every status and every output of every step is compared with what the
references compute; of `--slide` with the whole model's over each window. With --feed-rows a step's rows come in batches
of one, two, three, ... rows, more than the step lacks are refused, and the arena is junk before each batch. Rows and
frames lie at all addresses that their type allows.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from batch_module import named_apart
from core_program import build_for_core, run_on_core
from host_program import WARNINGS, compile_c
from native_compiler import COMPILER, SANITIZERS, report

from tinyfuse.emit import emit
from tinyfuse.ir import ITEM_BYTES
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import Oracle, ReferenceOracle
from tinyfuse.verify.windows import WindowOracle

#: steps of a stream that have a result, and before the reset of the first stream
RESULTS, BEFORE = 7, 3
#: the same of a module whose every step has one
FRAMES, FRAMES_BEFORE = 50, 30
_OK, _NO_RESULT_YET = 0, 8

_HERE = """\
#include <stdio.h>
#include <stdlib.h>

static uint8_t *junk(size_t bytes, int value)
{
    uint8_t *memory = (uint8_t *)malloc(bytes); /* aligned to 16 */
    memset(memory, value, bytes);
    return memory;
}

static void drop(uint8_t *memory)
{
    free(memory);
}

static int take(void *to, size_t bytes)
{
    return fread(to, 1, bytes, stdin) == bytes;
}

static void give(const void *from, size_t bytes)
{
    fwrite(from, 1, bytes, stdout);
}

static int finish(int status)
{
    return status;
}
"""

#: the first gap that is large enough, for one of few blocks, with guards at both ends
_ON_CORE = """\
#include "port.h"

enum { GUARD = 48, CANARY = 0xC3, MOST = 8 };
struct block { uint8_t *start, *memory, *after, *end; };
static uint8_t pool[POOL_BYTES] __attribute__((aligned(16)));
static struct block blocks[MOST];
static const uint8_t *next_input;
extern const uint8_t inputs[];
__asm__(".pushsection .inputs, \\"aw\\"\\n\\t.balign 16\\ninputs:\\n\\t.incbin \\"inputs.bin\\"\\n\\t.popsection\\n");

static int finish(int status)
{
    const char text[2] = {(char)('0' + status), '\\n'};
    port_write(text, sizeof text);
    port_exit(status);
}

static uint8_t *junk(size_t bytes, int value)
{
    struct block new = {pool, NULL, NULL, NULL}, *free = NULL;
    for (int again = 1; again;) {
        again = 0;
        new.memory = new.start + GUARD;
        new.after = new.memory + bytes;
        new.end = new.memory + (bytes + 15u) / 16u * 16u + GUARD;
        for (struct block *b = blocks; b < blocks + MOST; ++b) {
            if (b->start == NULL) {
                free = b;
            } else if (b->start < new.end && new.start < b->end) {
                new.start = b->end;
                again = 1;
            }
        }
    }
    if (free == NULL || new.end > pool + sizeof pool) {
        (void)finish(5);
    }
    memset(new.start, CANARY, (size_t)(new.end - new.start));
    memset(new.memory, value, bytes);
    *free = new;
    return new.memory;
}

static void drop(uint8_t *memory)
{
    struct block *b = blocks;
    while (b->start == NULL || b->memory != memory) {
        ++b;
    }
    for (const uint8_t *p = b->start; p < b->end; p = p + 1 == b->memory ? b->after : p + 1) {
        if (*p != CANARY) {
            (void)finish(6);
        }
    }
    b->start = NULL;
}

static int take(void *to, size_t bytes)
{
    memcpy(to, next_input == NULL ? inputs : next_input, bytes);
    next_input = (next_input == NULL ? inputs : next_input) + bytes;
    return 1;
}

static void give(const void *from, size_t bytes)
{
    const uint8_t *byte = (const uint8_t *)from;
    for (size_t i = 0; i < bytes; ++i) {
        const char text[2] = {"0123456789abcdef"[byte[i] >> 4], "0123456789abcdef"[byte[i] & 15u]};
        port_write(text, sizeof text);
    }
}
"""

_MAIN = """\
{includes}
#include <stddef.h>
#include <stdint.h>
#include <string.h>
{machine}
struct module {{
    size_t arena_bytes, state_bytes, inputs, outputs, slid, item;
    int steps, reset_at;
    int (*init)(void *, size_t);
    int (*reset)(void *);
    int (*step)(void *, void *, const void *);
    void *(*input)(void *, size_t);
    const void *(*output)(const void *, size_t);
    size_t (*input_bytes)(size_t), (*output_bytes)(size_t);
}};
{adapters}
static const struct module modules[] = {{
{table}
}};
enum {{ MODULES = sizeof modules / sizeof *modules, STREAMS = 2 }};

static int step(const struct module *m, uint8_t *arena, uint8_t **state, int number, int stream)
{{
    uint8_t *const moved = junk(m->state_bytes, 0x33), *memory = NULL, *rows = NULL;
    uint8_t status;
    memcpy(moved, *state, m->state_bytes);
    drop(*state);
    *state = moved;
    memset(arena, number % 3 == 0 ? 0x5A : number % 3 == 1 ? 0xFF : 0x80, m->arena_bytes);
    if (number == 0 || (stream == 0 && number == m->reset_at)) {{
        if (m->reset(*state) != 0) {{
            return 2;
        }}
    }}
    for (size_t i = 0; i < m->inputs; ++i) {{
        const size_t bytes = m->input_bytes(i);
        uint8_t *to = (uint8_t *)m->input(arena, i);
        if (i == m->slid) {{
            const size_t before = (size_t)(number + stream) * m->item % 16u; /* at any address of its elements */
            memory = junk(before + bytes, 0);
            to = rows = memory + before;
        }}
        if (!take(to, bytes)) {{
            return 3;
        }}
    }}
    status = (uint8_t)m->step(arena, *state, rows);
    if (memory != NULL) {{
        drop(memory);
    }}
    give(&status, 1);
    for (size_t i = 0; i < m->outputs; ++i) {{
        give(m->output(arena, i), m->output_bytes(i));
    }}
    return 0;
}}

int main(void)
{{
    for (int i = 0; i < MODULES; ++i) {{
        const struct module *const m = &modules[i];
        uint8_t *arena = junk(m->arena_bytes, 0x5A), *states[STREAMS];
        for (int stream = 0; stream < STREAMS; ++stream) {{
            states[stream] = junk(m->state_bytes, 0xA5 + stream);
        }}
        if (m->init(arena, m->arena_bytes) != 0) {{
            return finish(1);
        }}
        for (int number = 0; number < m->steps; ++number) {{
            for (int stream = 0; stream < STREAMS; ++stream) {{
                const int failed = step(m, arena, &states[stream], number, stream);
                if (failed) {{
                    return finish(failed);
                }}
            }}
        }}
        for (int stream = 0; stream < STREAMS; ++stream) {{
            drop(states[stream]);
        }}
        drop(arena);
    }}
    return finish(0);
}}
"""
_SLIDE = """\
static int {n}_step_of(void *arena, void *state, const void *rows)
{{
    return {n}_slide(arena, state, rows);
}}
"""
#: other inputs are in the arena from the step's start: there it stays as it is
_FED = """\
static int {n}_step_of(void *arena, void *state, const void *frames)
{{
    enum {{ ROWS = {P}_FEED_ROWS }};
    int status = 8, next = 1;
    for (int row = 0; row < ROWS && status == 8; ++next) {{
        const int left = ROWS - row, count = next < left ? next : left;
        const size_t before = (size_t)next * {item}u % 16u;
        uint8_t *const memory = junk(before + {row_bytes} * (size_t)count, 0);
        void *const batch = memory + before;
        if ({n}_feed_rows(arena, state, frames, (size_t)left + 1) != 7 || {n}_feed_rows(arena, state, NULL, 0) != 8
            || {n}_feed_rows(arena, state, NULL, 1) != 1) {{
            status = 9;
        }}
        if ({P}_INPUTS == 1) {{
            memset(arena, 0x77, {P}_ARENA_BYTES);
        }}
        memcpy(batch, (const uint8_t *)frames + row * {row_bytes}, {row_bytes} * (size_t)count);
        row += count;
        status = status == 9 ? 9 : {n}_feed_rows(arena, state, batch, (size_t)count);
        status = row < ROWS && status == 0 ? 9 : status; /* a result before the last row */
        drop(memory);
    }}
    return status;
}}
"""
_RUN = """\
static int {n}_step_of(void *arena, void *state, const void *rows)
{{
    (void)rows;
    return {n}_run(arena, state);
}}
"""
_ROW = (
    "    {{{P}_ARENA_BYTES, {P}_STATE_BYTES, {P}_INPUTS, {P}_OUTPUTS, {slid}, {item}u, {steps}, {reset_at}, "
    "{n}_init, {n}_reset, {n}_step_of, {n}_input, {n}_output, {n}_input_bytes, {n}_output_bytes}},"
)


def assert_all_stream(plans: Sequence[Plan], seed: int = 0, on_core: bool = False) -> None:
    """Checks the contract of the plans' modules, each with state and without CMSIS-NN. Which steps have a result is
    only known with `--slide`. With `on_core` all plans are for one target, otherwise for any."""
    plans = named_apart(plans)
    streams = [[input_set(plan.source, _steps(plan), seed + stream) for stream in range(2)] for plan in plans]
    fed = b"".join(
        array.tobytes() for both in streams for steps in zip(*both, strict=True) for step in steps for array in step
    )
    with tempfile.TemporaryDirectory(prefix="tinyfuse-test-") as folder:
        said = (_on_core if on_core else _here)(Path(folder), plans, fed)
    position = 0
    for plan, both in zip(plans, streams, strict=True):
        cut = _reset_at(plan)
        first, again, second = _oracle(plan).run_streams([both[0][:cut], both[0][cut:], both[1]])
        wanted = (first + again, second)
        for step in range(_steps(plan)):
            for stream in range(2):
                begun = cut if stream == 0 and step >= cut else 0
                full = step - begun + 1 >= _steps_to_fill(plan)
                status, position = said[position], position + 1
                where = step, stream, plan.source
                if plan.awaits and plan.source.window is None:  # zeros stand for no result
                    full = status == _OK
                    assert full or not any(array.any() for array in wanted[stream][step]), where
                assert status == (_OK if full else _NO_RESULT_YET), where
                for expected in wanted[stream][step]:
                    found = said[position : position + expected.nbytes]
                    position += expected.nbytes
                    assert not full or _same(found, expected), where
    assert position == len(said)


def _same(found: bytes, expected: np.ndarray) -> bool:
    values = np.frombuffer(found, expected.dtype).reshape(expected.shape)
    return np.array_equal(values, expected, equal_nan=expected.dtype.kind == "f")


def _oracle(plan: Plan) -> Oracle:
    window = plan.source.window
    return WindowOracle(window, ReferenceOracle(window.whole)) if window else ReferenceOracle(plan.source)


def _steps_to_fill(plan: Plan) -> int:
    return plan.source.window.steps_to_fill if plan.source.window else 1


def _reset_at(plan: Plan) -> int:
    return _steps_to_fill(plan) + (BEFORE if plan.source.window else FRAMES_BEFORE)


def _steps(plan: Plan) -> int:
    return _steps_to_fill(plan) + (_reset_at(plan) - 1 + RESULTS - BEFORE if plan.source.window else FRAMES)


def _slid(plan: Plan) -> int:
    """Index of the input that NAME_slide takes; beyond all inputs if there is none."""
    return plan.source.window.input if plan.source.window else len(plan.source.inputs)


def _item(plan: Plan) -> int:
    """Bytes of an element of that input; 1 if there is none."""
    return ITEM_BYTES[plan.source.inputs[plan.source.window.input].dtype] if plan.source.window else 1


def _adapter(plan: Plan) -> str:
    window, name = plan.source.window, plan.options.name
    if window is None or window.rows is None:
        return (_SLIDE if window else _RUN).format(n=name)
    row_bytes = plan.source.inputs[window.input].bytes // window.rows
    return _FED.format(n=name, P=name.upper(), row_bytes=row_bytes, item=_item(plan))


def _here(folder: Path, plans: Sequence[Plan], fed: bytes) -> bytes:
    """Output of the program for these inputs on the host, under sanitizers."""
    (folder / "main.c").write_text(_program(folder, plans, _HERE))
    flags = [COMPILER, "-std=c99", "-O0", "-DTINYFUSE_ANY_CPU", *WARNINGS, *SANITIZERS]
    compile_c([*flags, folder / "main.c", "-lm", "-o", folder / "program"])
    done = subprocess.run([folder / "program"], input=fed, capture_output=True, timeout=300)
    assert done.returncode == 0, report(done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


def _on_core(folder: Path, plans: Sequence[Plan], fed: bytes) -> bytes:
    """Output of the program on the core."""
    target = plans[0].context.target
    (folder / "inputs.bin").write_bytes(fed)
    source = folder / "main_weights.c"
    source.write_text(f"{_program(folder, plans, _ON_CORE)}/* {hashlib.sha256(fed).hexdigest()} */\n")
    pool = max(p.arena_bytes + 3 * p.state_bytes + 2 * sum(t.bytes + 16 for t in p.source.inputs) for p in plans)
    elf = build_for_core(source, [f"-DPOOL_BYTES={pool + 1024}"], target, "O0", folder)
    return bytes.fromhex(run_on_core(elf, target).removesuffix("0\n"))


def _program(folder: Path, plans: Sequence[Plan], machine: str) -> str:
    """Text of the program; writes the files that it includes to the folder."""
    for plan in plans:
        for file, text in emit(plan).items():
            (folder / file).write_text(text)
    names = [plan.options.name for plan in plans]
    rows = [
        _ROW.format(
            n=name, P=name.upper(), slid=_slid(plan), item=_item(plan), steps=_steps(plan), reset_at=_reset_at(plan)
        )
        for name, plan in zip(names, plans, strict=True)
    ]
    return _MAIN.format(
        includes="\n".join(f'#include "{name}{part}"' for name in names for part in (".c", "_weights.c")),
        machine=machine,
        adapters="\n".join(map(_adapter, plans)),
        table="\n".join(rows),
    )
