"""Kernels that wrap another kernel keep all that it declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases.matrices import transpose_conv
from conv_cases import Shape, make_op, model_of
from executors import plan_of

from tinyfuse.cost import cost_table
from tinyfuse.emit import emit
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.core.wrapper import DECLARED, EachImage, WholeWrapper, Wrapper
from tinyfuse.kernels.layers.int8_dsp.conv import PackedConvRow
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import TransposeConvPointwiseRow, TransposeConvRow
from tinyfuse.kernels.registry import KERNELS, kernels_for
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN
from tinyfuse.schedule.kernel_choice.select import whole_kernel
from tinyfuse.targets import load_target

_KERNELS = [kernel for of_kind in KERNELS.values() for kernel in of_kind]


def test_a_batch_keeps_what_a_kernel_declares() -> None:
    for kernel in _KERNELS:
        wrapped = EachImage(kernel)
        for name in set(DECLARED) - vars(WholeWrapper).keys():
            assert getattr(wrapped, name) == getattr(kernel, name), f"{kernel.name}: {name}"
        assert (wrapped.by_row, wrapped.whole) == (False, True)


def test_every_attribute_that_kernels_have_is_declared() -> None:
    values = (vars(KernelCosts) | vars(Kernel)).items()
    plain = {name for name, value in values if not name.startswith("_") and isinstance(value, _PLAIN)}
    assert plain <= set(DECLARED)


_PLAIN = (bool, int, str, tuple, Path, type(None))


def test_a_wrapper_answers_every_question_that_kernels_do() -> None:
    members = vars(KernelCosts) | vars(Kernel)
    asked = {name for name, member in members.items() if callable(member) or isinstance(member, property)}
    assert {name for name in asked if not name.startswith("_")} <= vars(Wrapper).keys()


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_has_the_code_that_one_image_has(batch: int) -> None:
    """For short and long rows: compares the code's name, the path to its bytes, and the functions that it calls."""
    context = Context(load_target("cortex-m4"))
    for channels in (3, 8):
        shape = Shape("CONV_2D", 6, 7, channels, 8, (3, 3), batch=batch)
        op = make_op(shape, np.random.default_rng(2))
        kernel = next(k for k in kernels_for(op) if k.name == "tinyfuse_conv_packed_row_s8")
        image = replace(op, inputs=(replace(op.input, shape=(1, *op.input.shape[1:])), *op.inputs[1:]),
                        outputs=(replace(op.output, shape=(1, *op.output.shape[1:])),))  # fmt: skip
        one = PackedConvRow()
        assert kernel.own_code(op) == one.own_code(image) == (channels == 3)
        assert kernel.code_path(op, False, context) == one.code_path(image, True, context)
        assert kernel.copy_of_code(op, context) == one.copy_of_code(image, context)
        assert kernel.windows_by(op, context) == one.windows_by(image, context)
        assert kernel.single_calls_as(op) == one.single_calls_as(image)
        assert kernel.calls_too(op) == one.calls_too(image)


def test_an_attribute_that_no_kernel_declares_is_refused() -> None:
    with pytest.raises(TypeError, match="kernels declare no speed"):
        Wrapper.__init__(EachImage(_KERNELS[0]), _KERNELS[0], speed=1)


def test_loops_that_spill_stand_apart_in_a_batch_too() -> None:
    """A group with such a kernel is a function of its own, for one image as for two."""
    for batch in (1, 2):
        shape = Shape("CONV_2D", 6, 7, 8, 8, (3, 3), groups=2, batch=batch)
        plan = plan_of(model_of(make_op(shape, np.random.default_rng(2))), "cortex-m4", kernels="tinyfuse")
        assert "static TINYFUSE_APART" in emit(plan)["net.c"], batch


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_transposed_convolutions_without_overlaps_are_pointwise(target: str) -> None:
    """They took more than eight instructions a multiplication on Cortex-M4. Overlapping kernels are added tap by tap."""
    context, table = Context(load_target(target)), cost_table(load_target(target).cost_table)
    assert table is not None
    apart, overlapping = (transpose_conv((1, 8, 8, 16), 8, (size, size), (2, 2)) for size in (2, 3))
    kernel, by_row = whole_kernel(apart, context)
    assert by_row and "pointwise" in kernel.name
    cost, plain = (table.kernel(apart, each, True, context) for each in (kernel, TransposeConvRow()))
    assert cost is not None and plain is not None and cost < 0.6 * plain
    assert whole_kernel(overlapping, context)[0].name == TransposeConvRow.name


def test_their_rounding_is_the_layers() -> None:
    op = transpose_conv((1, 8, 8, 16), 8, (2, 2), (2, 2))
    op = replace(op, attributes=replace(op.attributes, rounding=FLOAT_HALF_EVEN))
    wrapped = [kernel for kernel in KERNELS["TRANSPOSE_CONV"] if isinstance(kernel, TransposeConvPointwiseRow)]
    assert wrapped and {kernel.inner(op).attributes.rounding for kernel in wrapped} == {FLOAT_HALF_EVEN}
