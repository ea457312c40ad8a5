"""A small module with the interface of generated ones, for tests of what builds and runs modules.

Inputs a int8[24] and b int8[5]; outputs a * weights + 1 (int8, wrapping) and b backwards. The arena
holds a, b and both outputs at 0, 24, 32 and 56, and ends at 64.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinyfuse.verify.emulation import ModuleFiles

WEIGHTS = np.arange(-12, 12, dtype=np.int8)

_HEADER = """\
#ifndef TOY_H
#define TOY_H
#include <stddef.h>
#include <stdint.h>
#define TOY_ARENA_BYTES 64
#define TOY_ARENA_ALIGN 16
#define TOY_INPUTS 2
#define TOY_OUTPUTS 2
enum { TOY_OK = 0 };
int toy_init(void *arena, size_t bytes);
int toy_run(void *arena);
void *toy_input(void *arena, size_t index);
const void *toy_output(void *arena, size_t index);
size_t toy_input_bytes(size_t index);
size_t toy_output_bytes(size_t index);
extern const int8_t toy_weights[24];
#endif
"""

# run is where tests put their faults.
_SOURCE = """\
#include "toy.h"
#include <string.h>
void arm_toy_add(const int8_t *x, int8_t *y, int n);
static inline int8_t tinyfuse_toy_mul(int8_t a, int8_t b) { return (int8_t)(a * b); }
static inline void tinyfuse_toy_scale(const int8_t *x, int8_t *y)
{
    for (int i = 0; i < 24; ++i) y[i] = tinyfuse_toy_mul(x[i], toy_weights[i]);
    arm_toy_add(y, y, 24);
}
static inline void tinyfuse_toy_flip(const int8_t *x, int8_t *y)
{
    for (int i = 0; i < 5; ++i) y[i] = x[4 - i];
}
static void toy_group_0(int8_t *arena) { tinyfuse_toy_scale(arena, arena + 32); }
static __attribute__((noinline)) void toy_group_1(int8_t *arena)
{
    tinyfuse_toy_flip(arena + 24, arena + 56);
}
int toy_init(void *arena, size_t bytes)
{
    return (uintptr_t)arena % TOY_ARENA_ALIGN != 0 || bytes < TOY_ARENA_BYTES;
}
static int run(int8_t *arena);
int toy_run(void *arena)
{
    toy_group_0(arena);
    toy_group_1(arena);
    return run(arena);
}
static int run(int8_t *arena)
{
    RUN
}
void *toy_input(void *arena, size_t index) { return (int8_t *)arena + (index ? 24 : 0); }
const void *toy_output(void *arena, size_t index) { return (int8_t *)arena + (index ? 56 : 32); }
size_t toy_input_bytes(size_t index) { return index ? 5 : 24; }
size_t toy_output_bytes(size_t index) { return index ? 5 : 24; }
"""

_LIBRARY = """\
#include "arm_toy.h"
#include <stdint.h>
volatile int arm_toy_zero;
void arm_toy_add(const int8_t *x, int8_t *y, int n)
{
    while (n-- > 0) y[n] = (int8_t)(x[n] + ADDEND + arm_toy_zero);
}
void arm_toy_unused(void) { arm_toy_zero = 0; }
"""


def write_toy(
    folder: Path, run: str = "(void)arena; return 0;", changes: tuple[str, str] = ("", "")
) -> tuple[ModuleFiles, Path, Path]:
    """(module, source of its "library", folder of the library's headers), written into `folder`.

    `run` is what toy_run does in the end, `changes` a text of the module's files and its substitute.
    """
    weights = ", ".join(map(str, WEIGHTS))
    files = {
        "toy.h": _HEADER,
        "toy.c": _SOURCE.replace("RUN\n", run + "\n"),
        "toy_weights.c": f'#include "toy.h"\nconst int8_t toy_weights[24] = {{{weights}}};\n',
        "library/arm_toy.c": _LIBRARY,
        "library/include/arm_toy.h": "#define ADDEND 1\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(*changes) if changes[0] else text)
    module = ModuleFiles("toy", "TOY", folder, ("toy.c", "toy_weights.c"))
    return module, folder / "library" / "arm_toy.c", folder / "library" / "include"


def toy_inputs(runs: int, seed: int = 0) -> list[list[np.ndarray]]:
    generator = np.random.default_rng(seed)
    return [[generator.integers(-128, 128, size, dtype=np.int8) for size in (24, 5)] for _ in range(runs)]


def toy_outputs(inputs: list[list[np.ndarray]]) -> list[list[bytes]]:
    return [[(a * WEIGHTS + np.int8(1)).tobytes(), b[::-1].tobytes()] for a, b in inputs]
