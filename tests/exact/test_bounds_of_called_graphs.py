"""verify, where the graphs of IF and WHILE call functions of libm: each call of a graph is held against the
interpreter's, operator by operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from control_flow_models import Called, below, flag, number
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.control_flow import WhileFamily
from tinyfuse.verify.bounds import has_bounds
from tinyfuse.verify.oracle import InterpreterOracle

SHAPE = (1, 4, 4, 2)


def _floats(model: ModelBuilder, name: str, data: np.ndarray | None = None) -> int:
    return model.tensor(name, SHAPE, "float32", data=data)


def _chain(*kinds: str) -> Called:
    """Adds a chain of functions to x; returns its result."""
    model = ModelBuilder()
    tensors = [_floats(model, f"t{i}") for i in range(len(kinds) + 1)]
    for kind, source, result in zip(kinds, tensors, tensors[1:], strict=False):
        model.op(kind, [source], [result])
    return model, [tensors[0]], [tensors[-1]]


def _shifted(*kinds: str) -> Called:
    """Graph: x, shift, n -> chain(x) + shift, shift, n + 1. A function may also follow the sum."""
    model, (x,), (y,) = _chain(*kinds)
    shift, total, n = _floats(model, "shift"), _floats(model, "total"), number(model, "n")
    one, after = number(model, "one", 1), number(model, "after")
    model.op("ADD", [y, shift], [total])
    model.op("ADD", [n, one], [after])
    return model, [x, shift, n], [total, shift, after]


def _until(limit: int) -> Called:
    model = ModelBuilder()
    x, shift, n = _floats(model, "x"), _floats(model, "shift"), number(model, "n")
    most, going_on = number(model, "most", limit), flag(model, "going on")
    model.op("LESS", [n, most], [going_on])
    return model, [x, shift, n], [going_on]


def _loop(body: Called, *more: Called, limit: int = 5) -> bytes:
    """A WHILE whose graphs receive a constant that is passed through unchanged."""
    model, shift = ModelBuilder(), np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    x, n, s = _floats(model, "x"), number(model, "n", 0), _floats(model, "s", shift)
    y, s_after, times = _floats(model, "y"), _floats(model, "s after"), number(model, "times")
    model.op("WHILE", [x, s, n], [y, s_after, times], cond_subgraph_index=1, body_subgraph_index=2)
    return model.build([x], [y, times], called=[_until(limit), body, *more])


def _choice(then: Called, otherwise: Called) -> bytes:
    model = ModelBuilder()
    chosen, x, y = flag(model, "chosen"), _floats(model, "x"), _floats(model, "y")
    model.op("IF", [chosen, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    return model.build([chosen, x], [y], called=[then, otherwise])


def _choice_in_loop() -> bytes:
    """A loop of three iterations: the first two take one graph of an IF, the last one the other."""
    model = ModelBuilder()
    x, shift, n, y = _floats(model, "x"), _floats(model, "shift"), number(model, "n"), _floats(model, "y")
    one, after, two, early = number(model, "one", 1), number(model, "after"), number(model, "two", 2), flag(model, "e")
    model.op("ADD", [n, one], [after])
    model.op("LESS", [n, two], [early])
    model.op("IF", [early, x], [y], then_subgraph_index=3, else_subgraph_index=4)
    return _loop((model, [x, shift, n], [y, shift, after]), _chain("LOGISTIC", "ABS"), _chain("TANH"), limit=3)


MODELS = {
    "a loop": lambda: (_loop(_shifted("LOGISTIC", "TANH")), {"in subgraph 2: LOGISTIC", "in subgraph 2: TANH"}),
    "a choice": lambda: (
        _choice(_chain("TANH", "ABS"), _chain("LOGISTIC")), {"in subgraph 1: TANH", "in subgraph 2: LOGISTIC"}
    ),
    "a choice in a loop": lambda: (_choice_in_loop(), {"in subgraph 3: LOGISTIC", "in subgraph 4: TANH"}),
}  # fmt: skip


def _verified(folder: Path, data: bytes) -> tinyfuse.Verification:
    pytest.importorskip("tflite_micro")
    path = folder / "model.tflite"
    path.write_bytes(data)
    return tinyfuse.compile(path, "host").verify(runs=8)


@pytest.mark.parametrize("name", MODELS)
def test_functions_of_libm_in_called_graphs_are_within_their_bounds(name: str, tmp_path: Path) -> None:
    data, operators = MODELS[name]()
    found = _verified(tmp_path, data)
    assert (found.exact, found.within_bound, found.problems) == (False, True, ())
    assert {_without_place(name) for name in found.operator_bounds} == operators
    assert all(ulp <= bound for ulp, bound in found.operator_bounds.values())
    assert any(ulp for ulp, _ in found.operator_bounds.values())


def _without_place(operator: str) -> str:
    where, _, name = operator.partition(": ")
    return f"{where}: {name.split()[2]}"


@pytest.mark.parametrize("name", MODELS)
def test_an_operator_of_a_called_graph_above_its_bound_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(FAMILIES["TANH"]), "ulp", lambda self, op: 0)
    found = _verified(tmp_path, MODELS[name]()[0])
    assert not found.within_bound
    assert [p for p in found.problems if p.startswith("in subgraph") and "TANH" in p and "above its bound of 0" in p]


def test_an_operator_of_a_called_graph_that_has_no_bound_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ADD beside the functions: its reference computes every bit of the interpreter's, or it is told."""
    family, data = type(FAMILIES["ADD"]), MODELS["a loop"]()[0]
    reference = family.reference

    def off_by_one_unit(self, op, *inputs):
        (sum_,) = reference(self, op, *inputs)
        return (np.nextafter(sum_, np.float32(9)) if sum_.dtype == np.float32 else sum_,)

    monkeypatch.setattr(family, "reference", off_by_one_unit)
    found = _verified(tmp_path, data)
    assert not found.within_bound
    assert [p for p in found.problems if "in subgraph 2" in p and "ADD" in p and "differs from the interpreter" in p]


def test_a_loop_that_ends_elsewhere_than_the_interpreters_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = WhileFamily.calls

    def one_too_few(self, op, inputs):
        return calls(self, op, [*inputs[:-1], inputs[-1] + 1])

    monkeypatch.setattr(WhileFamily, "calls", one_too_few)
    found = _verified(tmp_path, MODELS["a loop"]()[0])
    assert not found.within_bound
    assert [p for p in found.problems if "WHILE" in p and "differs from the interpreter" in p]


def test_each_call_is_one_request_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters are asked once for the model and once a call of a graph, however many runs there are."""
    pytest.importorskip("tflite_micro")
    from tinyfuse.verify.bounds import check_operators
    from tinyfuse.verify.emulation.inputs import input_set

    data = MODELS["a loop"]()[0]
    graph = read_tflite("model.tflite", data)
    oracle, asked, infer = InterpreterOracle("tflm", data, graph), [], InterpreterOracle._infer
    monkeypatch.setattr(InterpreterOracle, "_infer", lambda self, i, p: (asked.append(len(i)), infer(self, i, p))[1])
    assert check_operators(graph, oracle, input_set(graph, 4, 0)).broken == ()
    assert asked == [4] * (1 + 6 + 5)


def test_a_state_in_a_called_graph_leaves_no_proof() -> None:
    """Functions in graphs that are never called need no proof."""
    from control_flow_models import choice, iteration, loop, unary

    assert not has_bounds(read_tflite("m", loop(below(5), iteration())))
    assert not has_bounds(read_tflite("m", choice(unary("RELU"), unary("RELU"))))
    assert has_bounds(read_tflite("m", MODELS["a choice in a loop"]()[0]))
