"""The only rounding code in Python: fixed-point requantization as TensorFlow Lite Micro does it.

A real multiplier M is stored as (multiplier, shift): M = multiplier / 2**31 * 2**shift with
multiplier in [2**30, 2**31). Source of the algorithms: gemmlowp's fixed point (Jacob et al.,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
2018, section 2.2 and appendix B) in the double-rounding form that TFLM uses.

Functions of an `ArrayLike` take integers of any width, single ones or arrays, and return int64.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tinyfuse.ir.arrays import Array, Int64s

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def round_half_away(value: float) -> int:
    """Round like C's round(): halves go away from zero (Python's own round goes to even)."""
    floor = math.floor(abs(value))
    rounded = floor + 1 if abs(value) - floor >= 0.5 else floor
    return int(math.copysign(rounded, value))


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return (multiplier, shift) of a real multiplier (double); shift > 0 is a left shift.

    A multiplier below about 2**-32 becomes (0, 0), as in TFLM; one that overflowed to infinity gets a shift that no
    kernel takes.
    """
    if real == 0.0:
        return 0, 0
    if math.isinf(real):
        return INT32_MAX, 1025
    fraction, shift = math.frexp(real)
    multiplier = round_half_away(fraction * 2**31)
    if multiplier == 2**31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    return multiplier, shift


def quantize_multipliers(reals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
    """Return (multipliers, shifts): `quantize_multiplier` of each of several nonnegative real multipliers."""
    fractions, exponents = np.frexp(np.asarray(reals, np.float64))
    infinite, shifts = np.isinf(fractions), exponents.astype(np.int64)
    fractions[infinite] = 0
    multipliers = np.floor(fractions * 2.0**31 + 0.5).astype(np.int64)  # 53 bits hold the sum
    full = multipliers == 2**31
    multipliers[full] = 2**30
    shifts += full
    lost = shifts < -31
    multipliers[lost], shifts[lost] = 0, 0
    multipliers[infinite], shifts[infinite] = INT32_MAX, 1025
    return multipliers, shifts


def saturating_rounding_doubling_high_mul(value: npt.ArrayLike, multiplier: npt.ArrayLike) -> Int64s:
    """floor(value * multiplier / 2**31 + 1/2), int32 in int64 arrays; -2**31 * -2**31 saturates."""
    product = np.asarray(value, np.int64) * np.asarray(multiplier, np.int64)
    # gemmlowp truncates (product + nudge) / 2**31 toward zero, with nudge 1 - 2**30 for a negative
    # product; that equals the floor form except where it is an exact half below zero: there the
    # nudge of 1 - 2**30 makes the truncation round up as the floor form does.
    rounded: Int64s = (product + (1 << 30)) >> 31
    return np.minimum(rounded, INT32_MAX)


def saturating_rounding_doubling_high_mul_16(value: npt.ArrayLike, multiplier: npt.ArrayLike) -> Int64s:
    """floor(value * multiplier / 2^15 + 1/2) of int16 values, halves below zero upwards as well."""
    product = np.asarray(value, np.int64) * np.asarray(multiplier, np.int64)
    return saturate_16((product + (1 << 14)) >> 15)


def saturating_doubling_high_mul_16(value: npt.ArrayLike, multiplier: npt.ArrayLike) -> Int64s:
    """value * multiplier / 2^15 of int16 values, rounded towards zero."""
    product = np.asarray(value, np.int64) * np.asarray(multiplier, np.int64)
    return saturate_16(np.sign(product) * (np.abs(product) >> 15))


def saturate_16(value: npt.ArrayLike) -> Int64s:
    """Return the nearest int16 values."""
    nearest: Int64s = np.clip(np.asarray(value, np.int64), *RANGE["int16"])
    return nearest


def rounding_divide_by_pot(value: npt.ArrayLike, exponent: npt.ArrayLike) -> Int64s:
    """value / 2**exponent, halves away from zero; exponent in 0..31."""
    value, exponent = np.asarray(value, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (value < 0)
    rounded: Int64s = (value >> exponent) + ((value & mask) > threshold)
    return rounded


def multiply_by_quantized_multiplier(value: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Int64s:
    """TFLM's MultiplyByQuantizedMultiplier on int32 values: rounds twice. Returns int64 arrays.

    `multiplier` and `shift` are scalars, or arrays that broadcast over `value` (per channel).
    The left shift wraps at 32 bits as the C does.
    """
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = (np.asarray(value, np.int64) << left).astype(np.int32).astype(np.int64)
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, multiplier), right)


def multiply_by_real(value: npt.ArrayLike, real: float) -> Int64s:
    """Return the integers nearest to `value` times a real number, as LiteRT's FULLY_CONNECTED scales its sums.

    The product is rounded to double; then halves go away from zero.
    """
    product = np.asarray(value, np.int64).astype(np.float64) * real
    nearest: Int64s = np.copysign(np.floor(np.abs(product) + 0.5), product).astype(np.int64)
    return nearest


def multiply_half_even(value: npt.ArrayLike, scale: npt.ArrayLike) -> Int64s:
    """Return the integers nearest to float32(value) * scale, the product rounded to float32; halves go to even.

    value: integers within int32. scale: float32, one or several that broadcast over `value`, each below 2^30.
    Source: onnxruntime's MlasRequantizeOutput.
    """
    product = np.asarray(value, np.int64).astype(np.float32) * np.asarray(scale, np.float32)
    nearest: Int64s = np.rint(product).astype(np.int64)
    return nearest


def scale_bits(scale: np.float32) -> int:
    """The bits of a scale of `multiply_half_even`, as C takes them; 0 where every sum times it rounds to 0."""
    return int(np.array(scale if scale >= 2.0**-40 else 0, "<f4").view("<i4"))


def real_scale(real: float) -> tuple[int, int, int]:
    """(high, low, shift) with `real` = (high * 2**32 + low) / 2**(32 + shift), exactly: high in [2**29, 2**30), low a
    uint32, shift in 1..62. A number below 2**-33 becomes 0: every int32 times it rounds to 0. From 2**29 on it becomes
    one that is as large as shift 1 allows: products with all but 0 lie beyond every stored value."""
    fraction, exponent = math.frexp(real)
    shift = 30 - exponent
    if real == 0.0 or shift > 62:
        return 0, 0, 1
    if math.isinf(real) or shift < 1:
        return 2**30 - 1, 0, 1
    high, low = divmod(int(fraction * 2.0**62), 2**32)
    return high, low, shift


def reduced_multiplier(multiplier: npt.ArrayLike) -> Int64s:
    """The upper 16 bits of a 32-bit multiplier, rounded, at most 0x7FFF."""
    multiplier = np.asarray(multiplier, np.int64)
    return np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, np.int64(0x7FFF))


