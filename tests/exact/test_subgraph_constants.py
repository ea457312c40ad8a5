"""Constants that IF and WHILE hand to their graphs are read where they lie."""

from __future__ import annotations

import pytest
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from subgraph_constant_models import HANDED, handed_weights

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops.program.control_flow import called_graphs, given_values
from tinyfuse.rewrite.fold_constants import fold_constants


@pytest.mark.parametrize("name", HANDED)
def test_reference_equals_tflm(name: str) -> None:
    assert_reference_is_tflm(HANDED[name](), runs=8)


@pytest.mark.parametrize(("fusion", "target"), [("none", "host"), ("rows", "host"), ("rows", "cortex-m4")])
def test_modules_are_exact(fusion: str, target: str) -> None:
    assert_all_exact([plan_of(make(), target, f"m{i}", fusion=fusion) for i, make in enumerate(HANDED.values())])


def test_weights_are_not_copied_into_the_arena() -> None:
    """The weights take 4,096 bytes; inputs, output and the graph's arena less than a fourth of that."""
    assert plan_of(handed_weights(), "cortex-m4").arena_bytes < 1024


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("to one of two", False),
        ("to graphs of two choices", True),
        ("to a loop", False),
        ("to a loop that changes it", True),
    ],
)
def test_constants_of_graphs_that_keep_them(name: str, stays: bool) -> None:
    graph = fold_constants(read_tflite("m.tflite", HANDED[name]()))
    handed = [t for op in graph.ops if called_graphs(op) for t in given_values(op) if t is not None and t.is_constant]
    assert any(tensor.dtype == "int8" for tensor in handed) is stays
