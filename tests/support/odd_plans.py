"""Plans of odd networks (odd_networks.py), each held to its interpreter: of uint8 LiteRT, of all else TFLM.

plans = odd_plans("int8", range(24))                    options and cores are drawn, too
assert_batches_are_exact(plans, runs=4, on_host=True)   campaigns.py
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from executors import plan_of
from odd_networks import OddNetwork, odd_network

from tinyfuse.errors import CompileError, DoesNotFit, UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.plan import Plan
from tinyfuse.verify.bounds import check_operators, has_bounds
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.interpreter_process import InterpreterFailed, run_interpreter
from tinyfuse.verify.oracle import InterpreterOracle, ReferenceOracle

#: whose kernels a module that runs on the host may have, those of cores in their portable forms
EVERY_TARGET = ("host", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55")

#: of a network whose numbers may overflow 32 bits in TFLM: it runs there, for inputs that don't; here it is refused
_OVERFLOWS = re.compile(
    r"overflow|may not fit 32 bits|multiplier is below|scale is (below|above|from) 2\^|scales? .*2\^-?\d+ times|fits 30 bits"
)


def odd_plans(sort: str, seeds: Iterable[int], targets: Iterable[str] = EVERY_TARGET, **options: Any) -> list[Plan]:
    """A plan of each network that is not refused, for one of the targets."""
    return [plan for seed in seeds if (plan := odd_plan(sort, seed, tuple(targets), **options)) is not None]


def odd_plan(
    sort: str, seed: int, targets: tuple[str, ...] = EVERY_TARGET, runs: int = 4, **options: Any
) -> Plan | None:
    """The plan of a network after its references were compared with its interpreter; None if both refuse it.
    AssertionError if only the interpreter runs it, or results differ."""
    network, rng = odd_network(seed, sort), random.Random(f"plan {sort} {seed}")
    target, drawn = rng.choice(targets), drawn_options(rng)
    try:
        plan = plan_of(network.data, target, kernels="tinyfuse", **{**drawn, **options})
    except CompileError as refusal:
        overflows = all(_OVERFLOWS.search(f"{problem.message} {problem.hint}") for problem in refusal.problems)
        assert overflows or not is_run(network), f"{sort} {seed}: {refusal}"
        return None
    assert_interpreter_agrees(network, sort, runs, f"{sort} {seed}")
    return plan


def plans_that_may(sort: str, seeds: Iterable[int], **options: Any) -> list[Plan]:
    """Plans with options that few networks accept, such as --slide; networks that don't accept them are left out."""
    plans = []
    for seed in seeds:
        network, rng = odd_network(seed, sort), random.Random(f"plan {sort} {seed}")
        target, drawn = rng.choice(EVERY_TARGET), drawn_options(rng)
        with suppress(CompileError, UsageError, DoesNotFit):
            plan = plan_of(network.data, target, kernels="tinyfuse", **{**drawn, **options})
            if not options.get("feed_rows") or plan.source.window or len(plan.source.inputs) == 1:
                plans.append(plan)
    return plans


def drawn_options(rng: random.Random) -> dict[str, Any]:
    """Random --fusion, --optimize and --weights; the last one on half of all networks."""
    drawn = {
        "fusion": rng.choice(("none", "basic", "rows", "rows")),
        "optimize": rng.choice(("speed", "speed", "balanced", "ram")),
    }
    return drawn if rng.random() < 0.5 else {**drawn, "weights": rng.choice(("auto", "auto", "auto", "packed"))}


def assert_interpreter_agrees(network: OddNetwork, sort: str, runs: int, name: str) -> None:
    """Checks our references against the interpreter; operators that call libm must stay within their bounds."""
    graph = read_tflite("model.tflite", network.data)
    oracle = InterpreterOracle("litert" if sort == "uint8" else "tflm", network.data, graph)
    inputs = input_set(graph, runs, 0)
    if has_bounds(graph):
        assert check_operators(graph, oracle, inputs).broken == (), name
        return
    for run, (theirs, ours) in enumerate(
        zip(oracle.run_all(inputs), ReferenceOracle(graph).run_all(inputs), strict=True)
    ):
        for a, b in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(b, a, err_msg=f"{name}, run {run}\n{graph}")


def is_run(network: OddNetwork) -> bool:
    """Tells whether TFLM runs a network, which tinyfuse may refuse."""
    zeros = [np.zeros(shape, dtype) for shape, dtype in network.inputs]
    try:
        run_interpreter("tflm", network.data, [[zeros]], 60, 1 << 22)
    except InterpreterFailed:
        return False
    return True
