"""The default plan is not worse than that of `--optimize speed` in everything, as measured: a campaign over random networks
of images and over time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sized_networks import line_network, sized_network
from test_emulation import needs_qemu

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.profile.image import arena_columns, read_image
from tinyfuse.profile.measure import measure
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation.code_size import measure_code
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu

#: first seed, far from those of test_predictions.py, and number of networks of each kind
FIRST, NETWORKS = 41_000, 10
#: share by which predictions of two plans with the same arena may be in the wrong order
NOISE = 0.01


def measured(plan: Plan, work: Path) -> tuple[int, int, int]:
    """(instructions of one inference, bytes of arena, state and stack, bytes of code) at -O2."""
    work.mkdir()
    firmware = build_module(plan, None, input_set(plan.source, 1, 0), "qemu", "O2", work)
    source = (work / "module" / f"{plan.options.name}.c").read_text()
    image = read_image(firmware.elf, plan.options.name, source, arena_columns(plan), plan.context.target.mve)
    qemu = Qemu()
    outcome, counts = run_counted(qemu, firmware, image, build_plugin(qemu.version), None, 600)
    parts = measure(counts, image, timed=False).parts
    instructions = sum(part.instructions for group in parts.values() for part in group.values())
    assert outcome.stack_bytes is not None
    (work / "code").mkdir()
    code = measure_code(plan, None, work / "code").module
    return instructions, plan.ram_bytes + outcome.stack_bytes, code


@pytest.mark.campaign
@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("network", [sized_network, line_network])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_default_gains_something(target: str, network: Callable[[int, str], bytes], tmp_path: Path) -> None:
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
        default, fastest = (measured(plan, tmp_path / f"{seed}_{name}") for name, plan in plans.items())
        slower = default[0] > fastest[0] * (1 + NOISE)
        if slower and default[1] >= fastest[1] and default[2] >= fastest[2]:
            worse[seed] = default, fastest
    assert not worse
