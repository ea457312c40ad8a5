"""Our kernel of MEAN (runtime_c/tinyfuse_mean.h)."""

from __future__ import annotations

from itertools import groupby
from math import prod

from tinyfuse.ir import Op
from tinyfuse.ops.base import Call, Context, Kernel, Let, Site, Statement
from tinyfuse.ops.mean_scaling import mean_scaling, reduced_axes


class Mean(Kernel):
    """Any dimensions, whole."""

    name = "tinyfuse_mean_s8"
    headers = ("tinyfuse_mean.h",)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        kept, kept_stride = _blocks(op, reduced=False)
        reduced, reduced_stride = _blocks(op, reduced=True)
        count = prod(op.input.shape[axis] for axis in reduced_axes(op))
        multiplier, shift = mean_scaling(op)
        fields = {
            "kept": _pair(kept), "kept_stride": _pair(kept_stride),
            "reduced": _pair(reduced), "reduced_stride": _pair(reduced_stride),
            "offset": count * op.input.zero_point, "multiplier": multiplier, "shift": shift,
            "out_zero_point": op.output.zero_point,
        }  # fmt: skip
        pointers = (site.inputs[0].pointer, site.outputs[0].pointer)
        return Let("tinyfuse_mean", "p", fields), Call(self.name, ("&p", *pointers))


def _blocks(op: Op, reduced: bool) -> tuple[list[int], list[int]]:
    """(extents, strides) of the runs of neighbouring dimensions that are reduced, or that are kept:
    two, outer first, filled up with ones. Rank 4 has no more."""
    shape, axes = op.input.shape, reduced_axes(op)
    extents, strides = [], []
    for is_reduced, run in groupby(range(len(shape)), key=lambda axis: axis in axes):
        dimensions = list(run)
        if is_reduced == reduced:
            extents.append(prod(shape[axis] for axis in dimensions))
            strides.append(prod(shape[dimensions[-1] + 1 :]))
    missing = 2 - len(extents)
    return [1] * missing + extents, [0] * missing + strides


def _pair(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
