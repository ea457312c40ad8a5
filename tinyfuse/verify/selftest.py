"""The run that `gen --selftest` embeds."""

from __future__ import annotations

from tinyfuse.emit.selftest import SelfTest, selftest
from tinyfuse.errors import UsageError
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

_SEED = 0


def embedded_selftest(plan: Plan) -> SelfTest:
    """A random input (`verify --seed 0 --runs 1` takes the same) and what our references, which are
    TensorFlow Lite Micro's arithmetic, compute for it. UsageError for a model whose first run may have no result."""
    if plan.awaits:
        raise UsageError("--selftest: the model gives no result in its first run, as it awaits more inputs")
    (inputs,) = input_set(plan.source, 1, _SEED)
    (outputs,) = ReferenceOracle(plan.source).run_all([inputs])
    return selftest(plan, inputs, outputs)
