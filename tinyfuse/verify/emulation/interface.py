"""Generates the checks of a module's interface in its verification firmware.

They compare the header's macros, accessors and refusals, the state after a reset and the bytes of the weights with the
plan. So they find faults of templates and of printed numbers even if no output depends on them. firmware/verify.h says
when each check runs.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np

from tinyfuse.emit.blob import make_blob
from tinyfuse.emit.header import COMPARABLE, header_context, rounds_by_mode
from tinyfuse.emit.render import render
from tinyfuse.emit.weights import name_constants, weight_arrays
from tinyfuse.ir import Tensor
from tinyfuse.ir.fixedpoint import RANGE, quantize_value
from tinyfuse.plan import Plan

#: status codes of every module; they never change, because applications are compiled with them
_CODES = {"OK": 0, "ERROR_NULL": 1, "ERROR_SIZE": 2, "ERROR_ALIGNMENT": 3, "ERROR_KERNEL": 4}
_AWAITING_CODES = {"NO_RESULT_YET": 8}
_STEP_CODES = {"MORE_STEPS": 9, "ERROR_CURSOR": 10}
_FLOAT_CODES = {"ERROR_ROUNDING": 12}
_BLOB_CODES = {"ERROR_WEIGHTS": 11}
_FED_STEP_CODES = {"ERROR_ROWS": 7}
#: smallest value of each dtype that argmax takes, in C
_LEAST = {dtype: "0" if dtype.startswith("u") else f"{dtype.upper()}_MIN" for dtype in COMPARABLE} | {
    "float32": "-INFINITY"
}
_FEED_CODES = {"ERROR_ORDER": 6, **_FED_STEP_CODES}


@dataclass(frozen=True)
class Interface:
    """Checks of an interface.

    source   C text (templates/interface.c.j2)
    weights  symbol, or symbol + offset -> the plan's bytes of the array
    """

    source: str
    weights: dict[str, bytes]

    def weights_table(self, word: str) -> str:
        """Assembly of the table in firmware/verify.c; `word` is the directive for a pointer."""
        rows = [
            f"    {word} {symbol}, {len(data)}, {zlib.crc32(data):#x}, name_{number}"
            for number, (symbol, data) in enumerate(self.weights.items())
        ]
        names = [f'name_{number}: .asciz "{symbol}"' for number, symbol in enumerate(self.weights)]
        lines = ['    .section .inputs, "aw"', "    .balign 8", "    .globl tinyfuse_weights", "tinyfuse_weights:"]
        stack = '    .section .note.GNU-stack, "", %progbits'
        return "\n".join([*lines, *rows, f"    {word} 0, 0, 0, 0", *names, stack, ""])


def interface(plan: Plan) -> Interface:
    """Checks of the plan's module."""
    window = plan.source.window
    context = header_context(plan) | {
        "codes": {
            **_CODES,
            **(_FLOAT_CODES if rounds_by_mode(plan) else {}),
            **(_FEED_CODES if plan.fed else {}),
            **(_FED_STEP_CODES if window is not None and window.rows else {}),
            **(_AWAITING_CODES if plan.awaits else {}),
            **(_STEP_CODES if plan.options.step else {}),
        },
        "scales": {
            kind: [_exact(tensor) for tensor in tensors]
            for kind, tensors in (("input", plan.source.inputs), ("output", plan.source.outputs))
        },
        "blob": None,
        "least": _LEAST,
        "samples": [_samples(tensor) for tensor in plan.source.inputs],
        "reals": [_reals(tensor) for tensor in plan.source.outputs],
        "initials": [
            {"offset": offset, "bytes": list(data), "distinct": len(set(data))}
            for tensor, offset in plan.states.items()
            for data in [np.ascontiguousarray(tensor.initial).tobytes()]
        ],
    }
    names = name_constants(plan)
    data = {names[key]: np.ascontiguousarray(array).tobytes() for key, array in plan.unique_constants.items()}
    if plan.options.weights_blob:
        blob = make_blob(weight_arrays(plan, names))
        data = {f"tinyfuse_blob + {blob.offsets[symbol]}": stored for symbol, stored in data.items()}
        context |= {"blob": blob, "codes": context["codes"] | _BLOB_CODES}
    return Interface(render("interface.c.j2", context), data)


def _exact(tensor: Tensor) -> str | None:
    """Scale in hexadecimal notation, which keeps all bits, unlike the header's decimal one; None without a scale."""
    if tensor.quant is None or tensor.quant.per_channel:
        return None
    return f"{float(np.float32(tensor.scale)).hex()}f"


def _samples(tensor: Tensor) -> list[tuple[str, int]]:
    """Real numbers in C with their quantized values: ties in both directions, both ends and beyond, zero, infinities,
    NaN, and numbers whose quotient by the scale is not their product with its inverse."""
    if tensor.quant is None or tensor.quant.per_channel or tensor.dtype not in RANGE:
        return []
    low, high = RANGE[tensor.dtype]
    ends = (float(low - tensor.zero_point), float(high - tensor.zero_point))
    steps = (0.0, 0.5, -0.5, 1.5, -2.5, 9.0, *ends, 65000.0, -65000.0)
    reals = [_real(each * tensor.scale) for each in steps] + _near_ties(tensor, low, high)
    found = [
        (f"{real.hex()}f", min(max(quantize_value(real, tensor.scale, tensor.zero_point), low), high))
        for real in reals
        if real is not None
    ]
    return [*found, ("INFINITY", high), ("-INFINITY", low), ("NAN", low)]


def _near_ties(tensor: Tensor, low: int, high: int) -> list[float | None]:
    """A number near a tie that division by the scale rounds differently from a product with the inverse; [] if there is
    none in the tensor's range."""
    scale, one = np.float32(tensor.scale), np.float32(1)
    with np.errstate(all="ignore"):
        ties = (np.arange(low, high, dtype=np.float32) + np.float32(0.5 - tensor.zero_point)) * scale
        reals = np.concatenate([ties, np.nextafter(ties, -np.float32(np.inf)), np.nextafter(ties, np.float32(np.inf))])
        quotients, products = (values.astype(np.float64) for values in (reals / scale, reals * (one / scale)))
        # halves away from zero
        different = np.isfinite(products) & (np.floor(abs(quotients) + 0.5) != np.floor(abs(products) + 0.5))
    return [float(each) for each in reals[different][:1]]


def _reals(tensor: Tensor) -> list[tuple[int, str]]:
    """Stored values of an output with their real numbers in hexadecimal C."""
    if tensor.quant is None or tensor.quant.per_channel or tensor.dtype not in RANGE:
        return []
    low, high = RANGE[tensor.dtype]
    pairs = (
        (v, _real(tensor.scale * (v - tensor.zero_point))) for v in sorted({low, low + 1, tensor.zero_point, high})
    )
    return [(value, f"{real.hex()}f") for value, real in pairs if real is not None]


def _real(value: float) -> float | None:
    """Value rounded to float32; None if it overflows, because C has no literal for infinity."""
    with np.errstate(over="ignore"):
        real = float(np.float32(value))
    return None if math.isinf(real) else real
