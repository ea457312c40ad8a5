"""Many generated modules in one native program: fast enough for hundreds of random networks.

    program = HostProgram(folder, plans)
    outputs = program.run(inputs)            # inputs[module][run][index] -> outputs[module][run][index]

The program is built under sanitizers, or with other flags, with every warning an error. Each module has an arena of exactly
its bytes on the heap, so that the address sanitizer sees the first byte outside; with `shared`, all
have one arena, and run after run each finds there what the others left.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import native_compiler
import numpy as np
from batch_module import API, named_apart

from tinyfuse.emit import emit
from tinyfuse.plan import Plan

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")

_MAIN = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{includes}
/* What the memory sanitizer takes for never written. */
#define FORGET(memory, bytes)
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#undef FORGET
#define FORGET(memory, bytes) __msan_allocated_memory(memory, bytes)
#endif
#endif
struct module {{
    size_t arena_bytes, inputs, outputs;
    int (*init)(void *, size_t);
    int (*run)(void *);
    void *(*input)(void *, size_t);
    const void *(*output)(const void *, size_t);
    size_t (*input_bytes)(size_t), (*output_bytes)(size_t);
}};

static const struct module modules[] = {{
{table}
}};
enum {{ MODULES = sizeof modules / sizeof *modules, SHARED = {shared} }};

static uint8_t *new_arena(size_t bytes)
{{
    uint8_t *arena = (uint8_t *)malloc(bytes); /* aligned to 16 */
    memset(arena, 0x5A, bytes);
    FORGET(arena, bytes);
    return arena;
}}

int main(int argc, char **argv)
{{
    const int runs = argc == 2 ? atoi(argv[1]) : 0;
    uint8_t *arenas[MODULES];
    size_t largest = 0;

    for (int m = 0; m < MODULES; ++m) {{
        largest = modules[m].arena_bytes > largest ? modules[m].arena_bytes : largest;
    }}
    for (int m = 0; m < MODULES; ++m) {{
        arenas[m] = m > 0 && SHARED ? arenas[0] : new_arena(SHARED ? largest : modules[m].arena_bytes);
    }}
    for (int run = 0; run < runs; ++run) {{
        for (int m = 0; m < MODULES; ++m) {{
            if (run == 0 && modules[m].init(arenas[m], modules[m].arena_bytes) != 0) {{
                return 2;
            }}
            for (size_t i = 0; i < modules[m].inputs; ++i) {{
                const size_t bytes = modules[m].input_bytes(i);
                if (fread(modules[m].input(arenas[m], i), 1, bytes, stdin) != bytes) {{
                    return 3;
                }}
            }}
            if (modules[m].run(arenas[m]) != 0) {{
                return 4;
            }}
            for (size_t i = 0; i < modules[m].outputs; ++i) {{
                fwrite(modules[m].output(arenas[m], i), 1, modules[m].output_bytes(i), stdout);
            }}
        }}
    }}
    for (int m = 0; m < (SHARED ? 1 : MODULES); ++m) {{
        free(arenas[m]);
    }}
    return 0;
}}
"""
_ROW = f"    {{{{{{P}}_ARENA_BYTES, {{P}}_INPUTS, {{P}}_OUTPUTS, {API}}}}},"


class HostProgram:
    """A program of `plans` for any target, without CMSIS-NN; each plan gets its own name. `apart`: every module has its
    own folder and object files, as in firmware; otherwise all are one translation unit."""

    def __init__(
        self,
        folder: Path,
        plans: Sequence[Plan],
        shared: bool = False,
        apart: bool = False,
        compiler: str = native_compiler.COMPILER,
        flags: Sequence[str] = ("-O0", *native_compiler.SANITIZERS),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.plans = named_apart(plans)
        names = [plan.options.name for plan in self.plans]
        self.program = folder / "program"
        flags = [compiler, "-std=c99", "-DTINYFUSE_ANY_CPU", *WARNINGS, *flags]
        objects = []
        for plan, name in zip(self.plans, names, strict=True):
            place = folder / name if apart else folder
            place.mkdir(exist_ok=True)
            for file, text in emit(plan).items():
                (place / file).write_text(text)
            if apart:
                flags.append(f"-I{place}")
                for part in (name, f"{name}_weights"):
                    objects.append(place / f"{part}.o")
                    own = [flag for flag in flags if not flag.startswith("-I")]
                    compile_c([*own, "-c", place / f"{part}.c", "-o", objects[-1]])
        parts = [".h"] if apart else [".c", "_weights.c"]
        main = folder / "main.c"
        main.write_text(
            _MAIN.format(
                includes="\n".join(f'#include "{name}{part}"' for name in names for part in parts),
                table="\n".join(_ROW.format(n=name, P=name.upper()) for name in names),
                shared=int(shared),
            )
        )
        compile_c([*flags, main, *objects, "-lm", "-o", self.program])

    def run(self, inputs: Sequence[Sequence[Sequence[np.ndarray]]]) -> list[list[list[bytes]]]:
        """Returns outputs[module][run][index]; AssertionError with the report if a sanitizer stops the program."""
        runs = len(inputs[0])
        fed = b"".join(array.tobytes() for run in range(runs) for module in inputs for array in module[run])
        done = subprocess.run([self.program, str(runs)], input=fed, capture_output=True, timeout=120)
        assert done.returncode == 0, native_compiler.report(done.returncode, done.stderr.decode(errors="replace"))
        outputs: list[list[list[bytes]]] = [[] for _ in self.plans]
        position = 0
        for _ in range(runs):
            for plan, results in zip(self.plans, outputs, strict=True):
                results.append([])
                for tensor in plan.graph.outputs:
                    results[-1].append(done.stdout[position : position + tensor.bytes])
                    position += tensor.bytes
        assert position == len(done.stdout)
        return outputs


def compile_c(command: list) -> None:
    """Runs a compiler; AssertionError with its messages if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
