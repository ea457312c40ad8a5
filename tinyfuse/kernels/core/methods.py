"""Makes methods of kernels from functions, so that a kernel declares which function answers a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts

_Answer = TypeVar("_Answer")
_More = ParamSpec("_More")


def of_operator(
    function: Callable[Concatenate[Op, _More], _Answer], *more: _More.args, **named: _More.kwargs
) -> Callable[..., _Answer]:
    """Method that answers `function(op, *more, **named)`, whatever else the kernel is asked."""
    return lambda kernel, op, *others: function(op, *more, **named)


def counted_by(function: Callable[[Op, bool], Counts]) -> Callable[..., Counts]:
    """Method `counts` that answers `function(op, by_row)`."""
    return lambda kernel, op, by_row: function(op, by_row)
