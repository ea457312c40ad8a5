"""Constant arrays: one C name per distinct content, and the text of their initializers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tinyfuse.emit.identifiers import comment, identifier
from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.kernels.core.kernel import Constant
from tinyfuse.plan import ConstantKey, Plan, constant_key


@dataclass(frozen=True)
class WeightArray:
    """Array of C type `ctype` with the elements of `data`, which has one dimension and is contiguous. `bank` is its
    memory bank; None if the linker places it with other constants."""

    symbol: str
    ctype: str
    align: int
    comment: str
    data: Array
    bank: str | None = None

    @property
    def length(self) -> int:
        return self.data.size

    @property
    def bytes(self) -> int:
        return self.data.nbytes

    @property
    def rows(self) -> list[str]:
        """Lines of its initializer."""
        return _rows(self.data)

    @property
    def is_finite(self) -> bool:
        """Tells whether all elements, or all fields of structs, are finite."""
        fields = [self.data[name] for name in self.data.dtype.names or ()] or [self.data]
        return all(bool(np.isfinite(field).all()) for field in fields)


def name_constants(plan: Plan) -> dict[ConstantKey, str]:
    """Symbols of constants by constant_key, named after the first stage that uses the content."""
    names: dict[ConstantKey, str] = {}
    for symbol, _, constant in _all_constants(plan):
        names.setdefault(constant_key(constant), f"{plan.options.name}_{symbol}")
    return names


def weight_arrays(plan: Plan, names: dict[ConstantKey, str]) -> list[WeightArray]:
    """Distinct arrays in the order of use."""
    arrays: dict[ConstantKey, WeightArray] = {}
    for _, owner, constant in _all_constants(plan):
        key = constant_key(constant)
        if key not in arrays:
            arrays[key] = WeightArray(
                symbol=names[key],
                ctype=constant.ctype,
                align=constant.align,
                comment=comment(f"{constant.name} of {owner}"),
                data=np.ascontiguousarray(constant.data).reshape(-1),
                bank=plan.memory.weights.get(key) if plan.memory else None,
            )
    return list(arrays.values())


def _all_constants(plan: Plan) -> Iterator[tuple[str, Op | Tensor, Constant]]:
    """Yields each constant with its name and the operator or state that it belongs to."""
    of_file = [(f"f{number}", subplan) for number, subplan in plan.subplans.items()]
    for prefix, each in [*of_file, ("", plan)]:
        for group in each.groups:
            for number, stage in enumerate(group.stages):
                for constant in stage.constants:
                    yield f"{prefix}g{group.index}s{number}_{identifier(constant.name)}", stage.op, constant
    for number, tensor in enumerate(plan.states):
        if tensor in plan.initial_values:
            yield f"s{number}_initial", tensor, plan.initial_values[tensor]


def _rows(data: np.ndarray) -> list[str]:
    if data.dtype.names:
        return ["{" + ", ".join(scalar(v) for v in record) + "}" for record in data.tolist()]
    if data.itemsize == 1:  # there may be megabytes, so each byte's text is looked up instead of made again
        texts = [scalar(v) for v in np.arange(256, dtype=np.uint8).view(data.dtype).tolist()]
        stored = data.tobytes()
        return [", ".join([texts[b] for b in stored[i : i + 16]]) for i in range(0, len(stored), 16)]
    return [", ".join(map(scalar, data[i : i + 8].tolist())) for i in range(0, data.size, 8)]


def scalar(value: int | float) -> str:
    """C literal of a number. Floats are exact float32; infinities and NaN are math.h's macros. INT32_MIN and INT64_MIN
    have no literals, so they are sums."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    if isinstance(value, float):
        text = repr(float(f"{value:.9g}"))
        return f"{text}f"
    if value in (-(2**31), -(2**63)):
        return f"({int(value) + 1} - 1)"
    return f"{int(value)}u" if value >= 2**63 else str(int(value))
