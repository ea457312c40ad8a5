"""Factors from a kernel's predicted mean to its instructions for the slowest input values.

Cost tables predict the mean over random input values. A step's bound (tinyfuse/cost/steps.py) must hold for all values,
so it uses these factors. For kernels whose numbers of iterations depend on values, `Kernel.slowest_counts` gives the
largest numbers.
"""

from __future__ import annotations

from tinyfuse.ir import Op

#: kind of float32 operator -> factor on the prediction (with an FPU, without one). Functions of libm return early for
#: large values, or reduce them first; library calls normalize subnormal results. Measured with 64 equal values, for
#: each of 24 magnitudes, on Cortex-M55, M4 and M0+ (gcc 12.2 -O2), and rounded up
_OF_FLOATS = {
    "EXP": (1.0, 1.2), "LOG": (1.8, 2.2), "TANH": (1.95, 2.3), "SQRT": (1.0, 2.2), "RSQRT": (1.05, 1.9),
    "SIN": (2.2, 2.2), "COS": (2.1, 2.1), "ELU": (9.5, 75.0), "HARD_SWISH": (1.0, 1.4), "FLOOR": (1.0, 1.4),
    "ROUND": (1.25, 1.5), "LEAKY_RELU": (1.0, 1.6), "DIV": (1.0, 1.6), "POW": (2.15, 2.15), "FLOOR_DIV": (1.8, 1.8),
}  # fmt: skip

#: factors of all other float32 operators (with an FPU, without one)
_OF_OTHERS = (1.0, 1.3)

#: kind of integer operator -> factor on the prediction. The slowest inputs are those of which each value is a new
#: extreme
_OF_INTEGERS = {"ARG_MAX": 1.25, "ARG_MIN": 1.25, "REDUCE_MAX": 1.2, "REDUCE_MIN": 1.2}


def slowest_times(op: Op, computes_floats: bool, fpu: bool) -> float:
    """Factor on the predicted instructions for the slowest input values; at least 1. `computes_floats`: the operator's
    kernel computes floats; `fpu`: the core has an FPU."""
    if not computes_floats:
        return _OF_INTEGERS.get(op.kind, 1.0)
    with_fpu, without = _OF_FLOATS.get(op.kind, _OF_OTHERS)
    return with_fpu if fpu else without
