"""Measures modules that tinyfuse generates, under the conditions of peers.json."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from rows import Row

from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.errors import TinyfuseError
from tinyfuse.ir import Graph
from tinyfuse.plan import Plan
from tinyfuse.verify.comparison import compare, problems
from tinyfuse.verify.emulation import find_emulator
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.oracle import make_oracle

#: what is asked for, as options of `tinyfuse gen`: what a Request takes
SETTINGS = (
    {"kernels": "auto", "fusion": "rows", "optimize": "balanced"},
    {"kernels": "auto", "fusion": "rows", "optimize": "speed"},
    {"kernels": "auto", "fusion": "rows", "optimize": "speed", "weights": "packed"},
    {"kernels": "auto", "fusion": "rows", "optimize": "ram"},
    {"kernels": "tinyfuse", "fusion": "rows", "optimize": "balanced"},
    {"kernels": "cmsis-nn", "fusion": "rows", "optimize": "balanced"},
    {"kernels": "auto", "fusion": "basic"},
    {"kernels": "auto", "fusion": "none"},
)

#: what `tinyfuse gen` does without options
DEFAULT = SETTINGS[0]

_expected: dict[tuple[bytes, int], list[list[np.ndarray]]] = {}


def measured_inputs(graph: Graph, corners: int) -> list[list[np.ndarray]]:
    """Inputs of the runs: the second, which is measured, is numpy's default_rng(0) over the full
    range, as for the recorded tools; then `corners` of tinyfuse's own set."""
    return input_set(graph, 1, 0) * 2 + input_set(graph, corners, 1)


def expected_outputs(data: bytes, graph: Graph, inputs: list, corners: int) -> list[list[np.ndarray]]:
    """TensorFlow Lite Micro's outputs, asked once a model."""
    if (data, corners) not in _expected:
        _expected[data, corners] = make_oracle("tflm", data, graph).run_all(inputs)
    return _expected[data, corners]


def title(setting: dict[str, str]) -> str:
    """A setting as the tables name it."""
    return ", ".join(" ".join(option) for option in setting.items())


def measure(
    path: Path,
    model: str,
    macs: int,
    target: str,
    options: dict[str, str],
    cmsis_nn: str | None,
    opt: str,
    corners: int,
) -> Row:
    """The row of one generation; a failure is a row too."""
    setting = title(options)
    try:
        request = Request(str(path), target, name="net", cmsis_nn_path=cmsis_nn, **options)
        plan, tree = make_plan(request, lambda text: None, needs_tree=True)
        return _run(plan, tree, path, Row("tinyfuse", setting, model, target), macs, opt, corners)
    except TinyfuseError as error:
        return Row("tinyfuse", setting, model, target, failure=str(error).split("\n", 1)[0])


def _run(plan: Plan, tree, path: Path, row: Row, macs: int, opt: str, corners: int) -> Row:
    machine = find_emulator("qemu", plan.context.target)
    inputs = measured_inputs(plan.source, corners)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        firmware = build_module(plan, tree, inputs, "qemu", opt, Path(work))
        outcome = machine.run(firmware, 600)
    expected = expected_outputs(path.read_bytes(), plan.source, inputs, corners)
    comparison = compare(plan, expected, outcome.outputs)
    broken = problems(plan, firmware, outcome)
    return Row(
        row.tool,
        row.setting,
        row.model,
        row.target,
        outcome.instructions,
        round(outcome.instructions / macs, 3),
        plan.arena_bytes,
        firmware.ram_bytes,
        outcome.stack_bytes,
        firmware.code_bytes,
        firmware.weight_bytes,
        comparison.mismatches == 0 and not broken,
    )
