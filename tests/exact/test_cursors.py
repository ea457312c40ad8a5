"""Cursors and counters that a caller hands back: what no step left is refused, and nothing outside the arena is touched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from campaigns import drawn_plans
from executors import plan_of
from known_architectures import planes, two_inputs, u_net
from native_compiler import COMPILER, SANITIZERS
from random_graphs import Sketch, networks
from stream_models import streaming_convolutions

from tinyfuse.cost.steps import divide_calls
from tinyfuse.emit import emit
from tinyfuse.plan import FEED_STATE, Plan
from tinyfuse.plan.rows import height

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="no clang")

#: Steps an inference, keeping all cursors, then tries `COUNT` others: drawn ones within the numbers' ranges, and those of
#: the inference with some numbers changed. Each is refused, unless it is one of the inference.
_STEPS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static const int32_t most[] = {MOST};
static net_cursor left[65536];
static uint32_t seed = SEED;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static int is_left(const net_cursor *cursor, int count)
{
    for (int i = 0; i < count; ++i) {
        if (memcmp(&left[i], cursor, sizeof *cursor) == 0) {
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    uint8_t *arena = (uint8_t *)aligned_alloc(NET_ARENA_ALIGN, (NET_ARENA_BYTES + NET_ARENA_ALIGN - 1) / NET_ARENA_ALIGN * NET_ARENA_ALIGN);
    net_cursor cursor = NET_FIRST_STEP;
    int count = 0, status, taken = 0;
#ifdef NET_STATE_BYTES
    uint8_t *state = (uint8_t *)aligned_alloc(16, (NET_STATE_BYTES + 15) / 16 * 16);
    net_reset(state);
#define STEP(c) net_step(arena, state, c)
#define FREE_STATE free(state);
#else
#define STEP(c) net_step(arena, c)
#define FREE_STATE
#endif

    memset(arena, 0, NET_ARENA_BYTES);
    do {
        left[count++] = cursor;
        status = STEP(&cursor);
    } while (status == NET_MORE_STEPS);
    if (status != NET_OK || count < LEAST) { printf("status %d, %d steps", (int)status, count); return 1; }
    for (int n = 0; n < COUNT; ++n) {
        net_cursor tried = left[draw((uint32_t)count)], given;
        if (n % 3 == 0) {                                 /* numbers within their ranges */
            tried.group = (int32_t)draw(GROUPS);
            for (int i = 0; i < NET_CURSOR_ROWS; ++i) { tried.rows[i] = (int32_t)draw((uint32_t)most[i] + 1u); }
        } else if (n % 3 == 1) {                          /* one or two numbers changed */
            for (uint32_t i = 0; i < 1u + draw(2); ++i) { tried.rows[draw(NET_CURSOR_ROWS)] += (int32_t)draw(5) - 2; }
        } else {                                          /* bits flipped anywhere */
            for (uint32_t i = 0; i < 1u + draw(3); ++i) { ((uint8_t *)&tried)[draw(sizeof tried)] ^= (uint8_t)(1u << draw(8)); }
        }
        given = tried;
        memset(arena, 0, NET_ARENA_BYTES);
        status = STEP(&tried);
        if (is_left(&given, count)) {
            ++taken;
        } else if (status != NET_ERROR_CURSOR) {
            printf("taken: group %d,", (int)given.group);
            for (int i = 0; i < NET_CURSOR_ROWS; ++i) { printf(" %d", (int)given.rows[i]); }
            return 2;
        } else if (memcmp(&tried, &left[0], sizeof tried) != 0) {
            return 3;                                     /* an error ends the inference */
        }
    }
    printf("%d of %d\n", taken, count);
    free(arena);
    FREE_STATE
    return 0;
}
"""


#: Feeds rows, and between two calls changes bits of the counters that the arena keeps: at `PLACES` {offset, bytes}. Each
#: change is refused by the next call, of either function.
_FED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static const uint32_t places[][2] = {PLACES};
static const ELEMENT row[ROW_ELEMENTS];
static uint32_t seed = SEED;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

