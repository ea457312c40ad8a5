"""The default plan is not worse than that of `--optimize speed` in everything, as measured: a campaign over random networks
of images and over time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from predictions import code_bytes, measured_parts
from sized_networks import line_network, sized_network
from test_emulation import needs_qemu

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target

#: first seed, far from those of test_predictions.py, and number of networks of each kind
FIRST, NETWORKS = 41_000, 10
#: share by which predictions of two plans with the same arena may be in the wrong order
NOISE = 0.01


def measured(plan: Plan) -> tuple[int, int, int]:
    """(instructions of one inference, bytes of arena, state and stack, bytes of code) at -O2."""
    outcome, parts = measured_parts(plan)
    assert outcome.stack_bytes is not None
    instructions = sum(part.instructions for group in parts.values() for part in group.values())
    return instructions, plan.ram_bytes + outcome.stack_bytes, code_bytes(plan)


@pytest.mark.campaign
@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("network", [sized_network, line_network])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_default_gains_something(target: str, network: Callable[[int, str], bytes]) -> None:
    worse = {}
    for seed in range(FIRST, FIRST + NETWORKS):
        graph = read_tflite("model.tflite", network(seed, "int8"))
        try:
            plans = {
                optimize: compile_graph(
                    graph, load_target(target), Options("net", kernels="tinyfuse", optimize=optimize)
                )
                for optimize in ("balanced", "speed")
            }
        except CompileError:  # TFLM refuses the network, too
            continue
        default, fastest = (measured(plan) for plan in plans.values())
        slower = default[0] > fastest[0] * (1 + NOISE)
        if slower and default[1] >= fastest[1] and default[2] >= fastest[2]:
            worse[seed] = default, fastest
    assert not worse
