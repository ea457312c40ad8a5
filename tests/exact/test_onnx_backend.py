"""onnx's own tests of operators: each node that is supported computes what onnx says, or is refused.

pytest --campaign tests/exact/test_onnx_backend.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

from tinyfuse.compiler import check_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.read_model import read_model
from tinyfuse.verify.oracle import ReferenceOracle

pytestmark = pytest.mark.campaign  # collecting onnx's tests alone takes ten seconds


@cache
def cases() -> tuple[Any, ...]:
    """Tests of onnx whose nodes are all of supported kinds."""
    found = collect_testcases(None)
    return tuple(case for case in found if {node.op_type for node in case.model.graph.node} <= set(KINDS))


def outcomes(chosen: Iterator[Any]) -> Counter[str]:
    """Count cases that pass and are refused; fail where results are others than onnx's."""
    counts: Counter[str] = Counter()
    for case in chosen:
        try:
            graph = check_graph(read_model("model.onnx", case.model.SerializeToString()))
        except CompileError as refusal:
            assert all(problem.message for problem in refusal.problems), case.name
            counts["refused"] += 1
            continue
        for inputs, outputs in case.data_sets:
            arrays = [np.asarray(a, t.dtype).reshape(t.shape) for a, t in zip(inputs, graph.inputs, strict=True)]
            for wanted, found in zip(outputs, ReferenceOracle(graph).run(arrays), strict=True):
                compare = np.testing.assert_array_equal
                if found.dtype == np.float32:
                    compare = lambda a, b: np.testing.assert_allclose(a, b, case.rtol, case.atol)  # noqa: E731, B023
                compare(found, np.asarray(wanted))
        counts["passed"] += 1
    return counts


def test_no_case_of_onnx_has_another_result() -> None:
    assert outcomes(iter(cases()))["passed"] >= 90
