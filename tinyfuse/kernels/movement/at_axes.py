"""Kernels of AT_AXES: a call for each of the axes that the run may choose, and a branch among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import constant_operands, with_constant_input
from tinyfuse.kernels.core.statements import Branch, Call, Let, Statement
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.core.axes import AtAxes
from tinyfuse.ops.pooling_reduce.at_axes import ALONG_AXES, choices_of


class AtAxesWhole(WholeWrapper):
    """Kernel of AT_AXES for operators of `kind`: at run time, it calls `kernel` for the axes that the model
    computed."""

    def __init__(self, kind: str, kernel: Kernel):
        super().__init__(kernel, headers=(*kernel.headers, "tinyfuse_axes.h"))
        self.kind = kind

    def inner(self, op: Op) -> Op:
        """Operator for the first choice; the others have the same code."""
        return choices_of(op)[0].op

    def accepts(self, op: Op, context: Context) -> bool:
        every = (self.kernel.accepts(choice.op, context) for choice in choices_of(op))
        return op.attributes_as(AtAxes).kind == self.kind and all(every)

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of the choice with the highest total."""
        return max((self.kernel.counts(choice.op, by_row) for choice in choices_of(op)), key=lambda c: sum(c.values()))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        choices = choices_of(op)
        found = [Constant("choices", np.array([choice.dimensions for choice in choices], np.int32), "int32_t")]
        found += constant_operands(op, {0: "data"})
        for i, choice in enumerate(choices):
            found += [replace(c, name=_choice_name(i, c.name)) for c in self.kernel.constants(choice.op, context)]
        return tuple(found)

    def scratch(self, op: Op, context: Context) -> int:
        return max(self.kernel.scratch(choice.op, context) for choice in choices_of(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        choices, axes = choices_of(op), op.operand(1)
        fields = {
            "rank": len(op.input.shape), "axes": axes.elements, "choices": len(choices),
            "dimensions": sum(1 << d for d, size in enumerate(op.input.shape) if size > 1),
        }  # fmt: skip
        inner = with_constant_input(op, site)
        chosen = f"tinyfuse_chosen(&axes, {site.input(1).pointer}, {site.constant('choices')})"
        return (
            Let("tinyfuse_axes", "axes", fields),
            Let("int32_t", "chosen", chosen),
            Call("tinyfuse_none_chosen", ("chosen",), status="0"),
            *self._branches(op, inner, context, 0),
        )

    def _branches(self, op: Op, site: CallSite, context: Context, first: int) -> tuple[Statement, ...]:
        """Statements that branch to the call of the choice, from choice `first` on."""
        choices = choices_of(op)
        named = replace(site, constant=lambda name: site.constant(_choice_name(first, name)))
        call = self.kernel.call(choices[first].op, named, context)
        if first == len(choices) - 1:
            return call
        return (Branch(f"(chosen == {first})", call, self._branches(op, site, context, first + 1)),)


def _choice_name(number: int, name: str) -> str:
    """Name of a choice's constant."""
    return f"choice{number}_{name}"


def at_axes_kernels(kernels: Mapping[str, Iterable[Kernel]]) -> tuple[Kernel, ...]:
    """Kernels of AT_AXES for each kind of reduction that it may contain. `kernels`: kind -> the reduction's kernels."""
    return tuple(AtAxesWhole(kind, kernel) for kind in ALONG_AXES for kernel in kernels[kind] if kernel.whole)