int main(void)
{
    const size_t bytes = (NET_ARENA_BYTES + NET_ARENA_ALIGN - 1) / NET_ARENA_ALIGN * NET_ARENA_ALIGN;
    uint8_t *arena = (uint8_t *)aligned_alloc(NET_ARENA_ALIGN, bytes), *kept = (uint8_t *)malloc(bytes);

    memset(arena, 0, bytes);
    net_begin(arena);
    for (int fed = 0; fed <= NET_FEED_ROWS; ++fed) {
        memcpy(kept, arena, bytes);
        for (int n = 0; n < COUNT; ++n) {
            for (uint32_t i = 0; i < 1u + draw(3); ++i) {
                const uint32_t *place = places[draw(sizeof places / sizeof *places)];
                arena[place[0] + draw(place[1])] ^= (uint8_t)(1u << draw(8));
            }
            if (memcmp(arena, kept, bytes) != 0) {
                const int end = fed == NET_FEED_ROWS;
                const int status = end ? net_finish(arena) : net_feed_rows(arena, row, 1);
                if (status != NET_ERROR_ORDER) { printf("row %d: status %d", fed, status); return 2; }
            }
            memcpy(arena, kept, bytes);
        }
        if (fed < NET_FEED_ROWS && net_feed_rows(arena, row, 1) != NET_OK) { return 3; }
    }
    if (net_finish(arena) != NET_OK || net_finish(arena) != NET_ERROR_ORDER) { return 4; }
    free(arena);
    free(kept);
    return 0;
}
"""


def run_program(folder: Path, plan: Plan, text: str) -> None:
    """Compiles the module and `text` with sanitizers and runs them; AssertionError with the output of either."""
    for name, content in (emit(plan) | {"main.c": text}).items():
        (folder / name).write_text(content)
    sources = [path.name for path in folder.glob("*.c")]
    command = [COMPILER, "-std=c11", "-O1", "-w", "-DTINYFUSE_ANY_CPU", *SANITIZERS, *sources, "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])


def assert_only_cursors_that_steps_left(folder: Path, plan: Plan, count: int, seed: int, least: int = 3) -> None:
    """Checks `count` random cursors: the module of `plan` must accept those that a step has left, and refuse all
    others. An inference must have at least `least` steps."""
    highest = max(
        (height(stage.op.output) for group in plan.groups for stage in group.stages if stage.by_row), default=1
    )
    rows = max([1, *(plan.cursor_rows(group) for group in plan.groups)])
    given = [f"#define MOST {', '.join([str(highest)] * rows)}", f"#define GROUPS {len(plan.groups)}",
             f"#define COUNT {count}", f"#define SEED {seed}u", f"#define LEAST {least}"]  # fmt: skip
    run_program(folder, plan, "\n".join([*given, _STEPS]))


def chain() -> bytes:
    """One group of many stages; some of its rings slide."""
    sketch = Sketch(2)
    x = sketch.value((1, 24, 8, 8))
    y = x
    for _ in range(3):
        y = sketch.conv(sketch.depthwise(y, (3, 3)), 8, (1, 1))
    return sketch.build([x], [y])


_NETWORKS = {
    "chain": chain, "u-net": u_net, "two inputs": two_inputs,
    "stream": streaming_convolutions, "planes": planes,
}  # fmt: skip


@pytest.mark.parametrize("name", _NETWORKS)
def test_cursors_that_no_step_left_are_refused(tmp_path: Path, name: str) -> None:
    plan = plan_of(_NETWORKS[name](), "host", optimize="ram", step=True)
    assert_only_cursors_that_steps_left(tmp_path, plan, 3000, 1)


def test_so_are_those_of_calls_in_pieces(tmp_path: Path) -> None:
    plan = divide_calls(plan_of(chain(), "cortex-m4", kernels="tinyfuse", step=True), 1)
    assert any(stage.pieces > 1 for group in plan.groups for stage in group.stages)
    assert_only_cursors_that_steps_left(tmp_path, plan, 3000, 2)


def test_counters_of_a_fed_inference_that_no_call_left_are_refused(tmp_path: Path) -> None:
    plan = plan_of(chain(), "host", optimize="ram", feed_rows=True)
    group, offsets = plan.fed_group, plan.placement.offsets
    assert group is not None and group.counters is not None and plan.fed is not None
    sizes = {buffer.name: buffer.bytes for buffer in plan.buffers}
    places = ", ".join(f"{{{offsets[name]}, {sizes[name]}}}" for name in (FEED_STATE, group.counters))
    given = [f"#define PLACES {places}", "#define ELEMENT int8_t", "#define COUNT 200", "#define SEED 3u",
             f"#define ROW_ELEMENTS {plan.fed.elements // height(plan.fed)}"]  # fmt: skip
    run_program(tmp_path, plan, "\n".join([*given, _FED]))


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_campaign_of_cursors(tmp_path: Path, part: int) -> None:
    """Thousands of cursors for each of many random networks."""
    for number, plan in enumerate(drawn_plans(networks(), 5, 900 + part, step=True)):
        if any(plan.cursor_rows(group) for group in plan.groups):
            (folder := tmp_path / str(number)).mkdir()
            assert_only_cursors_that_steps_left(folder, plan, 20_000, part)
