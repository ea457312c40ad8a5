"""Compares the firmware's outputs with the oracle's, element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyfuse.emit.header import stack_bound
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.result import Firmware, Outcome


@dataclass(frozen=True)
class Mismatch:
    """The first element that differs: run, output tensor, its index, and both values."""

    run: int
    tensor: str
    index: tuple[int, ...]
    expected: int | float
    computed: int | float

    def __str__(self) -> str:
        return (
            f"first difference: run {self.run}, output {self.tensor!r} {list(self.index)}: "
            f"computed {self.computed}, expected {self.expected}"
        )


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    elements    number of elements compared
    mismatches  number of elements that differ in any bit
    first       first mismatch; None without one
    max_ulp     greatest distance of float32 outputs, in units of the last place
    max_step    greatest difference of integer outputs
    """

    elements: int
    mismatches: int
    first: Mismatch | None
    max_ulp: int = 0
    max_step: int = 0


def compare(plan: Plan, expected: list[list[np.ndarray]], computed: list[list[bytes]]) -> Comparison:
    """Compares every element of every output of every run. Floats are compared as bits, NaN as NaN."""
    elements = mismatches = max_ulp = max_step = 0
    first = None
    for run, (wanted_outputs, found_outputs) in enumerate(zip(expected, computed, strict=True)):
        if len(found_outputs) != len(wanted_outputs):  # the module reports a wrong number of outputs
            elements += sum(tensor.elements for tensor in plan.graph.outputs)
            mismatches += sum(tensor.elements for tensor in plan.graph.outputs)
            continue
        for tensor, wanted, data in zip(plan.graph.outputs, wanted_outputs, found_outputs, strict=True):
            elements += tensor.elements
            if len(data) != tensor.bytes:  # the module reports a wrong size, which is a problem of its own
                mismatches += tensor.elements
                continue
            found = np.frombuffer(data, tensor.dtype).reshape(tensor.shape)
            wanted = np.asarray(wanted, tensor.dtype).reshape(tensor.shape)
            different = ~same_bits(found, wanted)
            if different.any() and tensor.dtype == "float32":
                max_ulp = max(max_ulp, int(ulp_distance(found, wanted).max()))
            elif different.any():
                max_step = max(
                    max_step, max(abs(a - b) for a, b in zip(*_numbers(found, wanted, different), strict=True))
                )
            mismatches += int(different.sum())
            if first is None and different.any():
                index = tuple(int(i) for i in np.argwhere(different)[0])
                first = Mismatch(run, tensor.name, index, wanted[index].item(), found[index].item())
    return Comparison(elements, mismatches, first, max_ulp, max_step)


def _numbers(a: Array, b: Array, where: npt.NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """Elements of both arrays at the places `where`, as integers of any size."""
    return [int(v) for v in a[where].tolist()], [int(v) for v in b[where].tolist()]


def same_bits(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Tells for each element whether the bits are equal. All NaNs count as equal, because the bits of a computed NaN
    are unspecified."""
    if a.dtype.kind != "f":
        return np.equal(a, b)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    same: npt.NDArray[np.bool_] = np.equal(a.view(bits), b.view(bits)) | (np.isnan(a) & np.isnan(b))
    return same


def ulp_distance(a: Array, b: Array, ulp_of: float = 0.0) -> npt.NDArray[np.int64]:
    """Number of float32 steps between two values, for each element.

    The two zeros are different values. It is 0 between NaNs and 2^32 between a NaN and a number. If the distance is
    smaller in units of the last place of `ulp_of`, that is returned, rounded up.
    """
    order = [_order(values) for values in (a, b)]
    nan = np.isnan(a) != np.isnan(b)
    distance: npt.NDArray[np.int64] = np.where(np.isnan(a) & np.isnan(b), 0, np.abs(order[0] - order[1]))
    if ulp_of:
        with np.errstate(invalid="ignore"):
            units = np.abs(a.astype(np.float64) - b) / np.spacing(np.float32(ulp_of))
        distance = np.where(units < distance, np.ceil(units), distance).astype(np.int64)
    return np.where(nan, 1 << 32, distance)


def _order(values: Array) -> npt.NDArray[np.int64]:
    """Integers in the order of float32 values: -1 for -0, 0 for 0."""
    bits = np.asarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


#: optimization level that predictions are made for
PREDICTED_OPT = "O2"


def problems(plan: Plan, firmware: Firmware, outcome: Outcome) -> list[str]:
    """Sentences about promises that the module broke, independent of outputs."""
    opt, found = firmware.opt, [*firmware.broken, *outcome.guards]
    bound = stack_bound(plan, optimized=opt != "O0")
    if outcome.stack_bytes is not None and outcome.stack_bytes > bound:
        found.append(f"the stack took {outcome.stack_bytes} bytes, above the header's bound of {bound}")
    longest, most = outcome.longest_step, plan.options.max_step
    if opt == PREDICTED_OPT and longest is not None and most is not None and longest > most:
        found.append(f"a step took {longest:,} instructions, --max-step allows {most:,}")
    return found
