"""TFLM's signal library: operators that keep samples, run after run, our references against TFLM's interpreter and the
C against the references. Those without state are cases (tests/support/cases/signal.py)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from core_rotation import share_of_core
from executors import assert_exact, assert_reference_is_tflm, plan_of
from signal_models import SIGNAL_MODELS, SignalNet, windows
from stream_program import assert_all_stream
from test_generated_api import program

from tinyfuse.emit import emit
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.selftest import embedded_selftest

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
COMPLETE = [name for name in SIGNAL_MODELS if name != "incomplete frames"]


@pytest.mark.parametrize("name", COMPLETE)
def test_references_are_tflm(name: str) -> None:
    assert_reference_is_tflm(SIGNAL_MODELS[name], 60)


def test_host() -> None:
    assert_all_stream([plan_of(data) for data in SIGNAL_MODELS.values()])


@emulated
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_emulated(target: str, pytestconfig: pytest.Config) -> None:
    names = ["signal streams", "signal noise"] if target == "cortex-m0plus" else [*SIGNAL_MODELS]
    mine = share_of_core(target, names, pytestconfig)
    assert_all_stream([plan_of(SIGNAL_MODELS[name], target) for name in mine], on_core=True)


def test_incomplete_frames_are_told() -> None:
    """TFLM leaves in them what was in memory, so only the complete ones are compared, and which those are."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    data = SIGNAL_MODELS["incomplete frames"]
    graph = read_tflite("model.tflite", data)
    inputs = input_set(graph, 40, 3)
    (ours,) = ReferenceOracle(graph).run_streams([inputs])
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    seen = set()
    for run, found in zip(inputs, ours, strict=True):
        for index, value in enumerate(run):
            interpreter.set_input(value, index)
        interpreter.invoke()
        for pair in range(0, len(found), 2):
            valid = bool(interpreter.get_output(pair + 1))
            seen.add((pair, valid))
            assert bool(found[pair + 1]) == valid
            if valid:
                np.testing.assert_array_equal(found[pair], interpreter.get_output(pair))
    assert seen >= {(pair, valid) for pair in range(0, len(ours[0]), 2) for valid in (False, True)}


def test_what_tflm_leaves_open_is_told() -> None:
    """A warning for each operator whose frames may not be complete, and for no other."""
    warnings = plan_of(SIGNAL_MODELS["incomplete frames"]).warnings
    assert len(warnings) == 7 and all("leaves in its place what was in memory" in text for text in warnings)
    assert not plan_of(SIGNAL_MODELS["signal streams"]).warnings


def test_energies_outside_of_the_bins_are_zero() -> None:
    """TFLM leaves memory unchanged there."""
    net = SignalNet()
    net.show(net.add("Energy", [net.input((18,))], [((9,), "uint32")], start_index=2, end_index=7))
    plan = plan_of(net.build())
    ((energies,),) = ReferenceOracle(plan.source).run_all([[np.full(18, -32768, np.int16)]])
    assert energies.tolist() == [0, 0, *[2**31] * 5, 0, 0]
    assert_exact(plan, 6)
    (op,) = plan.source.ops
    (settled,) = FAMILIES[op.kind].settled(op, (np.full(9, 7, np.uint32),))
    assert settled.tolist() == [0, 0, *[7] * 5, 0, 0]


STATUS_MAIN = """\
#include "net.h"
#include <stdio.h>

NET_DEFINE_ARENA(arena);
static NET_DEFINE_STATE(state);

int main(void)
{
    int run;
    if (net_init(arena, sizeof arena) != NET_OK || net_reset(state) != NET_OK) {
        return 1;
    }
    for (run = 0; run < 14; ++run) {
        printf("%d ", net_run(arena, state));
    }
    puts(net_strerror(NET_NO_RESULT_YET));
    return 0;
}
"""


def test_a_run_without_a_result_is_a_status(tmp_path: Path) -> None:
    """The first window lets every second frame through, the second one every third of these."""
    shown = program(tmp_path, [plan_of(windows((2, 3)))], STATUS_MAIN)
    assert shown == "8 8 8 8 8 0 8 8 8 8 8 0 8 8 the model waits for more inputs\n"


def test_a_model_that_never_awaits_has_no_such_status(tmp_path: Path) -> None:
    header = emit(plan_of(windows((1, 1))))["net.h"]
    assert "NO_RESULT_YET" not in header and "NO_RESULT_YET" in emit(plan_of(windows((1, 2))))["net.h"]


def test_a_selftest_needs_a_result() -> None:
    with pytest.raises(UsageError, match="no result in its first run"):
        embedded_selftest(plan_of(windows()))
