"""verify, where operators call functions of libm: what is exact, what is within a bound, and what is neither."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stream_models import STREAM_MODELS
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.sequence import lstm_real
from tinyfuse.verify.comparison import ulp_distance

LOGISTIC = lstm_real.logistic


def _model(folder: Path, *kinds: str) -> Path:
    """A chain of float32 functions that ends in QUANTIZE: differences in the last bit of a float flip outputs there."""
    builder, shape = ModelBuilder(), (1, 4, 6, 8)
    tensors = [builder.tensor(f"t{i}", shape, "float32") for i in range(len(kinds) + 1)]
    for kind, source, result in zip(kinds, tensors, tensors[1:], strict=False):
        builder.op(kind, [source], [result])
    stored = builder.tensor("stored", shape, "int8", (0.01,), (0,))
    builder.op("QUANTIZE", [tensors[-1]], [stored])
    path = folder / "chain.tflite"
    path.write_bytes(builder.build([tensors[0]], [tensors[-1], stored]))
    return path


def _verified(path: Path) -> tinyfuse.Verification:
    pytest.importorskip("tflite_micro")
    return tinyfuse.compile(path, "host").verify(runs=12)


def test_functions_of_libm_are_within_their_bounds(tmp_path: Path) -> None:
    found = _verified(_model(tmp_path, "LOGISTIC", "TANH"))
    assert (found.exact, found.within_bound, found.problems) == (False, True, ())
    assert found.mismatches > 0 and 1 <= found.max_ulp <= 12
    assert sorted(name.split()[2] for name in found.operator_bounds) == ["LOGISTIC", "TANH"]
    assert all(ulp <= bound for ulp, bound in found.operator_bounds.values())


def test_what_arithmetic_defines_is_exact(tmp_path: Path) -> None:
    found = _verified(_model(tmp_path, "HARD_SWISH", "FLOOR", "ABS", "SQRT"))
    assert (found.exact, found.within_bound, found.max_ulp, found.operator_bounds) == (True, True, 0, {})


def test_an_operator_above_its_bound_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(FAMILIES["TANH"]), "ulp", lambda self, op: 0)
    found = _verified(_model(tmp_path, "LOGISTIC", "TANH"))
    assert (found.exact, found.within_bound) == (False, False)
    assert [problem for problem in found.problems if "above its bound of 0" in problem]


def test_a_module_that_computes_other_bits_than_our_reference_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results may be just as close to the interpreter's."""
    family = type(FAMILIES["TANH"])
    real = family.real
    monkeypatch.setattr(family, "real", lambda self, op, x: np.nextafter(real(self, op, x), np.float32(0)))
    monkeypatch.setattr(family, "ulp", lambda self, op: 100)
    found = _verified(_model(tmp_path, "TANH"))
    assert not found.within_bound
    assert [problem for problem in found.problems if "our own references" in problem]


def test_the_command_ends_well_within_the_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tflite_micro")
    path = _model(tmp_path, "LOGISTIC", "TANH")
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(path), "--target", "host", "--runs", "12"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and text.startswith("within bound: ") and "LOGISTIC" in text


def test_an_lstm_goes_on_from_the_interpreters_results(tmp_path: Path) -> None:
    """The module keeps its own state. Each step is compared with the interpreter's, and several frames with our
    references."""
    path = tmp_path / "lstm.tflite"
    path.write_bytes(STREAM_MODELS["lstm of float32"])
    found = _verified(path)
    assert (found.within_bound, found.problems) == (True, ())
    assert [name.split()[2] for name in found.operator_bounds] == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]


def test_an_lstm_beyond_its_bound_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm_real, "logistic", lambda x: LOGISTIC(x) * np.float32(1 + 2**-17))
    path = tmp_path / "lstm.tflite"
    path.write_bytes(STREAM_MODELS["lstm of float32"])
    found = _verified(path)
    assert not found.within_bound
    assert [problem for problem in found.problems if "above its bound of 24" in problem]


def test_distances_in_units_of_the_last_place() -> None:
    def distance(a: float, b: float) -> int:
        return int(ulp_distance(np.float32([a]), np.float32([b]))[0])

    one, tiny = np.float32(1), np.float32(2.0**-149)
    assert distance(1, 1) == 0 == distance(np.nan, -np.nan)
    assert distance(1, np.nextafter(one, np.float32(2))) == 1 == distance(0.0, -0.0)
    assert distance(tiny, -tiny) == 3
    assert distance(3e38, np.inf) > 0 and distance(1, np.nan) == 1 << 32
