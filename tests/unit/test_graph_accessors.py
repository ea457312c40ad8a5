"""Accessors of the graph: values for sound graphs, and messages about what is missing in others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Op, Quant, Tensor, given
from tinyfuse.kernels.core.kernel import CallSite, TensorAccess


@dataclass(frozen=True)
class Stride:
    step: int


QUANT = Quant((0.5,), (3,))
CHANNELS = Quant((0.5, 0.25), (0, 0))
X = Tensor("x", (1, 4), "int8", QUANT)
W = Tensor("w", (2,), "int8", CHANNELS, data=np.array([1, 2], np.int8))
S = Tensor("s", (2,), "int8", initial=np.array([3, 4], np.int8))
OP = Op("FULLY_CONNECTED", (X, W, None), (X,), Stride(2))


def test_what_is_there_is_given() -> None:
    assert OP.operand(1) is W
    assert Op("ADD", (W, X), (X,)).first_activation is X
    assert OP.optional(1) is W
    assert OP.optional(2) is None
    assert OP.optional(7) is None
    assert Op("ADD", (X, W), (X,)).operands == (X, W)
    assert W.values.tolist() == [1, 2]
    assert S.initial_values.tolist() == [3, 4]
    assert X.quantization is QUANT
    assert (X.scale, X.zero_point) == (0.5, 3)
    assert OP.attributes_as(Stride).step == 2
    assert given(W.data) is W.data


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (lambda: OP.operand(2), "op -1 FULLY_CONNECTED 'x' has no input 2"),
        (lambda: OP.operand(3), "has no input 3"),
        (lambda: OP.operands, "has no input 2"),
        (lambda: Op("NOOP", (), ()).input, "has no input 0"),
        (lambda: Op("NOOP", (), ()).output, "has no output"),
        (lambda: Op("NEG", (W, S, None), (X,)).first_activation, "op -1 NEG 'x' has no activation among its inputs"),
        (lambda: OP.attributes_as(Quant), "has no attributes of Quant"),
        (lambda: X.values, "tensor -1 'x' int8[1,4] has no values: it is not a constant"),
        (lambda: X.initial_values, "has no initial values: it is not a state"),
        (lambda: S.quantization, "has no quantization"),
        (lambda: S.scale, "has no quantization"),
        (lambda: W.scale, "has no scale for all of it"),
        (lambda: W.zero_point, "has no zero point for all of it"),
        (lambda: given(X.data), "was not given"),
        (lambda: CallSite((None,), (), None, "NULL", str).input(0), "input 0 of its call lies nowhere"),
        (lambda: CallSite((), (), None, "NULL", str).input(1), "input 1 of its call lies nowhere"),
    ],
)
def test_what_is_missing_is_named(asked, text) -> None:
    with pytest.raises(InternalFault) as fault:
        asked()
    assert text in str(fault.value)


def test_a_call_gives_its_views() -> None:
    view = TensorAccess(X, "p", 1)
    site = CallSite((view,), (view,), None, "NULL", str)
    assert site.input(0) is view
    assert site.output is view
