"""Modules that read rows or frames in the caller's memory, in one program: at every address that their type allows.

    assert_fed_anywhere(plans)        of --feed-rows, whose only input is fed, and without state

Rows come in batches of one, two, three, ...; each lies in memory that ends with it, and begins so many elements behind a
multiple of 16. The address sanitizer sees what is read outside.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from batch_module import named_apart
from host_program import WARNINGS, compile_c
from native_compiler import COMPILER, SANITIZERS, report

from tinyfuse.emit import emit
from tinyfuse.ir import ITEM_BYTES
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import height
from tinyfuse.verify.comparison import compare
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

_MAIN = """\
{includes}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct module {{
    size_t arena_bytes, outputs, rows, row_bytes, item;
    int (*begin)(void *);
    int (*feed)(void *, const void *, size_t);
    int (*finish)(void *);
    const void *(*output)(const void *, size_t);
    size_t (*output_bytes)(size_t);
}};
{adapters}
static const struct module modules[] = {{
{table}
}};

static int feed(const struct module *m, void *arena, size_t shift)
{{
    size_t next = 1;
    for (size_t row = 0; row < m->rows; ++next) {{
        const size_t count = next < m->rows - row ? next : m->rows - row;
        const size_t before = shift % 16u, bytes = count * m->row_bytes;
        uint8_t *const memory = (uint8_t *)malloc(before + bytes); /* aligned to 16 */
        int status;
        if (fread(memory + before, 1, bytes, stdin) != bytes) {{
            return 3;
        }}
        status = m->feed(arena, memory + before, count);
        free(memory);
        if (status != 0) {{
            return 4;
        }}
        row += count;
        shift += m->item;
    }}
    return 0;
}}

int main(int argc, char **argv)
{{
    const size_t runs = argc == 2 ? (size_t)atoi(argv[1]) : 0;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; ++i) {{
        const struct module *const m = &modules[i];
        void *const arena = malloc(m->arena_bytes); /* aligned to 16 */
        memset(arena, 0x5A, m->arena_bytes);
        for (size_t run = 0; run < runs; ++run) {{
            if (m->begin(arena) != 0 || feed(m, arena, run * m->item) != 0 || m->finish(arena) != 0) {{
                return 5;
            }}
            for (size_t o = 0; o < m->outputs; ++o) {{
                fwrite(m->output(arena, o), 1, m->output_bytes(o), stdout);
            }}
        }}
        free(arena);
    }}
    return 0;
}}
"""
_ADAPTER = """\
static int {n}_fed(void *arena, const void *rows, size_t count)
{{
    return {n}_feed_rows(arena, rows, count);
}}
"""
_ROW = (
    "    {{{P}_ARENA_BYTES, {P}_OUTPUTS, {P}_FEED_ROWS, {row_bytes}u, {item}u, "
    "{n}_begin, {n}_fed, {n}_finish, {n}_output, {n}_output_bytes}},"
)


def assert_fed_anywhere(plans: Sequence[Plan], runs: int = 16) -> None:
    """Checks that these modules compute the references' outputs from fed rows."""
    plans = named_apart(plans)
    inputs = [input_set(plan.source, runs, 0) for plan in plans]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-test-") as folder:
        _build(Path(folder), plans)
        fed = b"".join(array.tobytes() for fed in inputs for (array,) in fed)
        done = subprocess.run([Path(folder, "program"), str(runs)], input=fed, capture_output=True, timeout=120)
    assert done.returncode == 0, report(done.returncode, done.stderr.decode(errors="replace"))
    said = BytesIO(done.stdout)
    for plan, fed_inputs in zip(plans, inputs, strict=True):
        found = [[said.read(tensor.bytes) for tensor in plan.graph.outputs] for _ in range(runs)]
        result = compare(plan, ReferenceOracle(plan.source).run_all(fed_inputs), found)
        assert result.mismatches == 0, f"{result.first}\n{plan.graph}"
    assert not said.read()


def _build(folder: Path, plans: Sequence[Plan]) -> None:
    names, rows = [plan.options.name for plan in plans], []
    for plan, name in zip(plans, names, strict=True):
        for file, text in emit(plan).items():
            (folder / file).write_text(text)
        (image,) = plan.source.inputs
        row_bytes, item = image.bytes // height(image), ITEM_BYTES[image.dtype]
        rows.append(_ROW.format(n=name, P=name.upper(), row_bytes=row_bytes, item=item))
    includes = "\n".join(f'#include "{name}{part}"' for name in names for part in (".c", "_weights.c"))
    adapters = "\n".join(_ADAPTER.format(n=name) for name in names)
    (folder / "main.c").write_text(_MAIN.format(includes=includes, adapters=adapters, table="\n".join(rows)))
    flags = [COMPILER, "-std=c99", "-O0", "-DTINYFUSE_ANY_CPU", *WARNINGS, *SANITIZERS]
    compile_c([*flags, folder / "main.c", "-lm", "-o", folder / "program"])
