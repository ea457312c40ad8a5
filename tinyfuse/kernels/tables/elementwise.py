"""Kernels of elementwise operators, in order of preference."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.elementwise import CmsisAdd, CmsisMinMax, CmsisMul
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.elementwise import binary, unary
from tinyfuse.kernels.elementwise.binary import int8_div_kernels
from tinyfuse.kernels.elementwise.fused_loop import ElementOf, FusedLoop, FusedLoopByFours
from tinyfuse.kernels.elementwise.quantize import Cast, Convert, InvertSign, QuantizeByReciprocal, QuantizeHalfEven
from tinyfuse.kernels.elementwise.select import AddN, Select
from tinyfuse.kernels.elementwise.single_rounding import SingleRoundingProduct, SingleRoundingSum
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
    kind: (unary.Clamp(family.function), unary.Lookup(family.function))
    for kind, family in FAMILIES.items()
    if isinstance(family, UnaryFamily) and not isinstance(family, FloatFunction)
}
#: kernels of functions that take other dtypes than int8; those with a second argument are not in tinyfuse_math.h
_WIDE: dict[str, tuple[Kernel, ...]] = {
    "RELU": (
        unary.ClampS16("clamp", "int16"),
        unary.TwoSlopes("two_slopes", "int16"),
        unary.ReluF32("relu", "float32"),
    ),
    "RELU6": (unary.ClampS16("clamp", "int16"), unary.ReluF32("relu6", "float32")),
    "LEAKY_RELU": (unary.TwoSlopes("two_slopes", "int16"), unary.LeakyReluF32("leaky_relu", "float32")),
    "ABS": (unary.AbsS16("abs", "int16"), unary.UnaryKernel("abs", "float32")),
    "GELU": (unary.GeluF32(False), unary.GeluF32(True)),
    "LOGISTIC": (unary.Sigmoid("logistic", "int16"), unary.UnaryKernel("logistic", "float32")),
    "TANH": (unary.Sigmoid("tanh", "int16"), unary.UnaryKernel("each_tanh", "float32")),
    **{
        kind: (unary.UnaryKernel(kind.lower(), "float32"),)
        for kind in ("HARD_SWISH", "ELU", "RSQRT", "NEG", "SQUARE", "FLOOR", "CEIL", "ROUND")
    },
    **{kind: (unary.UnaryKernel(f"each_{kind.lower()}", "float32"),) for kind in ("EXP", "LOG", "SIN", "COS", "SQRT")},
}  # fmt: skip
_UNARY = {kind: (*_TABLED.get(kind, ()), *_WIDE.get(kind, ())) for kind in (*_TABLED, *_WIDE)}

_SQUARES = binary.rescaling_parameters(squared_difference_multipliers, clamps=False)
#: kernels of kinds that no fused loop computes alone
_NO_LOOPS: dict[str, tuple[Kernel, ...]] = {
    "SQUARED_DIFFERENCE": (
        *binary.kernels("SQUARED_DIFFERENCE", "int8", _SQUARES, work="sums"),
        *binary.kernels("SQUARED_DIFFERENCE", "int16", _SQUARES, "sums"),
        *binary.kernels("SQUARED_DIFFERENCE", "float32", work="products"),
        *binary.wide_kernels("SQUARED_DIFFERENCE", "int32"),
    ),
    "PRELU": (
        *binary.kernels("PRELU", "int8", binary.prelu_parameters),
        *binary.kernels("PRELU", "int16", binary.prelu_parameters),
        *binary.kernels("PRELU", "float32", work="products"),
    ),
    "DIV": (
        *int8_div_kernels(), *binary.wide_kernels("DIV", "int32"), *binary.clamped_kernels("DIV"),
        *binary.kernels("DIV", "float32", binary.clamp_f32_parameters, "quotients"),
    ),
    "FLOOR_DIV": binary.kernels("FLOOR_DIV", "float32", header="tinyfuse_division.h"),
    "FLOOR_MOD": binary.kernels("FLOOR_MOD", "float32", header="tinyfuse_division.h"),
    "POW": (
        *binary.kernels("POW", "float32", header="tinyfuse_power.h"),
        *binary.kernels("POW", "int32", header="tinyfuse_power_s32.h"),
    ),
    "ADD_N": (AddN("int8"), AddN("float32")),
    "SELECT_V2": (Select("int8"), Select("int16"), Select("float32")),
    "LOGICAL_AND": binary.kernels("LOGICAL_AND", "bool", work="choices"),
    "LOGICAL_OR": binary.kernels("LOGICAL_OR", "bool", work="choices", like="LOGICAL_AND"),
    "LOGICAL_NOT": (unary.Not(),),
    "CAST": tuple(Cast(*pair) for pair in CASTS),
    "QUANTIZE": (QuantizeHalfEven(), QuantizeByReciprocal(), InvertSign(), *(Convert(*pair) for pair in QUANTIZES)),
    "DEQUANTIZE": tuple(Convert(*pair) for pair in DEQUANTIZES),
    "TABLE": (unary.Clamp(_TABLE.function), unary.Lookup(_TABLE.function), unary.Lookup(_TABLE.function, "int16")),
    "CHANNEL_TABLES": (unary.ChannelLookup("int8"), unary.ChannelLookup("int16")),
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
    sums = binary.rescaling_parameters(add_multipliers)
    return {
        **_UNARY,
        **{family.kind: _comparisons(family, loops) for family in COMPARISONS},
        "ADD": (
            SingleRoundingSum(), *binary.in_floats("FLOAT_SUM", binary.float_sum_parameters),
            *_binary("ADD", sums, work="sums", header=binary.COMMON_HEADER), *loops, CmsisAdd(),
            *binary.kernels("ADD", "int16", sums, "sums"),
            *binary.kernels("ADD", "float32", binary.clamp_f32_parameters, "sums"), CmsisAdd("int16"),
        ),
        "SUB": (
            SingleRoundingSum(), *_binary("SUB", sums, work="sums"), *loops,
            *binary.kernels("SUB", "int16", sums, "sums"),
            *binary.kernels("SUB", "float32", binary.clamp_f32_parameters, "sums"), *binary.clamped_kernels("SUB"),
        ),
        "MUL": (
            SingleRoundingProduct(), *binary.in_floats("FLOAT_PRODUCT", binary.float_product_parameters),
            *_binary("MUL", binary.mul_parameters, work="products", header=binary.COMMON_HEADER), *loops, CmsisMul(),
            *binary.kernels("MUL", "int16", binary.mul_parameters, "products"),
            *binary.kernels("MUL", "float32", binary.clamp_f32_parameters, "products"),
            *binary.clamped_kernels("MUL"), CmsisMul("int16"),
        ),
        **{
            kind: (
                *_binary(kind, None, work="choices", like=like), *loops, CmsisMinMax(kind),
                *binary.kernels(kind, "int16", work="choices", like=like),
                *binary.kernels(kind, "float32", work="choices", like=like),
                *binary.wide_kernels(kind, "int64", like=like),
            )
            for kind, like in (("MAXIMUM", ""), ("MINIMUM", "MAXIMUM"))
        },
        **_NO_LOOPS,
        "FUSED_LOOP": (*loops, *wide_loops),
    }  # fmt: skip


def _binary(
    kind: str, parameters: binary.Parameters | None, work: str, header: str = "", like: str = ""
) -> tuple[Kernel, ...]:
    """Kernels of an operator of two inputs that are int8 or int32. `work` names the count of an int8 element in fused
    loops; `like` is the kind whose costs it has."""
    int8 = binary.kernels(kind, "int8", parameters, work, like, header)
    return *int8, *binary.kernels(kind, "int32", like=like)


def _comparisons(family: Comparison, loops: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    wide = [dtype for dtype in ("int64", "bool") if dtype in family.dtypes]
    like = "" if family.kind == COMPARISONS[0].kind else COMPARISONS[0].kind
    return (
        *_binary(family.kind, binary.comparison_parameters, work="comparisons", like=like),
        *loops,
        *binary.kernels(f"IS_{family.kind}", "float32", work="comparisons", like=like and f"IS_{like}"),
        *binary.wide_kernels(family.kind, *wide, like=like),
    )
