"""What kinds of instructions code is made of, and the fewest that a core needs to multiply: a layer's floor."""

from __future__ import annotations

import re
from functools import cache

from tinyfuse.targets import Target

#: kind -> pattern of the whole mnemonic without its condition and width; the first that matches, else OTHER
_PATTERNS = {
    # SMMUL and SMMLA keep the high word: that is scaling, as saturation and Helium's doubling and rounding are
    "requantize": r"smm(ul|la|ls)r?|[su]sat(16)?|vqr?dm\w*|vq?rshl|vqr?shru?n[bt]|vqmovu?n[bt]",
    "multiply": r"(mul|mla|mls)s?|[su]m(ul|la|ls|ua|us)\w*|umaal|vfn?m[as]|vn?m(ul|la|ls)\w*|vrml\w*",
    "load": r"ldr\w*|ldm\w*|ldc\w*|pop|vldr\w*|vldm\w*|vld[24]\d|vpop",
    "store": r"str\w*|stm\w*|push|vstr\w*|vstm\w*|vst[24]\d|vpush",
    "widen": r"[su]xta?[bh](16)?|pkh(bt|tb)|rev\w*|vmov[lnx]\w*|vshll[bt]|vrev\d+",
    "branch": r"b|bl|bx|blx|cbn?z|tb[bh]|le|letp|lctp|wls|wlstp|dls|dlstp|it[te]*",
}
OTHER = "other"
#: in the order in which they are shown
KINDS = ("multiply", "load", "store", "widen", "requantize", "branch", OTHER)

_CONDITION = re.compile(r"(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$")


@cache
def kind_of(mnemonic: str) -> str:
    """The kind of an instruction, by objdump's mnemonic: "ldrbne.w" loads, "vmladava.s8" multiplies."""
    plain = mnemonic.partition(".")[0]
    for name in (plain, _CONDITION.sub("", plain)):
        for kind, pattern in _PATTERNS.items():
            if re.fullmatch(pattern, name):
                return kind
    return OTHER


#: multiply-accumulates of one instruction: of Helium's vectors, of SMLAD, of a product with two weights in a word
_MVE_LANES = {"int8": 16, "int16": 8}
_DSP_LANES = {"int8": 2, "int16": 2}
_PLAIN_LANES = {"int8": 2}


def floor_per_mac(target: Target, dtype: str) -> float:
    """The fewest instructions that a multiply-accumulate of activations of that dtype takes on a core: nothing but the
    multiplications, as many at once as an instruction does. Of float32 each is a product and a sum, rounded apart, as
    the interpreter does."""
    if dtype == "float32":
        return 2.0
    lanes = _MVE_LANES if target.mve else _DSP_LANES if target.dsp else _PLAIN_LANES
    return 1 / lanes.get(dtype, 1)


def explained_multiple(target: Target) -> float:
    """How many times its floor a layer takes whose profile says why: a quarter of an instruction a MAC of int8 with
    Helium, one with the DSP extension."""
    return 4.0 if target.mve else 2.0
