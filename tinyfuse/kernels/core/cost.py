"""Interface through which predictions ask for the instructions and code size of a kernel (tinyfuse/cost/)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.counts.common import Counts, element_counts


class KernelCosts:
    """Names a kernel's entries in the cost tables, and computes the counts that the entries' factors multiply.

    name           kernel's name in reports, and of its entry unless `costs_as` is given.
    form_of        kernel that does the same work in another form, so that predictions of both err alike.
    costs_as       kernel whose entry this one shares, because it does the same work.
    costs_with     another entry, whose factors for the same counts are added.
    unpredictable  reason why shapes do not determine the costs, for instance because values decide what is computed; or
                   empty.
    """

    name: str
    form_of: str | None = None
    costs_as: str | None = None
    costs_with: str | None = None
    unpredictable: str = ""

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        """Name of the path that the C function takes, which ends the name of the cost entry; empty if all calls take
        the same path."""
        return ""

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        """Name of the machine code that a call runs, which ends the name of its entry in the table of code sizes
        (tinyfuse/cost/code.py)."""
        return self.path(op, by_row, context)

    def own_code(self, op: Op) -> bool:
        """Tells whether a call for the operator is compiled by itself and shares no code with other calls."""
        return False

    def copy_of_code(self, op: Op, context: Context) -> str:
        """Name of the code that a call for the operator shares with other calls. Compilers clone a C function for some
        values of its constant arguments. If the call has its own code: name of the code that it calls, or empty."""
        return self.name

    def calls_too(self, op: Op) -> tuple[str, ...]:
        """Names of shared code that the operator's copy of the code calls."""
        return ()

    def windows_by(self, op: Op, context: Context) -> str | None:
        """Name in `calls_too` of the code that gathers the operator's windows; None if the call's own code does.
        Compilers specialize that code if only one call in the module uses it."""
        return None

    def single_calls_as(self, op: Op) -> str | None:
        """Name of the cost entry for a call that is the only one in its module; None for the usual entry."""
        return None if self.own_code(op) else self.costs_with

    @property
    def computes_floats(self) -> bool:
        """True if the kernel computes with float32, in an FPU or in a library. The C function's name then has the
        dtype's suffix, which kernels that only move floats lack."""
        return "_f32" in self.name

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Iterations of the C's loops in an inference, of a single call or (`by_row`) of one call for each output row
        (tinyfuse/kernels/counts/common.py). Callers must not change them."""
        return element_counts(op, by_row)

    def slowest_counts(self, op: Op, by_row: bool) -> Counts:
        """`counts` for the input values that take the most instructions. Callers must not change them."""
        return self.counts(op, by_row)

    def copied(self, op: Op) -> Counts:
        """Counts that a call saves if its output overwrites the first of the inputs `in_place`, because it then writes
        only changed elements. Callers must not change them."""
        return {}
