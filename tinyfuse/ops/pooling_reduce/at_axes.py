"""AT_AXES: a reduction along axes that a run computes. Only rewrite/computed_operands.py makes it. It is a kind of its
own, so that the axes of all other reductions are known to be constants."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.axes import AlongAxes, AtAxes, Choice
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.pooling_reduce.arg_max import ArgMaxFamily, ArgMinFamily
from tinyfuse.ops.pooling_reduce.cumsum import CumsumFamily
from tinyfuse.ops.pooling_reduce.reduce import MeanFamily, ReduceAllFamily, ReduceMaxFamily, ReduceMinFamily, SumFamily
from tinyfuse.ops.pooling_reduce.reverse import ReverseV2Family

#: kind -> family
ALONG_AXES: dict[str, AlongAxes] = {
    family.kind: family
    for family in (
        ArgMaxFamily(), ArgMinFamily(), CumsumFamily(), MeanFamily(), ReduceAllFamily(), ReduceMaxFamily(),
        ReduceMinFamily(), ReverseV2Family(), SumFamily(),
    )
}  # fmt: skip


def choices_of(op: Op) -> tuple[Choice, ...]:
    """Return the operators that an AT_AXES may become in a run."""
    along = _along(op)
    return ALONG_AXES[along.kind].axes.choices(along)


def _along(op: Op) -> Op:
    a = op.attributes_as(AtAxes)
    return replace(op, kind=a.kind, attributes=a.attributes)


class AtAxesFamily(OpFamily):
    """AT_AXES: a reduction over axes that a run computes; inputs and output are those of the reduction. Axes whose
    result does not have as many elements as the output end the run with an error; TFLM then computes only a part of the
    output, writes beyond it, or stops."""

    kind = "AT_AXES"
    summary = "an operator along axes that are computed at run time"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        along = _along(op)
        return ALONG_AXES[along.kind].reference(along, *inputs)
