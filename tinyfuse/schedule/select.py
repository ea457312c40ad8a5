"""Which kernel computes an operator: the first of its family's list that may and that the user wants."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.base import Context, Kernel


def candidates(op: Op, context: Context) -> list[Kernel]:
    """Kernels that compute `op` exactly on the target, best first.

    "tinyfuse" leaves CMSIS-NN out; "cmsis-nn" takes it wherever it has a kernel; "auto" prefers
    what the target's file says is faster for the family (targets/*.toml, [kernels]).
    """
    family = FAMILIES[op.kind]
    kernels = [k for k in family.kernels_for(op) if k.name not in context.lacks and k.accepts(op, context)]
    if context.library == "tinyfuse":
        return [k for k in kernels if k.library == "tinyfuse"]
    first = "cmsis-nn"
    if context.library == "auto":
        first = "cmsis-nn" if op.kind in context.target.prefer_cmsis_nn else "tinyfuse"
    return sorted(kernels, key=lambda k: k.library != first)


def whole_kernel(op: Op, context: Context) -> tuple[Kernel, bool]:
    """The kernel for an operator that stands alone, and whether it runs in a loop over rows."""
    family = FAMILIES[op.kind]
    streamable = all(
        family.row_window(op, i) is not None
        for i, tensor in enumerate(op.inputs)
        if tensor is not None and not tensor.is_constant
    )
    for kernel in candidates(op, context):
        if kernel.whole:
            return kernel, False
        if kernel.by_row and streamable:
            return kernel, True
    raise AssertionError(f"no kernel for {op}; the family's rules should have refused it")


def row_kernel(op: Op, context: Context, rings: bool) -> Kernel | None:
    """The kernel that computes rows of `op` inside a group; `rings`: an input is a ring of rows."""
    for kernel in candidates(op, context):
        if kernel.by_row and (kernel.takes_rings(op) or not rings):
            return kernel
    return None
