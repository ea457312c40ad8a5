"""An interrupt's handler makes inferences of another module while one runs: both self-tests hold at every place.

`verify` does the same with one module and two arenas (firmware/verify.c).
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from core_program import build_for_core, run_on_core
from executors import plan_of
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.emit import emit
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target
from tinyfuse.verify.selftest import embedded_selftest

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
        reason="needs arm-none-eabi-gcc and qemu-system-arm",
    ),
]

# Each round, another interrupt calls the second module. When a round has no interrupt of that number, all were tried.
_MAIN = """\
#include "port.h"
#include "first.c"
#include "first_weights.c"
#include "first_selftest.c"
#include "second.c"
#include "second_weights.c"
#include "second_selftest.c"

static FIRST_DEFINE_ARENA(first_arena);
static SECOND_DEFINE_ARENA(second_arena);
#ifdef SECOND_STATE_BYTES
static SECOND_DEFINE_STATE(second_state);
#define SECOND_ARGUMENTS second_arena, sizeof second_arena, second_state
#else
#define SECOND_ARGUMENTS second_arena, sizeof second_arena
#endif
static volatile int inside, calls;

static int first(void *arena)
{
    return first_selftest(arena, sizeof first_arena);
}

static void second(void)
{
    inside = second_selftest(SECOND_ARGUMENTS);
    ++calls;
}

int main(void)
{
    uint32_t turn = 1;

    do {
        uint32_t late;

        calls = 0;
        if (port_run_interrupted(first, first_arena, second, turn, &late) != FIRST_OK) {
            port_exit(2);
        }
        if (calls > 0 && inside != SECOND_OK) {
            port_exit(3);
        }
        ++turn;
    } while (calls > 0);
    port_exit(turn > 12u ? 0 : 4);
}
"""


def _image(dtype: str = "int8") -> bytes:
    sketch = Sketch(1, dtype=dtype)
    x = sketch.value((1, 9, 8, 5))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    return sketch.build([x], [sketch.fully_connected(sketch.conv(y, 5, (3, 3)), 3)])


PAIRS = {
    "int8 within int8": (_image, _image),
    "float32 within int8": (_image, partial(_image, "float32")),
    "int8 within float32": (partial(_image, "float32"), _image),
    "a stream within int16": (partial(_image, "int16"), lambda: STREAM_MODELS["svdf of int8"]),
}


def _write(plan: Plan, folder: Path) -> None:
    files = {name: text.encode() for name, text in emit(plan, embedded_selftest(plan)).items()}
    write_folder(folder, files, force=False)


#: (target, pair) that CI takes
IN_CI = [("cortex-m4", "a stream within int16"), ("cortex-m55", "int8 within float32")]
CASES = [
    pytest.param(target, pair, marks=[] if (target, pair) in IN_CI else [pytest.mark.campaign])
    for target in ("cortex-m0plus", "cortex-m4", "cortex-m55")
    for pair in PAIRS
]


@pytest.mark.parametrize(("target", "pair"), CASES)
def test_modules_within_interrupts_of_others(tmp_path: Path, target: str, pair: str) -> None:
    for name, model in zip(("first", "second"), PAIRS[pair], strict=True):
        _write(plan_of(model(), target, name, kernels="tinyfuse"), tmp_path / name)
    program = tmp_path / "main_weights.c"
    program.write_text(_MAIN)
    flags = [f"-I{tmp_path / name}" for name in ("first", "second")]
    run_on_core(build_for_core(program, flags, load_target(target), "O1", tmp_path), load_target(target), counted=True)


def test_a_shared_variable_is_seen(tmp_path: Path) -> None:
    """The test sees a scratch of the kernels that both modules share."""
    for name, model in zip(("first", "second"), PAIRS["a stream within int16"], strict=True):
        _write(plan_of(model(), "cortex-m4", name, kernels="tinyfuse"), tmp_path / name)
        code = tmp_path / name / f"{name}.c"
        begin, end = f"    {name.upper()}_GROUP_BEGIN(0);", f"    {name.upper()}_GROUP_END(0);"
        text = code.read_text()
        assert begin in text and end in text
        text = text.replace(begin, f"    shared = {len(name)}u;\n{begin}", 1)
        code.write_text(
            text.replace(
                end, f"    if (shared != {len(name)}u) {{ memset(arena, 0, {name.upper()}_ARENA_BYTES); }}\n{end}", 1
            )
        )
    program = tmp_path / "main_weights.c"
    program.write_text("static volatile unsigned shared;\n" + _MAIN)
    flags = [f"-I{tmp_path / name}" for name in ("first", "second")]
    elf = build_for_core(program, flags, load_target("cortex-m4"), "O1", tmp_path)
    with pytest.raises(AssertionError, match="ended with 2"):
        run_on_core(elf, load_target("cortex-m4"), counted=True)


@pytest.mark.parametrize(("size", "told"), [(1200, True), (100, False)])
def test_a_board_without_room_for_a_second_arena_is_told(tmp_path: Path, size: int, told: bool) -> None:
    """Arenas of 1200 * 1200 * 2 bytes fit the board's 4 MB of RAM once, not twice."""
    model = ModelBuilder()
    x, y, z = (model.tensor(name, (1, size, size, 1)) for name in "xyz")
    model.op("MAXIMUM", [x, model.tensor("floor", (1,), data=np.zeros(1, np.int8))], [y])
    model.op("TRANSPOSE", [y, model.tensor("order", (4,), "int32", data=np.array([0, 2, 1, 3], np.int32))], [z])
    (tmp_path / "large.tflite").write_bytes(model.build([x], [z]))
    found = tinyfuse.compile(str(tmp_path / "large.tflite"), "cortex-m4").verify(runs=1)
    assert found.exact
    assert any("no room for a second arena" in text for text in found.warnings) == told
