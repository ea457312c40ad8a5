"""Every kernel that takes an operator can be asked all that plans ask of it: each case of each kind, with each fused
activation, with scales whose clamp leaves one value, in other ranks, on each core, for each objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import layer_cases
import numpy as np
import pytest
from cases import NAMED
from cases.common import ACTIVATIONS, broken_rules
from contexts import context_of
from conv_cases import make_op

from tinyfuse.cost.code import calls_in
from tinyfuse.ir import Op, Quant
from tinyfuse.kernels.registry import KERNELS, kernels_for
from tinyfuse.plan.check.scratch import scratch_needed
from tinyfuse.schedule.kernel_choice.select import kernel_for
from tinyfuse.targets import load_target

#: a target of each set of instructions that kernels tell apart
_TARGETS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m4+nofp", "cortex-m33+nodsp", "cortex-m55", "generic32")
_CHOICES = ({}, {"optimize": "speed"}, {"optimize": "ram"}, {"weights": "unpacked"}, {"weights": "compressed"})

#: RELU6's 6 is the zero point here, and so is its 0
_COARSE = 13.0


def with_activations(op: Op) -> Iterator[Op]:
    """The operator with each of its possible activations, and with an output scale that leaves a single value."""
    yield op
    if not is_dataclass(op.attributes) or "activation" not in {field.name for field in fields(op.attributes)}:
        return
    for activation in ACTIVATIONS:
        made = replace(op, attributes=replace(op.attributes, activation=activation))
        yield made
        quant = op.output.quant
        if quant is not None and len(op.outputs) == 1:
            yield replace(made, outputs=(replace(op.output, quant=Quant((_COARSE,), quant.zero_point)),))


def in_other_ranks(op: Op) -> Iterator[Op]:
    """A fully connected layer whose output has one or four dimensions."""
    if op.kind != "FULLY_CONNECTED":
        return
    rows = op.output.elements // op.output.shape[-1]
    shapes = [(1, rows, 1, op.output.shape[-1])] + ([op.output.shape[-1:]] if rows == 1 else [])
    for shape in shapes:
        yield replace(op, outputs=(replace(op.output, shape=shape),))


def every_case() -> dict[str, list[Op]]:
    """Cases of all operators, by kind."""
    rng = np.random.default_rng(3)
    found: dict[str, list[Op]] = {}
    for cases in (NAMED, layer_cases.NAMED):
        for kind, ops in cases.items():
            found.setdefault(kind, []).extend(ops.values())
    for shape in layer_cases.SHAPES.values():
        found[shape.kind].append(make_op(shape, rng))
    return {
        kind: [made for op in ops for each in (op, *in_other_ranks(op)) for made in with_activations(each)]
        for kind, ops in found.items()
    }


_CASES = every_case()


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(_CASES))
def test_kernels_answer_all_that_plans_ask(kind: str) -> None:
    contexts = [context_of(load_target(target), **choice) for target in _TARGETS for choice in _CHOICES]
    for op in (op for op in _CASES[kind] if not broken_rules(op)):
        for context in contexts:
            assert kernel_for(op, context, None) or kind not in KERNELS, f"{op} {op.attributes} has no kernel"
            for kernel in kernels_for(op):
                if kernel.library == "tinyfuse" and kernel.accepts(op, context):
                    streams = kernel.by_row and all(tensor.is_image for tensor in op.outputs)
                    for by_row in [False] * kernel.whole + [True] * streams:
                        kernel.counts(op, by_row)
                        kernel.constants(op, context), calls_in(op, kernel, by_row, context)
                        needed = scratch_needed(op, kernel, by_row, context)
                        assert needed <= kernel.scratch(op, context), f"{kernel.name} of {op} {op.attributes}"
