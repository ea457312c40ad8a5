"""A product and a sum with constants a channel in a kernel of their own: alone, and behind a dense layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases.common import operator, tensor
from executors import plan_of
from normalized_networks import layer
from op_harness import TARGETS, assert_exact, cases_of
from test_op_kernels import target_or_skip

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import require_proven
from tinyfuse.kernels.elementwise.scale_and_add import ABOVE, BELOW, ScaledSumMve, _scaled_sum
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.elementwise.merged import merged
from tinyfuse.targets import load_target

#: fours and eights of channels and rests of them, a single one, a single pixel, other ranks
SHAPES = ((1, 3, 4, 16), (1, 2, 5, 13), (1, 4, 1, 3), (1, 2, 6, 1), (2, 3, 2, 4), (3, 7), (1, 64))


def scaled_sum(
    shape: tuple[int, ...], kind: str = "ADD", scale: float = 0.0517, gain: float = 0.02,
    first: bool = False, single: bool = False, activations: tuple[str, str] = ("NONE", "NONE"),
) -> Op:  # fmt: skip
    """A product and a sum. `scale`: of the products, divided by 6.4. `first`: constants are the first operands.
    `single`: constants have one element."""
    rng = np.random.default_rng(len(shape) + shape[-1])

    def constant(size: float, zero_point: int) -> Tensor:
        data = rng.integers(-128, 128, 1 if single else shape[-1]).astype(np.int8)
        return tensor(data.shape, size, zero_point, data=data)

    def on(kind: str, x: Tensor, other: Tensor, result: Tensor, activation: str, index: int) -> Op:
        attributes = FAMILIES[kind].attributes({"fused_activation_function": activation})
        return Op(kind, (other, x) if first else (x, other), (result,), attributes, index)

    x = tensor(shape, 0.05, 9)
    products = on("MUL", x, constant(gain, -4), tensor(shape, scale, -5), activations[0], 0)
    sums = on(kind, products.output, constant(0.0303, 6), tensor(shape, 0.0411, -70), activations[1], 1)
    together = merged((products, sums))
    return operator(together.kind, together.inputs, together.output, together.attributes)


def scaled_sums(shape: tuple[int, ...]) -> list[Op]:
    return [
        scaled_sum(shape),
        scaled_sum(shape, "SUB", first=True),
        scaled_sum(shape, "SUB", single=True, activations=("NONE", "RELU")),
        scaled_sum(shape, scale=0.0107, activations=("RELU6", "NONE")),  # products that leave int8 where sums don't
        scaled_sum(shape, scale=0.407, activations=("RELU", "RELU6")),
    ]


@pytest.mark.parametrize(
    ("target", "flags", "compiler"),
    [*((target, "", "gcc") for target in TARGETS), ("cortex-m55", "-O0", "clang"), ("cortex-m55", "-O3", "clang")],
)
def test_alone(target: str, flags: str, compiler: str, tmp_path: Path) -> None:
    core, rng = target_or_skip(target), np.random.default_rng(1)
    kernel, context = ScaledSumMve(), Context(core, kernels="tinyfuse")
    if not core.mve:
        assert not any(kernel.accepts(op, context) for shape in SHAPES for op in scaled_sums(shape))
        return
    cases = [
        case
        for shape in SHAPES
        for op in scaled_sums(shape)
        for case in cases_of(op, context, [rng.integers(-128, 128, op.input.shape).astype(np.int8)])
        if case.kernel.name == kernel.name
    ]
    assert {case.op.output.shape for case in cases} == set(SHAPES)
    assert_exact(cases, core, tmp_path, flags, compiler)


def test_products_are_clamped_on_the_sides_where_it_makes_a_difference() -> None:
    context = Context(load_target("cortex-m55"))

    def sides(op: Op) -> int:
        return require_proven(_scaled_sum(op)).clamps

    assert ScaledSumMve().accepts(scaled_sum((1, 64)), context)
    assert sides(scaled_sum((1, 64), gain=0.001)) == 0
    assert sides(scaled_sum((1, 64))) == ABOVE  # sums below their least are the least
    assert sides(scaled_sum((1, 64), scale=0.0107, activations=("RELU6", "NONE"))) == BELOW | ABOVE


def test_what_else_a_loop_computes() -> None:
    """A sum without a plane, a product that isn't shifted right, and two products have loops alone."""
    context = Context(load_target("cortex-m55"))
    assert not ScaledSumMve().accepts(scaled_sum((1, 64), gain=900.0), context)
    assert not ScaledSumMve().accepts(scaled_sum((1, 64), "MUL"), context)


def test_behind_a_dense_layer() -> None:
    """Whose tables would take 16 KB."""
    plan = plan_of(layer("dense", 64, True), "cortex-m55")
    assert plan.groups[-1].stages[-1].kernel.name == ScaledSumMve.name
