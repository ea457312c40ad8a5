"""LSTM and SVDF whose weights or biases a run computes, detections whose anchors and signal operators whose tables it
computes, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from cases.common import flexbuffer
from computed_parameter_models import MEMORY, TABLES
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

import tinyfuse


@pytest.mark.parametrize("name", MEMORY)
def test_references_with_memory_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MEMORY[name](), runs=8)


_SHORT = ("lstm int8, weights of inputs", "lstm float32, all", "svdf int16, all")


@pytest.mark.parametrize("name", [n if n in _SHORT else pytest.param(n, marks=pytest.mark.campaign) for n in MEMORY])
def test_modules_with_memory_are_exact(name: str) -> None:
    assert_exact(plan_of(MEMORY[name]()), runs=8)


def test_a_module_with_memory_is_exact_on_a_core() -> None:
    assert_exact(plan_of(MEMORY["lstm int16, all"](), "cortex-m4"), runs=8)


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
