"""Several generated modules after the interface of one: a firmware build and an emulator's start
serve them all.

    module = write_batch(folder, plans)                      # what build_firmware takes
    outputs = apart(plans, outcome.outputs)                  # outputs[plan][run][index]

Their arenas lie in the batch's arena with guards between them; batch_run fails where one changed. All code is one
translation unit, all weights another: of a small module a compiler reads headers for longer than anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinyfuse.emit import emit
from tinyfuse.plan import ARENA_ALIGN, Plan
from tinyfuse.verify.emulation import ModuleFiles

#: an odd multiple, so that no arena is better aligned than its module asks for
GUARD = 5 * ARENA_ALIGN

_HEADER = """\
#include <stddef.h>
#include <stdint.h>
#define BATCH_ARENA_BYTES {arena_bytes}
#define BATCH_ARENA_ALIGN {align}
#define BATCH_INPUTS {inputs}
#define BATCH_OUTPUTS {outputs}
#define BATCH_OK 0
int batch_init(void *arena, size_t bytes);
int batch_run(void *arena);
void *batch_input(void *arena, size_t index);
const void *batch_output(const void *arena, size_t index);
size_t batch_input_bytes(size_t index);
size_t batch_output_bytes(size_t index);
"""

_SOURCE = """\
#include "batch.h"
#include <string.h>
{includes}
enum {{ MODULES = {modules}, GUARD_BYTE = 0xC3 }};

static const struct module {{
    size_t offset, arena_bytes, inputs, outputs;
    int (*init)(void *, size_t);
    int (*run)(void *);
    void *(*input)(void *, size_t);
    const void *(*output)(const void *, size_t);
    size_t (*input_bytes)(size_t), (*output_bytes)(size_t);
}} modules[MODULES] = {{
{table}
}};

/* 0, or 1000 plus the number of the module before (-1: the first) or after whose arena a byte changed. */
static int changed_guard(const uint8_t *arena)
{{
    for (int m = -1; m < MODULES; ++m) {{
        const size_t start = m < 0 ? 0 : modules[m].offset + modules[m].arena_bytes;
        const size_t end = m + 1 < MODULES ? modules[m + 1].offset : (size_t)BATCH_ARENA_BYTES;
        for (size_t i = start; i < end; ++i) {{
            if (arena[i] != GUARD_BYTE) {{
                return 1000 + m;
            }}
        }}
    }}
    return 0;
}}

/* Fills what lies between arenas. A run does so, because the arena holds junk before some of them. */
static void set_guards(uint8_t *arena)
{{
    for (int m = -1; m < MODULES; ++m) {{
        const size_t from = m < 0 ? 0 : modules[m].offset + modules[m].arena_bytes;
        const size_t end = m + 1 < MODULES ? modules[m + 1].offset : (size_t)BATCH_ARENA_BYTES;
        memset(arena + from, GUARD_BYTE, end - from);
    }}
}}

int batch_init(void *arena, size_t bytes)
{{
    uint8_t *const start = (uint8_t *)arena;
    (void)bytes;
    for (int m = 0; m < MODULES; ++m) {{
        if (modules[m].init(start + modules[m].offset, modules[m].arena_bytes) != 0) {{
            return 1 + m;
        }}
    }}
    return 0;
}}

int batch_run(void *arena)
{{
    set_guards((uint8_t *)arena);
    for (int m = 0; m < MODULES; ++m) {{
        if (modules[m].run((uint8_t *)arena + modules[m].offset) != 0) {{
            return 1 + m;
        }}
    }}
    return changed_guard((const uint8_t *)arena);
}}

/* The module with the input or output of that index, which becomes the index in it. */
#define FIND(count)                                        \\
    const struct module *m = modules;                      \\
    while (index >= m->count) {{                             \\
        index -= m++->count;                               \\
    }}

void *batch_input(void *arena, size_t index)
{{
    FIND(inputs)
    return m->input((uint8_t *)arena + m->offset, index);
}}

const void *batch_output(const void *arena, size_t index)
{{
    FIND(outputs)
    return m->output((const uint8_t *)arena + m->offset, index);
}}

size_t batch_input_bytes(size_t index)
{{
    FIND(inputs)
    return m->input_bytes(index);
}}

size_t batch_output_bytes(size_t index)
{{
    FIND(outputs)
    return m->output_bytes(index);
}}
"""
#: one row of the table of modules; also of host_program.py's
API = "{n}_init, {n}_run, {n}_input, {n}_output, {n}_input_bytes, {n}_output_bytes"


def named_apart(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with distinct module names: net0, net1, ..."""
    return [replace(p, options=replace(p.options, name=f"net{i}")) for i, p in enumerate(plans)]


def write_batch(folder: Path, plans: Sequence[Plan]) -> ModuleFiles:
    """Writes the files of all modules and of the batch into `folder`."""
    plans = named_apart(plans)
    folder.mkdir(parents=True, exist_ok=True)
    files, rows, position = {}, [], GUARD
    names = [plan.options.name for plan in plans]
    for plan in plans:
        name = plan.options.name
        files |= emit(plan)
        prefix = name.upper()
        rows.append(
            f"    {{{position}u, {prefix}_ARENA_BYTES, {prefix}_INPUTS, {prefix}_OUTPUTS, {API.format(n=name)}}},"
        )
        position = -(-(position + plan.arena_bytes) // ARENA_ALIGN) * ARENA_ALIGN + GUARD
    files["batch.h"] = _HEADER.format(
        arena_bytes=position, align=ARENA_ALIGN,
        inputs=sum(len(p.graph.inputs) for p in plans), outputs=sum(len(p.graph.outputs) for p in plans),
    )  # fmt: skip
    files["batch.c"] = _SOURCE.format(
        includes=_included(f"{name}.c" for name in names), modules=len(plans), table="\n".join(rows),
    )  # fmt: skip
    files["batch_weights.c"] = _included(f"{name}_weights.c" for name in names)
    for file, text in files.items():
        (folder / file).write_text(text)
    return ModuleFiles("batch", "BATCH", folder, ("batch.c", "batch_weights.c"))


def _included(files: Iterable[str]) -> str:
    return "".join(f'#include "{file}"\n' for file in files)


def together(inputs: Sequence[list[list[np.ndarray]]]) -> list[list[np.ndarray]]:
    """Converts inputs[plan][run][index] to the batch's [run][index]."""
    return [[array for module in runs for array in module] for runs in zip(*inputs, strict=True)]


def apart(plans: Sequence[Plan], outputs: Sequence[Sequence[bytes]]) -> list[list[list[bytes]]]:
    """Converts the batch's outputs[run][index] to [plan][run][index]."""
    result, position = [], 0
    for plan in plans:
        count = len(plan.graph.outputs)
        result.append([list(run[position : position + count]) for run in outputs])
        position += count
    return result
