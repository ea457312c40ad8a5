"""Kernels of elementwise operators, in order of preference."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.elementwise import CmsisAdd, CmsisMinMax, CmsisMul
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.elementwise.add_sub_single_rounding import SingleRoundingSum
from tinyfuse.kernels.elementwise.binary import (
    COMMON_HEADER,
    Parameters,
    binary_kernels,
    clamp_f32_parameters,
    clamped_kernels,
    comparison_parameters,
    float_kernels,
    float_product_parameters,
    float_sum_parameters,
    in_floats,
    int16_kernels,
    mul_parameters,
    prelu_parameters,
    prelu_s16_parameters,
    rescaling_parameters,
    wide_kernels,
)
from tinyfuse.kernels.elementwise.division import floor_kernels, int8_div_kernels
from tinyfuse.kernels.elementwise.fused_expression import ElementOf
from tinyfuse.kernels.elementwise.fused_loop import FusedLoop, FusedLoopByFours
from tinyfuse.kernels.elementwise.lookup_table import ChannelLookup, Clamp, Lookup, WideLookup
from tinyfuse.kernels.elementwise.mul_single_rounding import SingleRoundingProduct
from tinyfuse.kernels.elementwise.quantize import Cast, Convert, InvertSign, QuantizeByReciprocal, QuantizeHalfEven
from tinyfuse.kernels.elementwise.scale_and_add import ScaledSumMve
from tinyfuse.kernels.elementwise.select import AddN, Select
from tinyfuse.kernels.elementwise.unary import (
    AbsS16,
    ClampS16,
    GeluF32,
    LeakyReluF32,
    Not,
    ReluF32,
    Sigmoid,
    TwoSlopes,
    unary_f32_kernels,
)
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import add_multipliers, squared_difference_multipliers
from tinyfuse.ops.core.unary import UnaryFamily
from tinyfuse.ops.elementwise.cast import CASTS
from tinyfuse.ops.elementwise.logic import COMPARISONS, Comparison
from tinyfuse.ops.elementwise.quantize import DEQUANTIZES, QUANTIZES
from tinyfuse.ops.elementwise.table import TableFamily
from tinyfuse.ops.elementwise.unary_math import FloatFunction

_TABLE = TableFamily()
_TABLED = {
    kind: (Clamp(family.function), Lookup(family.function))
    for kind, family in FAMILIES.items()
    if isinstance(family, UnaryFamily) and not isinstance(family, FloatFunction)
}
#: kernels of functions that take other dtypes than int8; those with a second argument are not in tinyfuse_math.h
_WIDE: dict[str, tuple[Kernel, ...]] = {
    "RELU": (ClampS16("clamp", "int16"), TwoSlopes(), ReluF32("RELU")),
    "RELU6": (ClampS16("clamp", "int16"), ReluF32("RELU6")),
    "LEAKY_RELU": (TwoSlopes(), LeakyReluF32("leaky_relu", "float32")),
    "ABS": (AbsS16("abs", "int16"), *unary_f32_kernels("ABS")),
    "GELU": (GeluF32(False), GeluF32(True)),
    "LOGISTIC": (Sigmoid("logistic", "int16"), *unary_f32_kernels("LOGISTIC")),
    "TANH": (Sigmoid("tanh", "int16"), *unary_f32_kernels("TANH", "each_tanh")),
    **{
        kind: unary_f32_kernels(kind)
        for kind in ("HARD_SWISH", "ELU", "RSQRT", "NEG", "SQUARE", "FLOOR", "CEIL", "ROUND")
    },
    **{kind: unary_f32_kernels(kind, f"each_{kind.lower()}") for kind in ("EXP", "LOG", "SIN", "COS", "SQRT")},
}
_UNARY = {kind: (*_TABLED.get(kind, ()), *_WIDE.get(kind, ())) for kind in (*_TABLED, *_WIDE)}

_SQUARES = rescaling_parameters(squared_difference_multipliers, clamps=False)
#: kernels of kinds that no fused loop computes alone
_NO_LOOPS: dict[str, tuple[Kernel, ...]] = {
    "SQUARED_DIFFERENCE": (
        *binary_kernels("SQUARED_DIFFERENCE", "int8", _SQUARES, work="sums"),
        *int16_kernels("SQUARED_DIFFERENCE", _SQUARES, "sums"),
        *float_kernels("SQUARED_DIFFERENCE", work="products"), *wide_kernels("SQUARED_DIFFERENCE", "int32"),
    ),
    "PRELU": (
        *binary_kernels("PRELU", "int8", prelu_parameters), *int16_kernels("PRELU", prelu_s16_parameters),
        *float_kernels("PRELU", work="products"),
    ),
    "DIV": (
        *int8_div_kernels(), *wide_kernels("DIV", "int32"), *clamped_kernels("DIV"),
        *float_kernels("DIV", clamp_f32_parameters, "quotients"),
    ),
    "FLOOR_DIV": floor_kernels("FLOOR_DIV"),
    "FLOOR_MOD": floor_kernels("FLOOR_MOD"),
    "POW": (
        *binary_kernels("POW", "float32", None, "tinyfuse_power.h"),
        *binary_kernels("POW", "int32", None, "tinyfuse_power_s32.h"),
    ),
    "ADD_N": (AddN("int8"), AddN("float32")),
    "SELECT_V2": (Select("int8"), Select("int16"), Select("float32")),
    "LOGICAL_AND": binary_kernels("LOGICAL_AND", "bool", work="choices"),
    "LOGICAL_OR": binary_kernels("LOGICAL_OR", "bool", work="choices", like="LOGICAL_AND"),
    "LOGICAL_NOT": (Not(),),
    "CAST": tuple(Cast(*pair) for pair in CASTS),
    "QUANTIZE": (QuantizeHalfEven(), QuantizeByReciprocal(), InvertSign(), *(Convert(*pair) for pair in QUANTIZES)),
    "DEQUANTIZE": tuple(Convert(*pair) for pair in DEQUANTIZES),
    "TABLE": (Clamp(_TABLE.function), Lookup(_TABLE.function), WideLookup(_TABLE.function)),
    "CHANNEL_TABLES": (ChannelLookup("int8"), ChannelLookup("int16")),
}  # fmt: skip


def elementwise_kernels(
    element_of: ElementOf, kernel_of: Callable[[Op], Kernel | None]
) -> dict[str, tuple[Kernel, ...]]:
    """Kernels by operator kind, the preferred first. Fused loops call the two functions: one returns the C function of
    one element of a part, the other the kernel that this function belongs to."""
    #: fused loops of int8, which also compute single binary operators with broadcast operands
    loops: tuple[Kernel, ...] = FusedLoopByFours(element_of, kernel_of), FusedLoop(element_of, kernel_of)
    wide_loops: tuple[Kernel, ...] = (
        FusedLoopByFours(element_of, kernel_of, "int16"),
        FusedLoop(element_of, kernel_of, "int16"),
        FusedLoop(element_of, kernel_of, "float32"),
    )
    sums = rescaling_parameters(add_multipliers)
    return {
        **_UNARY,
        **{family.kind: _comparisons(family, loops) for family in COMPARISONS},
        "ADD": (
            SingleRoundingSum(), *in_floats("FLOAT_SUM", float_sum_parameters),
            *_binary("ADD", sums, work="sums", header=COMMON_HEADER), *loops, CmsisAdd(),
            *int16_kernels("ADD", sums, "sums"), *float_kernels("ADD", clamp_f32_parameters, "sums"),
            CmsisAdd("int16"),
        ),
        "SUB": (
            SingleRoundingSum(), *_binary("SUB", sums, work="sums"), *loops,
            *int16_kernels("SUB", sums, "sums"), *float_kernels("SUB", clamp_f32_parameters, "sums"),
            *clamped_kernels("SUB"),
        ),
        "MUL": (
            SingleRoundingProduct(), *in_floats("FLOAT_PRODUCT", float_product_parameters),
            *_binary("MUL", mul_parameters, work="products", header=COMMON_HEADER), *loops, CmsisMul(),
            *int16_kernels("MUL", mul_parameters, "products"), *float_kernels("MUL", clamp_f32_parameters, "products"),
            *clamped_kernels("MUL"), CmsisMul("int16"),
        ),
        **{
            kind: (
                *_binary(kind, None, work="choices", like=like), *loops, CmsisMinMax(kind),
                *int16_kernels(kind, work="choices", like=like), *float_kernels(kind, work="choices", like=like),
                *wide_kernels(kind, "int64", like=like),
            )
            for kind, like in (("MAXIMUM", ""), ("MINIMUM", "MAXIMUM"))
        },
        **_NO_LOOPS,
        "FUSED_LOOP": (ScaledSumMve(), *loops, *wide_loops),
    }  # fmt: skip


def _binary(
    kind: str, parameters: Parameters | None, work: str, header: str = "tinyfuse_binary.h", like: str = ""
) -> tuple[Kernel, ...]:
    """Kernels of an operator of two inputs that are int8 or int32. `work` names the count of an int8 element in fused
    loops; `like` is the kind whose costs it has."""
    int8 = binary_kernels(kind, "int8", parameters, header, work, like)
    return *int8, *binary_kernels(kind, "int32", like=like)


def _comparisons(family: Comparison, loops: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    wide = [dtype for dtype in ("int64", "bool") if dtype in family.dtypes]
    like = "" if family.kind == COMPARISONS[0].kind else COMPARISONS[0].kind
    return (
        *_binary(family.kind, comparison_parameters, work="comparisons", like=like),
        *loops,
        *float_kernels(f"IS_{family.kind}", work="comparisons", like=like and f"IS_{like}"),
        *wide_kernels(family.kind, *wide, like=like),
    )
