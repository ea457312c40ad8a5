"""No counter of a state grows: whatever number of steps there were before, 2^31 or more, a stream goes on as it did.

If all frames of a stream are equal, each step is the same function of the state. So once the bytes of a state have come
twice, they come again and again: after 2^31 steps they are what they were after a few. Positions and counts depend on no
data, so they are the same for all streams. Other values (an LSTM's cell, for example) come to rest for some frames.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from batch_module import named_apart
from executors import assert_exact, assert_reference_is_tflm, plan_of
from host_program import WARNINGS, compile_c
from native_compiler import COMPILER, SANITIZERS, report
from signal_models import SIGNAL_MODELS, windows
from sliding_models import gesture, padded, wake_word
from stream_models import STREAM_MODELS, add_handle, initialization
from tflite_builder import ModelBuilder

from tinyfuse.emit import emit
from tinyfuse.plan import Plan

#: steps within which a state must have come twice, for some of these bytes as frames
MOST_STEPS = 20_000

_MAIN = """\
{includes}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{adapters}
static const struct module {{
    size_t arena_bytes, state_bytes, inputs;
    int (*init)(void *, size_t), (*reset)(void *), (*step)(void *, void *, const void *);
    void *(*input)(void *, size_t);
    size_t (*input_bytes)(size_t);
}} modules[] = {{
{table}
}};
static const int fillings[] = {{0, 1, 0x80, 0x40}};

/* Steps after which the state is as it was some steps before; 0 if it never is. The state is compared with that of the
   last power of two. */
static int steps_to_repeat(const struct module *m, int filling)
{{
    uint8_t *arena = malloc(m->arena_bytes), *frame = NULL, *state = malloc(m->state_bytes), *old = malloc(m->state_bytes);
    int found = 0, kept = 0;

    memset(state, 0xA5, m->state_bytes);
    if (m->init(arena, m->arena_bytes) != 0 || m->reset(state) != 0) {{
        exit(1);
    }}
    for (int step = 1; step <= {most} && !found; ++step) {{
        for (size_t i = 0; i < m->inputs; ++i) {{
            void *to = m->input(arena, i);

            if (to == NULL) {{
                to = frame = realloc(frame, m->input_bytes(i));
            }}
            memset(to, filling, m->input_bytes(i));
        }}
        const int status = m->step(arena, state, frame);

        if (status != 0 && status != 8) {{
            exit(2);
        }}
        found = kept > 0 && memcmp(state, old, m->state_bytes) == 0 ? step : 0;
        if ((step & (step - 1)) == 0) {{
            memcpy(old, state, m->state_bytes);
            kept = step;
        }}
    }}
    free(frame);
    free(old);
    free(state);
    free(arena);
    return found;
}}

int main(void)
{{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; ++i) {{
        int steps = 0;

        for (size_t f = 0; f < sizeof fillings / sizeof *fillings && steps == 0; ++f) {{
            steps = steps_to_repeat(&modules[i], fillings[f]);
        }}
        printf("%d\\n", steps);
    }}
    return 0;
}}
"""
_ADAPTER = """\
static int {n}_step_of(void *arena, void *state, const void *frames)
{{
    (void)frames;
    return {call};
}}
"""
_ROW = "    {{{P}_ARENA_BYTES, {P}_STATE_BYTES, {P}_INPUTS, {n}_init, {n}_reset, {n}_step_of, {n}_input, {n}_input_bytes}},"


def _call(plan: Plan) -> str:
    window, name = plan.source.window, plan.options.name
    if window is None:
        return f"{name}_run(arena, state)"
    if window.rows is None:
        return f"{name}_slide(arena, state, frames)"
    return f"{name}_feed_rows(arena, state, frames, {name.upper()}_FEED_ROWS)"


def steps_to_repeat(folder: Path, plans: Sequence[Plan]) -> list[int]:
    """For each module, the steps after which its state comes again; 0 if it does not within MOST_STEPS."""
    plans = named_apart(plans)
    for plan in plans:
        for file, text in emit(plan).items():
            (folder / file).write_text(text)
    names = [plan.options.name for plan in plans]
    text = _MAIN.format(
        includes="\n".join(f'#include "{name}.c"\n#include "{name}_weights.c"' for name in names),
        adapters="".join(_ADAPTER.format(n=p.options.name, call=_call(p)) for p in plans),
        table="\n".join(_ROW.format(n=name, P=name.upper()) for name in names),
        most=MOST_STEPS,
    )
    (folder / "main.c").write_text(text)
    flags = [COMPILER, "-std=c99", "-O0", "-DTINYFUSE_ANY_CPU", *WARNINGS, f"-I{folder}"]
    compile_c([*flags, folder / "main.c", "-lm", "-o", folder / "program"])
    done = subprocess.run([folder / "program"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, report(done.returncode, done.stderr)
    return [int(line) for line in done.stdout.split()]


SLIDING = {
    "slide of one frame": (wake_word(), {"slide": 1}),
    "slide of two frames, int16": (wake_word(dtype="int16"), {"slide": 2}),
    "slide of padded layers": (padded(), {"slide": 2}),
    "slide of causal layers": (gesture(causal=True), {"slide": 3}),
    "slide that is fed": (padded(), {"slide": 2, "feed_rows": True}),
}
MODELS = {name: (data, {}) for name, data in (STREAM_MODELS | SIGNAL_MODELS).items()} | SLIDING
#: of each sort of counter one
IN_CI = (
    "incomplete frames", "windows that await frames", "several rows a frame", "svdf of int8",
    "slide of padded layers", "slide that is fed",
)  # fmt: skip


@pytest.mark.parametrize("names", [pytest.param(IN_CI, id="some"),
                                   pytest.param(tuple(MODELS), id="all", marks=pytest.mark.campaign)])  # fmt: skip
def test_states_come_again(tmp_path: Path, names: tuple[str, ...]) -> None:
    plans = [plan_of(data, **options) for data, options in map(MODELS.get, names)]
    steps = dict(zip(names, steps_to_repeat(tmp_path, plans), strict=True))
    assert all(count > 0 for count in steps.values()), steps


# --- counters that a model starts or ends near 2^31 ---------------------------------------------


def _counting(step: int, start: int) -> bytes:
    """total = total + step, in int32 from a value; the total before is the output."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 4), "int32")
    model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    total = add_handle(model, "total")
    before, after = model.tensor("before", (1, 4), "int32"), model.tensor("after", (1, 4), "int32")
    y = model.tensor("y", (1, 4), "int32")
    model.op("READ_VARIABLE", [total], [before])
    by = model.tensor("by", (1, 4), "int32", data=np.full((1, 4), step, np.int32))
    model.op("ADD", [before, by], [after], fused_activation_function="NONE")
    model.op("ASSIGN_VARIABLE", [total, after], [])
    model.op("ADD", [x, before], [y], fused_activation_function="NONE")
    values = np.array([[start, start + 1, start - 1, 0]], np.int32)
    return model.build([x], [y], called=[initialization({"total": (values, None, None)})])


