"""Cases of the operator families but the convolutions' (conv_cases.py): for every kind, named
operators that stand for one difficulty each, and a hypothesis strategy for all the rest.

    NAMED["PAD"]    {"name": Op}
    RANDOM["PAD"]   strategy of Op
"""

from __future__ import annotations

from hypothesis import strategies as st

from cases import (
    activations,
    batch_space,
    cast,
    concatenation,
    elementwise,
    indexed,
    matrices,
    movement,
    normalization,
    pad,
    places,
    pooling,
    quantize,
    reduce,
    repeated,
    reshape,
    softmax,
)
from tinyfuse.ir import Op

_MODULES = (
    activations,
    batch_space,
    cast,
    concatenation,
    elementwise,
    indexed,
    matrices,
    movement,
    normalization,
    pad,
    places,
    pooling,
    quantize,
    reduce,
    repeated,
    reshape,
    softmax,
)

NAMED: dict[str, dict[str, Op]] = {kind: ops for m in _MODULES for kind, ops in m.NAMED.items()}
RANDOM: dict[str, st.SearchStrategy[Op]] = {kind: s for m in _MODULES for kind, s in m.RANDOM.items()}
