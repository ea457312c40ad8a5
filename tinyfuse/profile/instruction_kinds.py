"""Kinds of instructions, and a layer's floor: the fewest instructions that a core needs for its multiplications."""

from __future__ import annotations

import re
from functools import cache

from tinyfuse.targets import Target

#: kind -> pattern of the whole mnemonic without condition and width; the first match counts, else OTHER
_PATTERNS = {
    # SMMUL and SMMLA keep the high word, so they scale; so do saturation, and Helium's doubling and rounding
    "requantize": r"smm(ul|la|ls)r?|[su]sat(16)?|vqr?dm\w*|vq?rshl|vqr?shru?n[bt]|vqmovu?n[bt]",
    "multiply": r"(mul|mla|mls)s?|[su]m(ul|la|ls|ua|us)\w*|umaal|vfn?m[as]|vn?m(ul|la|ls)\w*|vrml\w*",
    "load": r"ldr\w*|ldm\w*|ldc\w*|pop|vldr\w*|vldm\w*|vld[24]\d|vpop",
    "store": r"str\w*|stm\w*|push|vstr\w*|vstm\w*|vst[24]\d|vpush",
    "widen": r"[su]xta?[bh](16)?|pkh(bt|tb)|rev\w*|vmov[lnx]\w*|vshll[bt]|vrev\d+",
    "branch": r"b|bl|bx|blx|cbn?z|tb[bh]|le|letp|lctp|wls|wlstp|dls|dlstp|it[te]*",
}
OTHER = "other"
#: kinds in the order in which they are shown
KINDS = ("multiply", "load", "store", "widen", "requantize", "branch", OTHER)

_CONDITION = re.compile(r"(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$")


@cache
def kind_of(mnemonic: str) -> str:
    """Kind of an instruction by objdump's mnemonic: "ldrbne.w" is "load", "vmladava.s8" is "multiply"."""
    plain = mnemonic.partition(".")[0]
    for name in (plain, _CONDITION.sub("", plain)):
        for kind, pattern in _PATTERNS.items():
            if re.fullmatch(pattern, name):
                return kind
    return OTHER


#: multiply-accumulates per instruction: Helium's vectors, SMLAD, and a product with two weights in a word
_MVE_LANES = {"int8": 16, "int16": 8}
_DSP_LANES = {"int8": 2, "int16": 2}
_PLAIN_LANES = {"int8": 2}


def floor_per_mac(target: Target, dtype: str) -> float:
    """Fewest instructions per multiply-accumulate with activations of that dtype: only the multiplications, as many per
    instruction as the core can do. A float32 one is a product and a sum, rounded separately as the interpreter does."""
    if dtype == "float32":
        return 2.0
    lanes = _MVE_LANES if target.mve else _DSP_LANES if target.dsp else _PLAIN_LANES
    return 1 / lanes.get(dtype, 1)


def explained_multiple(target: Target) -> float:
    """Multiple of its floor from which a layer is explained in a profile: with int8, a quarter of an instruction per
    MAC with Helium, one with the DSP extension."""
    return 4.0 if target.mve else 2.0
