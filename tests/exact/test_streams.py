"""Models with state, frame by frame: our references against TFLM, the C against the references, on the
host and on emulated cores, by two instances that take turns and are reset in between."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cmsis_harness import tree_or_skip
from core_rotation import share_of_core
from executors import assert_exact, assert_reference_is_tflm, plan_of
from stream_models import STREAM_MODELS, lstm
from stream_program import assert_all_stream
from test_generated_api import program

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

#: frames over all streams: in a campaign on the host, emulated
MANY_FRAMES, EMULATED_FRAMES = 1000, 50


@pytest.mark.parametrize("name", STREAM_MODELS)
def test_references_are_tflm(name: str) -> None:
    assert_reference_is_tflm(STREAM_MODELS[name], 80)


def test_host() -> None:
    assert_all_stream([plan_of(data) for data in STREAM_MODELS.values()])


@pytest.mark.campaign
@pytest.mark.parametrize("name", STREAM_MODELS)
def test_many_frames_on_the_host(name: str) -> None:
    assert_exact(plan_of(STREAM_MODELS[name]), MANY_FRAMES)


@emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_emulated(target: str, pytestconfig: pytest.Config) -> None:
    """Runs all models in one program."""
    mine = share_of_core(target, [*STREAM_MODELS.values()], pytestconfig)
    assert_all_stream([plan_of(data, target) for data in mine], on_core=True)


@emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_a_module_with_every_kind_of_state_in_the_harness_of_verify(target: str) -> None:
    """Checks its interface, its stack, what it writes and what it refuses."""
    assert_exact(plan_of(STREAM_MODELS["every kind of state"], target), EMULATED_FRAMES)


CPP_MAIN = """\
#include "net.h"
#include <cstdio>
#include <cstring>

NET_DEFINE_ARENA(arena);
static NET_DEFINE_STATE(one);
static NET_DEFINE_STATE(two);

int main()
{
    if (net_init(arena, sizeof arena) != NET_OK || net_reset(one) != NET_OK) {
        return 1;
    }
    std::memcpy(two, one, sizeof two); /* a state may be copied */
    std::memset(net_input(arena, 0), 3, NET_INPUT_FRAME_BYTES);
    if (net_run(arena, two) != NET_OK || std::memcmp(one, two, sizeof two) == 0) {
        return 2;
    }
    if (net_reset(two) != NET_OK || std::memcmp(one, two, sizeof two) != 0) {
        return 3;
    }
    std::printf("%d %d %d: ", net_run(arena, nullptr), net_reset(nullptr), net_reset(one + 1));
    std::puts(net_strerror(net_reset(one + 1)));
}
"""


def test_the_api_from_cpp(tmp_path: Path) -> None:
    """Reset gives the same state again, a state may be copied, and misuse is told."""
    plan = plan_of(STREAM_MODELS["every kind of state"])
    shown = program(tmp_path, [plan], CPP_MAIN, compiler="g++")
    assert shown == "1 1 3: the arena or the state is not aligned\n"


# --- CMSIS-NN ----------------------------------------------------------------------------------


@emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", ["svdf of int16", "svdf of int8", "svdf of two batches", "keyword spotter"])
def test_cmsis_nn(name: str, target: str) -> None:
    tree = tree_or_skip("newest")
    version = ".".join(map(str, tree.version))
    plan = plan_of(STREAM_MODELS[name], target, kernels="cmsis-nn", cmsis_nn_version=version)
    assert any("svdf" in function for function in plan.cmsis_nn_functions)
    assert_exact(plan, EMULATED_FRAMES, tree=tree)


#: what the hidden state adds to a gate stays in int16
_MILD = {
    "one step": lstm((1, 1, 8), 6, recurrent=0.005),
    "steps and batches": lstm((2, 3, 17), 7, recurrent=0.005),
    "by time": lstm((3, 2, 4), 19, time_major=True, recurrent=0.002),
    "a clipped cell": lstm((1, 4, 3), 5, cell_scale=2.0**-10, clip=1.5, recurrent=0.005),
    "a coarse cell": lstm((1, 2, 6), 4, cell_scale=2.0**-14, recurrent=0.005),
}


@emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_lstm_of_cmsis_nn(target: str) -> None:
    tree = tree_or_skip("newest")
    if tree.version < (6, 0):
        pytest.skip("needs CMSIS-NN 6.0 or later: CMSIS_NN_PATH names an older one")
    version = ".".join(map(str, tree.version))
    plans = [
        plan_of(model, target, f"lstm{i}", kernels="cmsis-nn", cmsis_nn_version=version)
        for i, model in enumerate(_MILD.values())
    ]
    assert all(plan.cmsis_nn_functions == {"arm_nn_lstm_step_s8"} for plan in plans)
    for plan in plans:
        assert_exact(plan, EMULATED_FRAMES, tree=tree)


@pytest.mark.parametrize("version", ["4.0", "7.0"])
def test_what_cmsis_nn_does_otherwise_is_ours(version: str) -> None:
    """CMSIS-NN's LSTM clamps a gate once, its SVDF ignores the state's zero point, and 4.0's SVDF writes out of bounds
    with MVE."""

    def functions(name: str, target: str) -> set[str]:
        plan = plan_of(STREAM_MODELS[name], target, kernels="cmsis-nn", cmsis_nn_version=version)
        return plan.cmsis_nn_functions

    assert not functions("lstm of one step", "cortex-m4") | functions("svdf whose state wraps", "cortex-m4")
    assert functions("svdf of int8", "cortex-m4") == {"arm_svdf_s8"}
    assert functions("svdf of int8", "cortex-m55") == (set() if version == "4.0" else {"arm_svdf_s8"})
