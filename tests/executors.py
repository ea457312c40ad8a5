"""Ways to run a model in tests: TFLM, the numpy references, and generated C on the host or emulated.

A test hands over .tflite bytes; every executor gives, for each input set, the list of outputs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tinyfuse.compiler import compile_graph
from tinyfuse.emulation import find_emulator
from tinyfuse.emulation.inputs import input_set
from tinyfuse.emulation.module import build_module
from tinyfuse.oracle import ReferenceOracle, make_oracle
from tinyfuse.plan import Plan
from tinyfuse.options import Options
from tinyfuse.targets import load_target
from tinyfuse.tflite_reader import read_tflite
from tinyfuse.verification import compare


def plan_of(data: bytes, target: str = "host", **options) -> Plan:
    """The plan of a model given as bytes; options are those of Options."""
    return compile_graph(read_tflite("model.tflite", data), load_target(target), Options("net", **options))


def assert_reference_is_tflm(data: bytes, runs: int = 5, seed: int = 0) -> None:
    """Our numpy references compute what TFLM's interpreter computes."""
    graph = read_tflite("model.tflite", data)
    inputs = input_set(graph, runs, seed)
    expected = make_oracle("tflm", data, graph).run_all(inputs)
    for wanted, found in zip(expected, ReferenceOracle(graph).run_all(inputs), strict=True):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)


def assert_exact(plan: Plan, runs: int = 5, seed: int = 0, tree=None) -> None:
    """The generated C computes what the references compute, on the plan's target (natively under
    sanitizers, or in QEMU), and writes nothing outside its arena."""
    inputs = input_set(plan.source, runs, seed)
    expected = ReferenceOracle(plan.source).run_all(inputs)
    machine = find_emulator("host" if plan.context.target.cpu is None else "qemu", plan.context.target)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-test-") as folder:
        firmware = build_module(plan, tree, inputs, machine.name, "O1", Path(folder))
        outcome = machine.run(firmware, 30)
    result = compare(plan, expected, outcome.outputs)
    assert result.mismatches == 0, f"{result.first}\n{plan.graph}"
    assert not outcome.guards, outcome.guards
