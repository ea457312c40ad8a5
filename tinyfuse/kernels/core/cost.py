"""What a kernel's calls cost: the part of a kernel that predictions of instructions and code ask (tinyfuse/cost/)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, element_counts

if TYPE_CHECKING:
    from tinyfuse.kernels.core.kernel import Context, Kernel


class KernelCosts:
    """Which entries of the cost tables a kernel has, and the counts that these are factors of.

    name           the kernel's name in reports, and of its entry unless `costs_as` is given
    form_of        the kernel that does the same work in another form, so that predictions of both err alike
    costs_as       the kernel whose entry this one has, because it does the same work
    costs_with     an entry whose costs, for the same counts, are added
    unpredictable  why shapes don't tell the costs, for instance because a run decides what is computed; empty
                   where they do
    """

    name: str
    form_of: str | None = None
    costs_as: str | None = None
    costs_with: str | None = None
    unpredictable: str = ""

    def work(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op, float], ...]:
        """Kernels that the calls run beside the work in `counts`: each with its operator, and how many times an
        inference runs it."""
        return ()

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        """Name of the way that the C function takes, which ends the name of the cost entry; "" where all calls take
        the same way."""
        return ""

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        """Name of the code that a call has, which ends the name of the entry of its bytes (tinyfuse/cost/code.py)."""
        return self.path(op, by_row, context)

    def own_code(self, op: Op) -> bool:
        """Whether a call for the operator has code of its own, and shares none with other calls."""
        return False

    def copy_of_code(self, op: Op, context: Context) -> str:
        """Name of the code that a call for the operator shares with others. Compilers make a copy of the C function for
        each value of some constant arguments. For a call with code of its own: the code that it calls."""
        return self.name

    def calls_too(self, op: Op) -> tuple[str, ...]:
        """Names of shared code that the copy of code for the operator calls."""
        return ()

    def windows_by(self, op: Op, context: Context) -> str | None:
        """Name in `calls_too` of the code that gathers the operator's windows; None where the call's own code does.
        Compilers know that code's arguments where a single call is all that calls it."""
        return None

    def single_calls_as(self, op: Op) -> str | None:
        """Entry that tells the cost of a call that is the only one in its module; None for the usual entry."""
        return None if self.own_code(op) else self.costs_with

    @property
    def computes_floats(self) -> bool:
        """Whether the kernel computes with float32, by instructions or, without an FPU, by a library. Its C function
        has the dtype's suffix, which kernels that only move floats lack."""
        return "_f32" in self.name

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of the C's loops in an inference, of one call or (`by_row`) of one call for each output row
        (tinyfuse/kernels/counts/common.py). Callers must not change them."""
        return element_counts(op, by_row)

    def slowest_counts(self, op: Op, by_row: bool) -> Counts:
        """`counts` for the input values that take the most instructions. Callers must not change them."""
        return self.counts(op, by_row)

    def copied(self, op: Op) -> Counts:
        """Part of `counts` that a call saves when its output lies over the first of the inputs `in_place`, because it
        writes changed elements alone. Callers must not change it."""
        return {}

    def code_counts(self, op: Op, by_row: bool) -> Counts:
        """Counts that the bytes of one call's code depend on (tinyfuse/cost/code.py). Callers must not change them."""
        return {"calls": 1}
