"""Kernels that call another one keep what that one declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conv_cases import Shape, make_op, model_of
from executors import plan_of

from tinyfuse.emit import emit
from tinyfuse.kernels.core.each_image import EachImage
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.core.wrapper import CALLED_WHOLE, DECLARED, Wrapper
from tinyfuse.kernels.registry import KERNELS

_KERNELS = [kernel for of_kind in KERNELS.values() for kernel in of_kind]


def test_a_batch_keeps_what_a_kernel_declares() -> None:
    for kernel in _KERNELS:
        wrapped = EachImage(kernel)
        for name in set(DECLARED) - CALLED_WHOLE.keys():
            assert getattr(wrapped, name) == getattr(kernel, name), f"{kernel.name}: {name}"
        assert (wrapped.by_row, wrapped.whole) == (False, True)


def test_every_attribute_that_kernels_have_is_declared() -> None:
    plain = {name for name, value in vars(Kernel).items() if not name.startswith("_") and isinstance(value, _PLAIN)}
    assert plain <= set(DECLARED)


_PLAIN = (bool, int, str, tuple, Path, type(None))


def test_an_attribute_that_no_kernel_declares_is_refused() -> None:
    with pytest.raises(TypeError, match="kernels declare no speed"):
        Wrapper.__init__(EachImage(_KERNELS[0]), _KERNELS[0], speed=1)


def test_loops_that_spill_stand_apart_in_a_batch_too() -> None:
    """A group whose kernel no_inline is a function of its own, for one image as for two."""
    for batch in (1, 2):
        shape = Shape("CONV_2D", 6, 7, 8, 8, (3, 3), groups=2, batch=batch)
        plan = plan_of(model_of(make_op(shape, np.random.default_rng(2))), "cortex-m4", kernels="tinyfuse")
        assert "static TINYFUSE_APART" in emit(plan)["net.c"], batch