@pytest.mark.parametrize(("step", "start"), [(1, 2**31 - 5), (-1, 5 - 2**31), (2**30, 0)])
def test_a_counter_of_the_model_wraps_like_the_interpreters(step: int, start: int) -> None:
    data = _counting(step, start)
    assert_reference_is_tflm(data, 20)
    assert_exact(plan_of(data), 20)


def test_a_counter_that_grows_is_seen(tmp_path: Path) -> None:
    assert steps_to_repeat(tmp_path, [plan_of(_counting(1, 0)), plan_of(_counting(2**30, 0))]) == [0, 8]


_AWAITING = """\
#include "net.c"
#include "net_weights.c"
#include <stdio.h>
#include <string.h>

static NET_DEFINE_ARENA(arena);
static NET_DEFINE_STATE(state);

/* Frames to come, which a state of this model has once. */
static int32_t *left(void)
{
    const int32_t most = 2147483647;

    for (size_t at = 0; at < NET_STATE_BYTES; at += sizeof most) {
        if (memcmp((uint8_t *)state + at, &most, sizeof most) == 0) {
            return (int32_t *)(void *)((uint8_t *)state + at);
        }
    }
    return NULL;
}

int main(void)
{
    int32_t *count;

    if (net_init(arena, sizeof arena) != NET_OK || net_reset(state) != NET_OK) {
        return 1;
    }
    count = left();
    if (count == NULL) {
        return 2;
    }
    memset(net_input(arena, 0), 3, net_input_bytes(0));
    printf("%d %ld ", net_run(arena, state), (long)*count);
    *count = 2; /* as it is after 2^31 - 3 steps */
    for (int step = 0; step < 3; ++step) {
        memset(net_input(arena, 0), 3, net_input_bytes(0));
        printf("%d %ld ", net_run(arena, state), (long)*count);
    }
    return 0;
}
"""


def test_a_window_that_awaits_almost_2_31_frames(tmp_path: Path) -> None:
    """The count begins at the greatest number and ends at 0, after which it begins again."""
    plan = plan_of(windows((2**31 - 1, 1)))
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text(_AWAITING)
    flags = [COMPILER, "-std=c99", "-O0", "-DTINYFUSE_ANY_CPU", *WARNINGS, *SANITIZERS, f"-I{tmp_path}"]
    compile_c([*flags, tmp_path / "main.c", "-lm", "-o", tmp_path / "program"])
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=60)
    most = 2**31 - 1
    assert (done.returncode, done.stdout) == (0, f"8 {most - 1} 8 1 0 {most} 8 {most - 1} "), done.stderr


@pytest.mark.parametrize("cycles", [2**31, 2**40, -(2**63)])
def test_cycles_beyond_int32(cycles: int) -> None:
    """TFLM takes the lowest 32 bits of them."""
    data = windows((cycles, 1))
    assert_reference_is_tflm(data, 12)
    assert_exact(plan_of(data), 12)
