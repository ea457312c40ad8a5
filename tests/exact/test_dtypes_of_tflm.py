"""tinyfuse accepts what TensorFlow Lite Micro's kernels accept: the cases of each operator with their data in every
dtype, and each input constant or not, meaningful or not. What the interpreter runs is compiled to the same bytes, or is
listed below with a reason."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest
from cases import NAMED
from cases.common import inputs_of, model_of

from tinyfuse.compiler import check_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.comparison import same_bits, ulp_distance
from tinyfuse.verify.oracle import ReferenceOracle

pytest.importorskip("tflite_micro")

_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint32", "uint64", "float32")

#: (kind, dtype) that the interpreter runs and tinyfuse refuses: why (docs/decisions/18-what-runs-without-meaning.md)
REFUSED = {
    ("GREATER", "int16"): "its multipliers are those of int8, which were never set",
    ("PRELU", "float32"): "of int16 cases, whose alpha stays int8: its bytes would be floats",
    **{
        (kind, dtype): "it takes each byte for a bool"
        for kind in ("LOGICAL_AND", "LOGICAL_OR")
        for dtype in _DTYPES[1:]
    },
}

#: what is refused for another reason than the dtype: the case's quantization, attributes or constants, made for another
_OTHER_REASONS = (
    "scale",
    "zero point",
    "fused activation",
    "no operator is left",
    "the bias is",
    "weights are constant",
    "the output is bool",
)


def in_dtype(op: Op, dtype: str) -> Op:
    """The operator with another dtype for all tensors of the data's dtype."""
    known: dict[Tensor, Tensor] = {}

    def other(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.dtype != op.first_activation.dtype:
            return tensor
        quant = tensor.quant or Quant((0.05,), (0,))
        if dtype == "int16":
            quant = replace(quant, zero_point=(0,) * len(quant.zero_point))
        data = None if tensor.data is None else _converted(tensor.values, dtype)
        made = replace(tensor, dtype=dtype, quant=quant if dtype in ("int8", "int16") else None, data=data)
        return known.setdefault(tensor, made)

    return replace(op, inputs=tuple(map(other, op.inputs)), outputs=tuple(map(other, op.outputs)))


def _converted(values: np.ndarray, dtype: str) -> np.ndarray:
    wide = np.asarray(values, np.float64)
    if dtype == "bool":
        return np.asarray(wide > 0)
    if dtype == "float32":
        return np.asarray(np.clip(wide, -100, 100), np.float32)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(wide, max(limits.min, -(2**40)), min(limits.max, 2**40)), dtype)


def _outcomes(models: list[tuple[bytes, list]]) -> list[list | None]:
    """Outputs of the interpreter for each model, or None if it fails. Runs in a process that it may abort."""
    found: list[list | None] = []
    while len(found) < len(models):
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            with os.fdopen(writes, "wb") as pipe:
                for data, inputs in models[len(found) :]:
                    signal.alarm(10)
                    try:
                        computed = oracle_worker.tflm(data, 1 << 20)(inputs)
                    except Exception:
                        computed = None
                    pickle.dump(computed, pipe)
                    pipe.flush()
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            while len(found) < len(models):
                try:
                    found.append(pickle.load(pipe))
                except EOFError:  # it ended at this model
                    break
        if os.waitpid(child, 0)[1] != 0:
            found.append(None)
    return found


def _refusal(data: bytes) -> str | None:
    try:
        check_graph(read_tflite("model.tflite", data))
    except CompileError as refused:
        return str(refused)
    return None


#: not those that TFLM has no kernels of, whose junk is tested elsewhere, or that have all pairs of dtypes for cases
_KINDS = sorted({kind for kind in NAMED if FAMILIES[kind].in_tflm and "Detection" not in kind} - {"QUANTIZE"})


@pytest.mark.campaign
@pytest.mark.parametrize("kind", _KINDS)
def test_what_the_interpreter_runs_is_compiled(kind: str) -> None:
    ops: dict[tuple[str | None, ...], list[tuple[str, Op]]] = {}
    for name, op in NAMED[kind].items():
        # what are indexes where the data are int32 or int64, the case doesn't say
        if op.activations and op.first_activation.dtype in ("bool", "int8", "int16", "float32"):
            ops.setdefault(tuple(t and t.dtype for t in op.inputs), []).append((name, op))
    tried = [
        (f"{name} in {dtype}", in_dtype(op, dtype), _OTHER_REASONS if (kind, dtype) not in REFUSED else ("",))
        for cases in ops.values() for name, op in cases[:3]
        for dtype in _DTYPES
    ]  # fmt: skip
    assert_compiled(kind, tried)


#: what is a constant of the model then, and no operator
_CONSTANT = ("no operator is left",)
#: inputs that have to be the output's shape, whatever else these bytes would be to the interpreter
_SHAPES = {("SLICE", 2)}


@pytest.mark.campaign
@pytest.mark.parametrize("kind", _KINDS)
def test_what_the_interpreter_computes_is_compiled(kind: str) -> None:
    """Every input that is a constant computed, and the other way round."""
    tried = []
    for name, op in NAMED[kind].items():
        for i, tensor in enumerate(op.inputs):
            if tensor is None or (kind, i) in _SHAPES:
                continue
            values = _converted(np.arange(tensor.elements) % 5, tensor.dtype).reshape(tensor.shape)
            other = replace(tensor, data=None if tensor.is_constant else values)
            inputs = tuple(other if t is tensor else t for t in op.inputs)
            tried.append((f"{name}, input {i}", replace(op, inputs=inputs), _CONSTANT))
    assert_compiled(kind, tried)


def assert_compiled(kind: str, tried: list[tuple[str, Op, tuple[str, ...]]]) -> None:
    """Checks (name, operator, possible reason of a refusal): our reference computes what the interpreter runs."""
    models = [(model_of(op), inputs_of(op)[3]) for _, op, _ in tried]
    wrong = []
    for (name, op, reasons), (data, inputs), wanted in zip(tried, models, _outcomes(models), strict=True):
        refusal = _refusal(data) if wanted is not None else None
        if refusal and not any(reason in refusal for reason in reasons):
            wrong.append(f"{name}: {refusal}")
        if wanted is None or refusal:
            continue
        family = FAMILIES[kind]
        (computed,) = ReferenceOracle(read_tflite("model.tflite", data)).run_all([inputs])
        bound = family.ulp(op)
        for got, right in zip(computed, wanted, strict=True):
            good = (
                same_bits(got, right.reshape(got.shape)).all() if bound is None
                else ulp_distance(got, right, family.ulp_of).max() <= bound
            )  # fmt: skip
            if not good:
                wrong.append(f"{name}: other results")
    assert not wrong, "\n".join(wrong)
