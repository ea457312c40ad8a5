"""The run that `gen --selftest` embeds."""

from __future__ import annotations

from tinyfuse.emit.selftest import SelfTest, selftest
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

_SEED = 0


def embedded_selftest(plan: Plan) -> SelfTest:
    """A random input (`verify --seed 0 --runs 1` takes the same) and what our references, which are
    TensorFlow Lite Micro's arithmetic, compute for it."""
    (inputs,) = input_set(plan.source, 1, _SEED)
    (outputs,) = ReferenceOracle(plan.source).run_all([inputs])
    return selftest(plan, inputs, outputs)
