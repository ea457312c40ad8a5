"""Kernels of MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_ALL (runtime_c/tinyfuse_reduce.h,
runtime_c/tinyfuse_reduce_wide.h)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import scale_bits
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.rows import input_pointer
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement, c_loops
from tinyfuse.kernels.counts.common import Counts, count_calls, element_counts
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.pooling_reduce.reduce_scaling import Run, mean_factor, reduced_count, reduction_runs, sum_scaling


class _Reduction(Kernel):
    """Base of reductions over any dimensions; kernels by rows reduce within a row. The C loops over two runs of
    dimensions that are kept; a third, outer one becomes a loop around the call."""

    by_row, rings = True, True

    def __init__(self, name: str, dtype: str):
        self.name, self.dtype = f"tinyfuse_reduce_{name}_{SUFFIX[dtype]}", dtype
        self.headers = ("tinyfuse_reduce.h" if dtype == "int8" else "tinyfuse_reduce_wide.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        op = op if site.row is None else _one_row_op(op)
        runs = reduction_runs(op)
        source, result = input_pointer(site, 0), site.output.pointer
        inner = runs.kept[-2:]
        if len(runs.kept) <= len(inner):
            return self.reduction(op, runs.reduced, inner, (source, result))
        (outer,) = runs.kept[:-2]
        pointers = f"({source} + outer * {outer.stride})", f"({result} + outer * {op.output.elements // outer.size})"
        return (Loop("outer", outer.size, self.reduction(op, runs.reduced, inner, pointers)),)

    def reduction(
        self, op: Op, reduced: Sequence[Run], kept: Sequence[Run], pointers: tuple[str, str]
    ) -> tuple[Statement, ...]:
        """Statements that reduce these runs. `pointers`: first element read, and first element written."""
        fields = {
            "kept": c_loops([run.size for run in kept], 2, 1),
            "kept_stride": c_loops([run.stride for run in kept], 2, 0),
            "reduced": c_loops([run.size for run in reduced], 2, 1),
            "reduced_stride": c_loops([run.stride for run in reduced], 2, 0),
        }  # fmt: skip
        return Let("tinyfuse_reduction", "p", fields), *self.calls(op, pointers)

    @abstractmethod
    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        """Statements after the definition of the reduction `p`."""


class _ReduceSum(_Reduction):
    """Base of sums of int8 and int16."""

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of the loops. "inner_loops": starts of the loop over the innermost reduced dimensions; "four_...":
        groups of four adjacent sums, which Helium computes together; "single_...": the other sums."""
        calls = count_calls(op, by_row)
        runs = reduction_runs(_one_row_op(op) if by_row else op)
        outer, inner = [run.size for run in runs.reduced[:-1]], runs.reduced[-1].size if runs.reduced else 1
        is_adjacent = bool(runs.kept) and runs.kept[-1].stride == 1
        last = runs.kept[-1].size if runs.kept else 1
        fours = last // 4 if is_adjacent else 0
        rows, loops = calls * prod(run.size for run in runs.kept[:-1]), prod(outer)
        singles = last - 4 * fours
        return {
            **element_counts(op, by_row),
            "fours": rows * fours,
            "four_loops": rows * fours * loops,
            "four_inputs": rows * fours * loops * inner,
            "singles": rows * singles,
            "single_loops": rows * singles * loops,
            "single_inputs": rows * singles * loops * inner,
            "inner_loops": rows * last * loops,
        }


class ReduceSum(_ReduceSum):
    """MEAN and SUM of integers."""

    def __init__(self, dtype: str):
        super().__init__("sum", dtype)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and rounds_by(op, TWO_ROUNDINGS)

    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        multiplier, shift = sum_scaling(op)
        scaling = {
            "offset": reduced_count(op) * op.input.zero_point, "multiplier": multiplier, "shift": shift,
            "out_zero_point": op.output.zero_point,
        }  # fmt: skip
        return (
            Let("tinyfuse_sum_scaling", "scaling", scaling),
            Call(self.name, ("&p", "&scaling", *pointers)),
        )


class ReduceMeanHalfEven(_ReduceSum):
    """MEAN of int8 that is requantized in float32 and rounded half to even (FLOAT_HALF_EVEN), as in onnxruntime."""

    def __init__(self) -> None:
        super().__init__("mean_half_even", "int8")
        self.headers = ("tinyfuse_mean_half_even.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and rounds_by(op, FLOAT_HALF_EVEN)

    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        scaling = {
            "offset": reduced_count(op) * op.input.zero_point, "scale": scale_bits(mean_factor(op)),
            "out_zero_point": op.output.zero_point,
        }  # fmt: skip
        return (
            Let("tinyfuse_mean_scaling", "scaling", scaling),
            Call(self.name, ("&p", "&scaling", *pointers)),
        )


class ReduceFloatSum(_Reduction):
    """MEAN and SUM of float32."""

    def __init__(self) -> None:
        super().__init__("sum", "float32")

    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        count = reduced_count(op) if op.kind == "MEAN" else 1
        return (Call(self.name, ("&p", count, *pointers)),)


class ReduceExtreme(_Reduction):
    """REDUCE_MAX and REDUCE_MIN of int8."""

    def __init__(self) -> None:
        super().__init__("extreme", "int8")

    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        flip = -1 if op.kind == "REDUCE_MIN" else 0
        return (Call(self.name, ("&p", flip, *pointers)),)


class Reduce(_Reduction):
    """Kernel of a reduction whose C function takes no parameters except the shape."""

    def calls(self, op: Op, pointers: tuple[str, str]) -> tuple[Statement, ...]:
        return (Call(self.name, ("&p", *pointers)),)


def _one_row_op(op: Op) -> Op:
    """Reduction of one row of an image."""
    source, result = (replace(tensor, shape=(1, 1, *tensor.shape[2:])) for tensor in (op.input, op.output))
    return replace(op, inputs=(source, *op.inputs[1:]), outputs=(result,))
