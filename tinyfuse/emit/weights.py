"""Constant arrays: one C name a distinct content, and their text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.identifiers import comment, identifier
from tinyfuse.ops.base import Constant
from tinyfuse.plan import Plan, Stage, constant_key


@dataclass(frozen=True)
class WeightArray:
    """`symbol[length]` of C type `ctype`; `rows` are the lines of its initializer."""

    symbol: str
    ctype: str
    length: int
    align: int
    bytes: int
    comment: str
    rows: tuple[str, ...]


def name_constants(plan: Plan) -> dict[tuple, str]:
    """constant_key -> symbol, named after the first stage that uses the content."""
    names: dict[tuple, str] = {}
    for group, stage, constant in _all_constants(plan):
        number = group.stages.index(stage)
        symbol = f"{plan.options.name}_g{group.index}s{number}_{identifier(constant.name)}"
        names.setdefault(constant_key(constant), symbol)
    return names


def weight_arrays(plan: Plan, names: dict[tuple, str]) -> list[WeightArray]:
    """Every distinct array, in the order of use."""
    arrays: dict[tuple, WeightArray] = {}
    for _, stage, constant in _all_constants(plan):
        key = constant_key(constant)
        if key not in arrays:
            data = np.ascontiguousarray(constant.data).reshape(-1)
            arrays[key] = WeightArray(
                symbol=names[key],
                ctype=constant.ctype,
                length=data.size,
                align=constant.align,
                bytes=data.nbytes,
                comment=comment(f"{constant.name} of {stage.op}"),
                rows=tuple(_rows(data)),
            )
    return list(arrays.values())


def _all_constants(plan: Plan):
    for group in plan.groups:
        for stage in group.stages:
            for constant in stage.constants:
                yield group, stage, constant


def _rows(data: np.ndarray) -> list[str]:
    if data.dtype.names:
        return ["{" + ", ".join(scalar(v) for v in record) + "}" for record in data.tolist()]
    per_row = 16 if data.itemsize == 1 else 8
    texts = [scalar(v) for v in data.tolist()]
    return [", ".join(texts[i : i + per_row]) for i in range(0, len(texts), per_row)]


def scalar(value: int | float) -> str:
    """A C literal. INT32_MIN has none, so it is written as a sum; floats are float32, exact."""
    if isinstance(value, float):
        text = repr(float(f"{value:.9g}"))
        return f"{text}f"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return str(int(value))
