"""ONNX networks: references compute what onnxruntime computes, and generated C what the references compute.

The campaign is 2,000 networks on the host and 200 on emulated cores:

    pytest --campaign tests/exact/test_onnx.py
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable

import numpy as np
import pytest
from campaigns import assert_batches_are_exact
from executors import assert_all_exact
from onnx_networks import onnx_network

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.onnx.graph import file_for_onnxruntime
from tinyfuse.frontend.read_model import read_model
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

needs_cross = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)
CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55")


def onnx_plan(seed: int, targets: Iterable[str]) -> Plan:
    """The plan of a random network, whose references agree with onnxruntime; its seed says for which target and how."""
    rng, data = random.Random(f"plan {seed}"), onnx_network(seed).data
    graph = read_model("model.onnx", data)
    assert_references_are_onnxruntime(data, f"seed {seed}")
    options = Options(
        "net", kernels="tinyfuse", optimize=rng.choice(("speed", "balanced", "ram")),
        fusion=rng.choice(("none", "basic", "rows", "rows")), weights=rng.choice(("packed", "packed", "auto", "unpacked")),
    )  # fmt: skip
    return compile_graph(graph, load_target(rng.choice(list(targets))), options)


def assert_references_are_onnxruntime(data: bytes, message: str, runs: int = 4) -> None:
    graph = read_model("model.onnx", data)
    judged = file_for_onnxruntime("model.onnx", data, KINDS)
    assert not judged.float_sums, message
    infer, ours = oracle_worker.onnxruntime(judged.data, 0), ReferenceOracle(graph)
    for inputs in input_set(graph, runs, seed=0):
        for wanted, found in zip(infer(inputs), ours.run(inputs), strict=True):
            np.testing.assert_array_equal(wanted, found, err_msg=message)


def test_networks_are_exact() -> None:
    plans = [onnx_plan(seed, ("host", *CORES)) for seed in range(24)]
    assert_all_exact(plans, 4, on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize("core", CORES)
def test_networks_are_exact_on_a_core(core: str) -> None:
    first = 100 + 4 * CORES.index(core)
    assert_all_exact([onnx_plan(seed, (core,)) for seed in range(first, first + 4)], 3)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(20))
def test_many_networks_are_exact(part: int) -> None:
    seeds = range(1000 + 100 * part, 1100 + 100 * part)
    assert_batches_are_exact([onnx_plan(seed, ("host", *CORES)) for seed in seeds], 4, on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.campaign
@pytest.mark.parametrize("core", CORES)
def test_many_networks_are_exact_on_a_core(core: str) -> None:
    first = 5000 + 40 * CORES.index(core)
    assert_batches_are_exact([onnx_plan(seed, (core,)) for seed in range(first, first + 40)], 3)


@pytest.mark.parametrize("core", [*CORES, "cortex-m7", "cortex-m85"])
def test_instructions_are_predicted(core: str) -> None:
    """Kernels of onnxruntime's arithmetic had no entry in the cost tables: no plan of an ONNX file was predicted."""
    for seed in range(40):
        plan = compile_graph(read_model("model.onnx", onnx_network(seed).data), load_target(core), Options("net"))
        kernels = [stage.kernel.name for group in plan.groups for stage in group.stages]
        assert predicted_total(plan) is not None, kernels
