"""Models without inputs: what they count, and constants; against TensorFlow Lite Micro."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.emit.forms import FORMS
from tinyfuse.errors import CompileError


def counter(dtype: str = "int8") -> bytes:
    """A variable that each run increments."""
    model = ModelBuilder()
    quant = (0.5, 3) if dtype == "int8" else (None, None)
    handle, one = model.tensor("h", (), "resource"), np.array([[5, 6, 7, 8]], dtype)
    before, after = (model.tensor(name, (1, 4), dtype, *quant) for name in ("before", "y"))
    model.op("VAR_HANDLE", [], [handle], shared_name="count", container="")
    model.op("READ_VARIABLE", [handle], [before])
    model.op("ADD", [before, model.tensor("one", (1, 4), dtype, *quant, data=one)], [after])
    model.op("ASSIGN_VARIABLE", [handle, after], [])
    return model.build([], [after])


def constants() -> bytes:
    """A model that adds constants."""
    model = ModelBuilder()
    a = model.tensor("a", (2, 3), "int8", 0.1, 3, data=np.arange(6).reshape(2, 3).astype(np.int8))
    y = model.tensor("y", (2, 3), "int8", 0.2, 3)
    model.op("ADD", [a, a], [y])
    return model.build([], [y])


MODELS: dict[str, Callable[[], bytes]] = {
    "counter": counter,
    "of floats": lambda: counter("float32"),
    "constants": constants,
}


@pytest.mark.parametrize("name", MODELS)
def test_references_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MODELS[name]())


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_are_exact(target: str) -> None:
    assert_exact(plan_of(counter(), target))
    assert_all_exact([plan_of(constants(), target)])


def test_all_that_is_written_compiles(tmp_path: Path) -> None:
    """Compiles each output form, a self-test and a board's program."""
    for name, make in MODELS.items():
        module = tinyfuse.compile(make(), "host", name="net")
        module.write(tmp_path / name, selftest=True, board=True)
        flags = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only")
        files = sorted((tmp_path / name).glob("*.c"))
        subprocess.run(["gcc", *flags, *files], check=True)
    for form in FORMS:
        tinyfuse.compile(counter(), "cortex-m4", name="net").write(tmp_path / form, formats=[form])


def test_verify_and_run() -> None:
    module = tinyfuse.compile(counter(), "host")
    found = module.verify(emulator="host", runs=4)
    assert found.exact
    assert module.run({}, emulator="host").in_order[0].tolist() == [[5, 6, 7, 8]]
    with pytest.raises(tinyfuse.TinyfuseError, match="has no inputs|has no input"):
        module.run({"x": np.zeros(3, np.int8)}, emulator="host")


@pytest.mark.parametrize("options", [{"feed_rows": True}, {"slide": 1}], ids=str)
def test_what_needs_an_input_is_refused(options: dict) -> None:
    with pytest.raises(CompileError, match="no input"):
        plan_of(constants(), **options)
