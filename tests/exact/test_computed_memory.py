"""LSTM and SVDF whose weights or biases a run computes, detections whose anchors and signal operators whose tables it
computes, against TensorFlow Lite Micro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import stream_models
from cases import NAMED
from cases.common import flexbuffer, model_of
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

import tinyfuse


def computing(make: Callable[[], bytes], *words: str) -> bytes:
    """What `make` makes, with inputs in the place of constants whose names have one of these words in them."""

    class Computing(ModelBuilder):
        def tensor(self, name, *args, data=None, **fields):
            given = data is not None and any(word in name for word in words)
            made = super().tensor(name, *args, data=None if given else data, **fields)
            self.given = [*getattr(self, "given", []), *([made] if given else [])]
            return made

        def build(self, inputs, outputs, **fields):
            return super().build([*inputs, *self.given], outputs, **fields)

    with patch.object(stream_models, "ModelBuilder", Computing):
        return make()


def lstm(dtype: str, *words: str, **how) -> bytes:
    return computing(lambda: stream_models.lstm((2, 3, 5), 4, dtype=dtype, **how), *words)


def svdf(state: str, *words: str) -> bytes:
    return computing(lambda: stream_models.svdf(state, (2, 5, 3, 2, 4), 0.02), *words)


def real_svdf(activation: str, *words: str) -> bytes:
    return computing(lambda: stream_models.real_svdf((2, 5, 3, 2, 4), activation), *words)


MEMORY = {
    "lstm int8, all": lambda: lstm("int8", "lstm"),
    "lstm int8, weights of inputs": lambda: lstm("int8", "0.012"),
    "lstm int8, one bias": lambda: lstm("int8", "cell_bias", time_major=True),
    "lstm int16, all": lambda: lstm("int16", "lstm"),
    "lstm int16, one weight": lambda: lstm("int16", "forget_0.02"),
    "lstm float32, all": lambda: lstm("float32", "lstm"),
    "lstm float32, biases": lambda: lstm("float32", "bias"),
    "svdf int16, all": lambda: svdf("int16", "svdf"),
    "svdf int16, time": lambda: svdf("int16", "time"),
    "svdf int8, features": lambda: svdf("int8", "features"),
    "svdf int8, bias": lambda: svdf("int8", "bias"),
    "svdf float32": lambda: real_svdf("RELU", "features", "bias"),
    "svdf float32, tanh": lambda: real_svdf("TANH", "time"),
}


@pytest.mark.parametrize("name", MEMORY)
def test_references_with_memory_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MEMORY[name](), runs=8)


_SHORT = ("lstm int8, weights of inputs", "lstm float32, all", "svdf int16, all")


@pytest.mark.parametrize("name", [n if n in _SHORT else pytest.param(n, marks=pytest.mark.campaign) for n in MEMORY])
def test_modules_with_memory_are_exact(name: str) -> None:
    assert_exact(plan_of(MEMORY[name]()), runs=8)


def test_a_module_with_memory_is_exact_on_a_core() -> None:
    assert_exact(plan_of(MEMORY["lstm int16, all"](), "cortex-m4"), runs=8)


_TABLES = {
    "CUSTOM SignalWindow": [(1,)], "CUSTOM SignalPCAN": [(2,)], "CUSTOM TFLite_Detection_PostProcess": [(2,)],
    "CUSTOM SignalFilterBank": [(1,), (2, 3), (4,), (5,), (1, 2, 3, 4, 5)],
}  # fmt: skip
TABLES = {
    f"{kind}, {name}, inputs {places}": model_of(
        replace(op, inputs=tuple(replace(t, data=None) if i in places else t for i, t in enumerate(op.inputs)))
    )
    for kind, all_places in _TABLES.items()
    for places in all_places
    for name, op in list(NAMED[kind].items())[:2]
}


@pytest.mark.parametrize("name", TABLES)
def test_references_with_tables_are_tflms(name: str) -> None:
    assert_reference_is_tflm(TABLES[name])


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_with_tables_are_exact(target: str) -> None:
    assert_all_exact([plan_of(data, target, f"net{i}") for i, data in enumerate(TABLES.values())])


@pytest.mark.parametrize(
    "tables", [([5], [0], [2]), ([-1], [0], [1]), ([0], [3], [1]), ([0], [-1], [1]), ([0], [0], [32767])]
)
def test_channels_that_read_what_does_not_exist_end_the_run(tables: tuple[list[int], ...]) -> None:
    model = ModelBuilder()
    energies = model.tensor("energies", (6,), "uint32")
    weights = [model.tensor(name, (3,), "int16", data=np.ones(3, np.int16)) for name in ("weights", "unweights")]
    names = ("bins", "starts", "widths")
    others = [model.tensor(name, (2,), "int16") for name in names]
    y = model.tensor("y", (1,), "uint64")
    options = {"custom_options": flexbuffer({"num_channels": 1}), "custom_code": "SignalFilterBank"}
    model.op("CUSTOM", [energies, *weights, *others], [y], table=False, **options)
    module = tinyfuse.compile(model.build([energies, *others], [y]), "host")
    given = {name: np.array([0, *values], np.int16) for name, values in zip(names, tables, strict=True)}
    with pytest.raises(tinyfuse.TinyfuseError, match="run returned"):
        module.run({"energies": np.ones(6, np.uint32), **given}, emulator="host")
