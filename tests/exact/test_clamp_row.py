"""tinyfuse_clamp_row (runtime_c/tinyfuse_requantize.h): every byte within every pair of bounds, every length up to nine
at every alignment, on cores with and without the DSP extension."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from core_program import build_for_core, run_on_core

from tinyfuse.resources import resource_dir
from tinyfuse.targets import load_target

_PROGRAM = """\
#include "port.h"
#include "tinyfuse_requantize.h"

static int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Clamps `count` bytes from `start` on in the middle of others; returns whether these alone have changed. */
static int is_right(const int8_t *bytes, int32_t size, int32_t start, int32_t count, int32_t low, int32_t high)
{
    static int8_t memory[256];
    int32_t i;
    for (i = 0; i < size; ++i) {
        memory[i] = bytes[i];
    }
    tinyfuse_clamp_row(memory + start, count, low, high);
    for (i = 0; i < size; ++i) {
        if (memory[i] != (i < start || i >= start + count ? bytes[i] : clamped(bytes[i], low, high))) {
            return 0;
        }
    }
    return 1;
}

int main(void)
{
    static int8_t bytes[256];
    int32_t low, high, start, count, i;
    for (i = 0; i < 256; ++i) {
        bytes[i] = (int8_t)(i * 75 - 128); /* neighbours differ */
    }
    for (low = -128; low < 128; low += 5) {
        for (high = 127; high >= low; high -= 3) {
            if (is_right(bytes, 256, 0, 256, low, high) == 0) {
                port_write("bounds", 6);
                port_exit(1);
            }
        }
    }
    for (start = 0; start < 4; ++start) {
        for (count = 0; count < 10; ++count) {
            if (is_right(bytes + 16 * count, 16, start, count, -40, 70) == 0) {
                port_write("length", 6);
                port_exit(1);
            }
        }
    }
    port_exit(0);
}
"""


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"])
@pytest.mark.parametrize("opt", ["O0", "O2"])
def test_every_byte_is_clamped(core: str, opt: str, tmp_path: Path) -> None:
    source, target = tmp_path / "clamp_weights.c", load_target(core)
    source.write_text(_PROGRAM)
    run_on_core(build_for_core(source, (f"-I{resource_dir('runtime_c')}",), target, opt, tmp_path), target)
