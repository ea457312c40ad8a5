"""The layers in int16 and float32 (layer_cases.py): references against TFLM's interpreter, kernels against these."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases.common import broken_rules, references
from layer_cases import DTYPES, NAMED, layer_inputs, random_ops
from op_harness import Case, assert_exact, cases_of
from other_dtypes import model_bytes

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.targets import load_target

_OPS = [op for ops in NAMED.values() for op in ops.values()]
_NAMED = [pytest.param(op, id=f"{kind}-{name}") for kind, ops in NAMED.items() for name, op in ops.items()]
#: the host also runs the C twins of what uses Helium
TARGETS = {name: load_target(name) for name in ("host", "cortex-m0plus", "cortex-m4", "cortex-m55")}
TARGETS["host-twins"] = replace(TARGETS["host"], dsp=True, mve=True)
_NO_TWINS = ("host-twins", "float32")


def file_of(op: Op) -> bytes:
    return model_bytes(Graph("", "", (op,), op.activations, op.outputs))


def assert_reference_is_tflm(op: Op) -> None:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    assert broken_rules(op) == []
    interpreter = runtime.Interpreter.from_bytes(file_of(op), arena_size=1 << 20)
    for inputs in layer_inputs(op):
        interpreter.set_input(inputs[0], 0)
        interpreter.invoke()
        (got,) = references(op, inputs)
        wanted = interpreter.get_output(0)
        assert (got.dtype, got.shape) == (op.output.dtype, op.output.shape) == (wanted.dtype, wanted.shape)
        # bytes: floats too, the sign of zero included
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8), err_msg=f"{op} {op.attributes}")


@pytest.mark.parametrize("op", _NAMED)
def test_reference_equals_tflm(op: Op) -> None:
    assert_reference_is_tflm(op)


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_reference_equals_tflm(dtype: str) -> None:
    for op in random_ops(dtype, 45):
        assert_reference_is_tflm(op)


@pytest.mark.parametrize("op", _NAMED)
def test_options_are_read_back(op: Op) -> None:
    graph = read_tflite("model.tflite", file_of(op))
    assert (graph.ops[0].kind, graph.ops[0].attributes) == (op.kind, op.attributes)


@pytest.mark.parametrize(
    ("target", "dtype"), [(target, dtype) for target in TARGETS for dtype in DTYPES if (target, dtype) != _NO_TWINS]
)
def test_kernels(target: str, dtype: str, tmp_path: Path) -> None:
    """Whole, by rows, from rings and in place, under sanitizers on the host; on a core in one of these ways."""
    needed = ["gcc"] if target.startswith("host") else ["arm-none-eabi-gcc", "qemu-system-arm"]
    if any(shutil.which(tool) is None for tool in needed):
        pytest.skip(f"needs {' and '.join(needed)}")
    core = TARGETS[target]
    context = Context(core, kernels="tinyfuse")
    cases: list[Case] = []
    for number, op in enumerate(op for op in (*_OPS, *random_ops(dtype, 12)) if op.output.dtype == dtype):
        inputs = layer_inputs(op, number)
        ways = list(cases_of(op, context, inputs[0]))
        if target == "host-twins":
            cases += [case for case in ways if "_mve_" in case.kernel.name]
        elif target == "host":
            cases += ways + [case for data in inputs[2:] for case in list(cases_of(op, context, data))[:1]]
        else:  # the last way that a kernel offers is the hardest
            cases += {case.kernel: case for case in ways}.values()
    assert_exact(cases, core, tmp_path)
