"""Makes methods of kernels from functions, so that a kernel declares which function answers a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from tinyfuse.ir import Op

_Answer = TypeVar("_Answer")
_More = ParamSpec("_More")


def of_operator(
    function: Callable[Concatenate[Op, _More], _Answer], *more: _More.args, **named: _More.kwargs
) -> Callable[..., _Answer]:
    """Method that answers `function(op, *more, **named)`, whatever else the kernel is asked."""
    return lambda kernel, op, *others: function(op, *more, **named)


def of_calls(
    function: Callable[Concatenate[Op, bool, _More], _Answer], *more: _More.args, **named: _More.kwargs
) -> Callable[..., _Answer]:
    """Method that answers `function(op, by_row, *more, **named)`, for questions about calls by rows or whole ones."""
    return lambda kernel, op, by_row, *others: function(op, by_row, *more, **named)


def always(answer: _Answer) -> Callable[..., _Answer]:
    """Method that gives this answer to every question."""
    return lambda kernel, *asked: answer
