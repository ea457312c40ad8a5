"""Our kernels of MEAN, SUM, REDUCE_MAX and REDUCE_MIN (runtime_c/tinyfuse_reduce.h)."""

from __future__ import annotations

from itertools import groupby
from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.ops.reduce_scaling import reduced_axes, sum_scaling


class ReduceSum(Kernel):
    """MEAN and SUM over any dimensions, whole."""

    name = "tinyfuse_reduce_sum_s8"
    headers = ("tinyfuse_reduce.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, shift = sum_scaling(op)
        count = prod(op.input.shape[axis] for axis in reduced_axes(op))
        scaling = {
            "offset": count * op.input.zero_point, "multiplier": multiplier, "shift": shift,
            "out_zero_point": op.output.zero_point,
        }  # fmt: skip
        pointers = (site.input(0).pointer, site.output.pointer)
        return (
            _reduction(op),
            Let("tinyfuse_sum_scaling", "scaling", scaling),
            Call(self.name, ("&p", "&scaling", *pointers)),
        )


class ReduceExtreme(Kernel):
    """REDUCE_MAX and REDUCE_MIN over any dimensions, whole."""

    name = "tinyfuse_reduce_extreme_s8"
    headers = ("tinyfuse_reduce.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        flip = -1 if op.kind == "REDUCE_MIN" else 0
        pointers = (site.input(0).pointer, site.output.pointer)
        return _reduction(op), Call(self.name, ("&p", flip, *pointers))


def _reduction(op: Op) -> Let:
    kept, kept_stride = _blocks(op, reduced=False)
    reduced, reduced_stride = _blocks(op, reduced=True)
    fields = {
        "kept": _pair(kept), "kept_stride": _pair(kept_stride),
        "reduced": _pair(reduced), "reduced_stride": _pair(reduced_stride),
    }  # fmt: skip
    return Let("tinyfuse_reduction", "p", fields)


def _blocks(op: Op, reduced: bool) -> tuple[list[int], list[int]]:
    """(dimensions, strides) of the runs of neighbouring dimensions that are reduced, or that are kept:
    two, outer first, filled up with ones. Rank 4 has no more."""
    shape, axes = op.input.shape, reduced_axes(op)
    dims, strides = [], []
    for is_reduced, run in groupby(range(len(shape)), key=lambda axis: axis in axes):
        dimensions = list(run)
        if is_reduced == reduced:
            dims.append(prod(shape[axis] for axis in dimensions))
            strides.append(prod(shape[dimensions[-1] + 1 :]))
    missing = 2 - len(dims)
    return [1] * missing + dims, [0] * missing + strides


def _pair(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
