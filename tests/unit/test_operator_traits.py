"""Traits of operators are declared by their families: no other code lists kinds, except the kernels' registry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cases import NAMED
from cases.common import inputs_of

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES

ROOT = Path(__file__).resolve().parent.parent.parent
#: where kinds are listed: what they mean, how C computes them, and the checker, which shares no code with the plan
#: and so says a second time which rows each kind reads (docs/decisions/08-the-checker-shares-no-code.md)
LISTS = (
    "tinyfuse/ops/",
    "tinyfuse/kernels/tables/",
    "tinyfuse/frontend/onnx/",  # which operators nodes of other names become
    "tinyfuse/frontend/executorch/",
    "tinyfuse/plan/check/rows.py",
    "tinyfuse/plan/check/scratch.py",
    "tinyfuse/cost/slowest.py",  # measured figures
    "tinyfuse/ir/fixedpoint.py",  # names of fused activations, some of which are kinds too
)


def kinds_in(node: ast.AST) -> set[str]:
    return {
        part.value
        for part in ast.iter_child_nodes(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value in FAMILIES
    }


def lists_of_kinds(text: str) -> Iterator[int]:
    """Lines with sequences, sets or dicts of several kinds, or with conditions that compare with several."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and len(kinds_in(node)) > 1:
            yield node.lineno
        elif isinstance(node, ast.BoolOp):
            compared = [kinds_in(part) for part in ast.walk(node) if isinstance(part, ast.Compare)]
            if len(set().union(*compared)) > 1:
                yield node.lineno


def test_no_lists_of_kinds() -> None:
    found = [
        f"{name}:{line}"
        for file in sorted((ROOT / "tinyfuse").rglob("*.py"))
        if not (name := file.relative_to(ROOT).as_posix()).startswith(LISTS)
        for line in lists_of_kinds(file.read_text())
    ]
    assert not found, f"ask a trait of the family (tinyfuse/ops/core/family.py) instead: {found}"


@pytest.mark.parametrize(
    "text",
    [
        'if op.kind in ("RELU", "RELU6"): pass',
        'KINDS = frozenset({"ADD", "MUL"})',
        'KINDS = ["ADD", "MUL"]',
        'SPLITS = {"ADD": f, "MUL": g}',
        'found = op.kind == "ADD" or op.kind == "MUL"',
    ],
)
def test_a_list_of_kinds_would_be_seen(text: str) -> None:
    assert list(lists_of_kinds(text))


def test_one_kind_is_no_list() -> None:
    assert not list(lists_of_kinds('if op.kind == "ADD" and name in ("a", "b"): pass'))


# --- what traits promise ---------------------------------------------------------------------


def test_a_layer_says_where_its_weights_are() -> None:
    for family in FAMILIES.values():
        layer = family.channel_axis is not None
        assert not layer or family.data_and_weights == (0, 1), family.kind
        assert layer or not (family.convolution or family.depthwise), family.kind


def test_what_moves_elements_computes_nothing() -> None:
    moving = [family for family in FAMILIES.values() if family.moves(Op("", (None, None, None), ()))]
    assert {"CONCATENATION", "TRANSPOSE", "RESHAPE", "SPLIT"} <= {family.kind for family in moving}
    assert not any(family.elementwise or family.data_and_weights for family in moving)


def test_channels_pass_through_a_vector_under_another_shape() -> None:
    def reshape(before: tuple[int, ...], after: tuple[int, ...]) -> Op:
        return Op("RESHAPE", (Tensor("x", before, "int8"),), (Tensor("y", after, "int8"),))

    passes = FAMILIES["RESHAPE"].passes_channels
    assert passes(reshape((1, 1, 1, 8), (1, 8)))
    assert not passes(reshape((1, 2, 2, 8), (1, 32)))
    assert not passes(reshape((1, 2, 2, 8), (4, 8)))
    assert not passes(reshape((1, 1), ()))  # a scalar has no channels


def test_elementwise_families_take_one_element_after_the_other() -> None:
    for family in FAMILIES.values():
        if family.elementwise:
            op = Op(family.kind, (Tensor("x", (1, 2, 3, 4), "int8"),), (Tensor("y", (1, 2, 3, 4), "int8"),))
            window = family.row_window(op, 0)
            assert window is not None, family.kind
            assert np.array_equal([window.first(y) for y in range(2)], [0, 1]), family.kind


def test_pointwise_families_take_what_lies_at_one_place() -> None:
    """Moved places move the results: so a rewrite may try them with any values side by side."""
    rng = np.random.default_rng(0)
    pointwise = [family for family in FAMILIES.values() if family.pointwise]
    for family in pointwise:
        for op in NAMED[family.kind].values():
            if op.output.dtype == "bool" or any(t.shape != op.output.shape for t in op.operands):
                continue
            values = inputs_of(op)[3]
            known = dict(zip(op.activations, values, strict=True))
            arrays = [known.get(t, t.data) for t in op.operands]
            order = rng.permutation(op.output.elements)
            moved = [a.reshape(-1)[order].reshape(a.shape) for a in arrays]
            (before,), (after,) = family.reference(op, *arrays), family.reference(op, *moved)
            np.testing.assert_array_equal(np.asarray(before).reshape(-1)[order], np.asarray(after).reshape(-1))
    assert len(pointwise) > 15
