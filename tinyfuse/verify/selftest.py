"""Inputs and outputs of the run that `gen --selftest` embeds; of a stream for a sliding window."""

from __future__ import annotations

from tinyfuse.emit.selftest import SelfTest, selftest
from tinyfuse.errors import UsageError
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.windows import WindowOracle

_SEED = 0
#: steps with a result in a sliding window's stream: enough that its rings wrap around
_RESULTS = 4


def has_selftest(plan: Plan) -> bool:
    """Tells whether it is known which of a module's first runs have a result."""
    return plan.source.window is not None or not plan.awaits


def embedded_selftest(plan: Plan) -> SelfTest:
    """Self-test with a random input (that of `verify --seed 0 --runs 1`) and our references' outputs for it.

    The references are TensorFlow Lite Micro's arithmetic. For a sliding window it has a stream, and the outputs of the
    whole model for each window. UsageError for a model whose first run may have no result.
    """
    window = plan.source.window
    if window is not None:
        steps = input_set(plan.source, window.steps_to_fill - 1 + _RESULTS, _SEED)
        # other inputs than the frames stay as in the first step
        steps = [[*steps[0][: window.input], step[window.input], *steps[0][window.input + 1 :]] for step in steps]
        (outputs,) = WindowOracle(window, ReferenceOracle(window.whole)).run_streams([steps])
        return selftest(plan, steps, outputs[-_RESULTS:])
    if not has_selftest(plan):
        raise UsageError("--selftest: the model gives no result in its first run, as it awaits more inputs")
    (inputs,) = input_set(plan.source, 1, _SEED)
    return selftest(plan, [inputs], ReferenceOracle(plan.source).run_all([inputs]))
