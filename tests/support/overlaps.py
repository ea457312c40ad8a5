"""Distances at which plans let a kernel's output overlap its inputs."""

from __future__ import annotations

from collections.abc import Collection

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Stage, tensor_align
from tinyfuse.plan.rows import Stream
from tinyfuse.schedule.groups.overlaps import overlap_distance


def covered_inputs(op: Op, kernel: Kernel, by_row: bool) -> Collection[int]:
    """Inputs whose bytes the output may overwrite while a call reads them, for a whole tensor or a row."""
    if not by_row:
        return kernel.access_orders(op)
    return kernel.row_access_orders(op) if kernel.rows_a_call == 1 else ()


def least_distance(op: Op, kernel: Kernel, index: int, by_row: bool) -> int:
    """Aligned bytes between output and input, for a whole call or a loop of calls by row."""
    family = FAMILIES[op.kind]
    windows = [
        family.row_window(op, i) if by_row and t is not None and not t.is_constant else None
        for i, t in enumerate(op.inputs)
    ]
    stages = (Stage(op, kernel, by_row, tuple(windows), (), 0, 0),)
    stream = Stream(stages, frozenset({op.output})) if by_row else None
    align = tensor_align(op.output)
    return -(-overlap_distance(stages, stream, op.inputs[index], op.output) // align) * align