def multiply_by_reduced_multiplier(value: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Int64s:
    """TFLM's MultiplyByQuantizedMultiplier on int64 values, shift from -31 to 7: rounds once, halves up, and keeps
    32 bits. The product wraps at 64 bits."""
    right = 15 - np.asarray(shift, np.int64)
    product = np.asarray(value, np.int64) * reduced_multiplier(multiplier)
    scaled = (product + (np.int64(1) << (right - 1))) >> right
    return scaled.astype(np.int32).astype(np.int64)


def clamp(value: Array, low: int, high: int, dtype: str = "int8") -> Array:
    """Return the nearest values from `low` to `high`, as `dtype`."""
    return np.clip(value, low, high).astype(dtype)


#: the stored range of a dtype
RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def quantize_value(real: float, scale: float, zero_point: int) -> int:
    """zero_point + round(real / scale), in float32 as TFLM quantizes the bounds of an activation."""
    return zero_point + round_half_away(float(np.float32(real) / np.float32(scale)))


def activation_range(activation: str, scale: float, zero_point: int, dtype: str = "int8") -> tuple[int, int]:
    """The clamp (low, high) in stored units of a fused activation: NONE, RELU, RELU6, RELU_N1_TO_1."""
    low, high = RANGE[dtype]
    if activation in ("RELU", "RELU6"):
        low = max(low, quantize_value(0.0, scale, zero_point))
    if activation == "RELU6":
        high = min(high, quantize_value(6.0, scale, zero_point))
    if activation == "RELU_N1_TO_1":
        low = max(low, quantize_value(-1.0, scale, zero_point))
        high = min(high, quantize_value(1.0, scale, zero_point))
    return low, high


# --- exp and reciprocal in fixed point ---------------------------------------------------------
# Qm.n below: m integer bits, n fraction bits and a sign in 32 bits. Algorithms: gemmlowp's
# fixedpoint.h (exp by a polynomial around -1/8 and a product of exp(-2^k); Newton-Raphson division).

_MUL = saturating_rounding_doubling_high_mul

#: exp(-2^k) in Q0.31 for k = -2..4
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_EXP_OF_MINUS_EIGHTH, _ONE_THIRD = 1895147668, 715827883
_ROOT_HALF, _FOURTH_ROOT_HALF, _LOG_2 = 1518500250, 1805811301, 1488522236
_48_OVER_17, _MINUS_32_OVER_17 = 1515870810, -1010580540


def _shift_left_saturating(value: npt.ArrayLike, bits: npt.ArrayLike) -> Int64s:
    shifted = np.asarray(value, np.int64) << np.asarray(bits, np.int64)
    return shifted.clip(INT32_MIN, INT32_MAX)


def exp_on_negative_values(value: npt.ArrayLike, integer_bits: int) -> Int64s:
    """exp of values <= 0 with `integer_bits` integer bits (4 or 5), as Q0.31; 0 gives 2^31 - 1."""
    value = np.asarray(value, np.int64)
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (value & (quarter - 1)) - quarter
    x = (rest << integer_bits) + (1 << 28)
    x2 = _MUL(x, x)
    x3, x4 = _MUL(x2, x), _MUL(x2, x2)
    series = _MUL(rounding_divide_by_pot(x4, 2) + x3, _ONE_THIRD) + x2
    result = _EXP_OF_MINUS_EIGHTH + _MUL(x + rounding_divide_by_pot(series, 1), _EXP_OF_MINUS_EIGHTH)
    remainder = rest - value
    for k, factor in zip(range(-2, integer_bits), _EXP_FACTORS, strict=False):
        chosen = (remainder >> (fraction_bits + k)) & 1
        result = np.where(chosen == 1, _MUL(result, factor), result)
    return np.where(value == 0, INT32_MAX, result)


def _two_over_one_plus_x(value: npt.ArrayLike) -> Int64s:
    """2 / (1 + x), Q2.29, of x in [0, 1), Q0.31."""
    half = (np.asarray(value, np.int64) + INT32_MAX + 1) >> 1
    x = _48_OVER_17 + _MUL(half, _MINUS_32_OVER_17)
    for _ in range(3):
        error = (1 << 29) - _MUL(half, x)
        x = x + _shift_left_saturating(_MUL(x, error), 2)
    return x


def leading_zeros(value: npt.ArrayLike) -> Int64s:
    """Zero bits above the highest set one, of 32-bit values >= 0."""
    zeros: Int64s = np.vectorize(lambda v: 32 - int(v).bit_length(), otypes=[np.int64])(value)
    return zeros


def log_of_at_least_one(value: npt.ArrayLike) -> Int64s:
    """log of values >= 1 in Q12.19, as Q5.26 (TensorFlow Lite's common.h: a power of two and a quotient
    of polynomials around the fourth root of 1/2)."""
    value = np.asarray(value, np.int64)
    headroom = leading_zeros(value) - 1
    r_a = _shift_left_saturating(_MUL(_shift_left_saturating(value, headroom), _ROOT_HALF), 1)
    headroom_b = leading_zeros(_MUL(value, _ROOT_HALF)) - 1
    r = np.minimum(r_a, _shift_left_saturating(value, headroom_b))
    power = np.maximum(((12 - headroom - 1) << 25) + (1 << 23), ((12 - headroom_b) << 25) - (1 << 23))
    p, q = (r + _FOURTH_ROOT_HALF + 1) >> 1, (r - _FOURTH_ROOT_HALF) * 2
    square = _MUL(q, q)
    numerator = _MUL(q, r) + _MUL(_MUL(q, square), 117049297)
    denominator = _MUL(p, 1057819769 + q + _MUL(127690142, square)) + _MUL(638450708, q)
    log_r = _MUL(rounding_divide_by_pot(numerator, 6), one_over_one_plus_x(denominator))
    return _shift_left_saturating(_MUL(power, _LOG_2) + log_r, 1)


def one_over_one_plus_x(value: npt.ArrayLike) -> Int64s:
    """1 / (1 + x) of x in [0, 1), both Q0.31."""
    return _shift_left_saturating(_two_over_one_plus_x(value), 1)


def one_minus_x_over_one_plus_x(value: npt.ArrayLike) -> Int64s:
    """(1 - x) / (1 + x) of x in [0, 1), both Q0.31."""
    return _shift_left_saturating(_two_over_one_plus_x(value) - (1 << 29), 2)


def inverse_sqrt_multiplier(value: int) -> tuple[int, int]:
    """(multiplier, shift) of 1 / sqrt(value), value from 0 (taken as 1) to 2^31 - 1.

    Five Newton-Raphson steps x <- 1.5 x - value/2 * x^3 in Q3.28 from x = 1, on the value shifted by
    bit pairs into [2^27, 2^29), as TFLM's GetInvSqrtQuantizedMultiplierExp does.
    """
    if value <= 1:
        return INT32_MAX, 0
    right = 11
    while value >= 1 << 29:
        value //= 4
        right += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    right -= pairs
    whole = (value << 2 * pairs) >> 1
    half = rounding_divide_by_pot(whole, 1)
    x: npt.ArrayLike = 1 << 28
    for _ in range(5):
        # products of two, three and two Q3.28 values have 6, 9 and 6 integer bits; back to 3
        cube = _shift_left_saturating(_MUL(_MUL(x, x), x), 6)
        step = _MUL((1 << 28) + (1 << 27), x) - _MUL(half, cube)
        x = _shift_left_saturating(step, 3)
    multiplier = int(_MUL(x, 1518500250))  # sqrt(1/2) in Q0.31
    if right < 0:
        multiplier <<= -right
        right = 0
    return multiplier, -right
