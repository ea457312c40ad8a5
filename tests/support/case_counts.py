"""How many cases of each operator the tests compare byte for byte, counted in the tables that they
iterate over: nobody writes such a number by hand.

    python tests/support/case_counts.py     writes tinyfuse/report/tested_cases.json

tests/product/test_operators.py fails while it is out of date. What is tested elsewhere than in
tests/support/cases adds its table to `case_counts`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]

if __name__ == "__main__":
    sys.path[:0] = [str(_ROOT), str(_HERE), str(_HERE.parent / "exact")]

import control_flow_models
import conv_cases
import decode_encoders
import layer_cases
import signal_models
import stream_models
import test_conv_kernels
import uint8_models
from cases import NAMED
from cases.common import inputs_of
from op_harness import TARGETS, cases_of

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.report.operators import TESTED_CASES, case_places
from tinyfuse.targets import load_target


def case_counts() -> dict[str, dict[str, int]]:
    """kind -> {place: number of cases}: places are "tflm" or "litert", and the targets on which kernels run."""
    counts: dict[str, dict[str, int]] = {}
    contexts = {name: Context(load_target(name), kernels="tinyfuse") for name in TARGETS}
    for kind, ops in NAMED.items():
        counts[kind] = {case_places(FAMILIES[kind])[0]: len(ops)}
        for name, context in contexts.items():
            run = [op for op in ops.values() if any(cases_of(op, context, inputs_of(op)[0]))]
            counts[kind][name] = len(run)
    for kind in conv_cases.FAMILIES:
        drawn = (conv_cases.tflm_cases(kind, extreme, dtype) for extreme in (False, True) for dtype in ("int8", "int4"))
        counts[kind] = {"tflm": sum(map(len, drawn))}
        for name in TARGETS:
            cases = test_conv_kernels.random_cases(kind, load_target(name))
            counts[kind][name] = len({case.op for case in cases})
    for kind, ops in layer_cases.NAMED.items():  # in other dtypes
        for name in case_places(FAMILIES[kind]):
            counts[kind][name] += len(ops)
    counts[decode_encoders.KIND] = {"tflm": len(decode_encoders.CASES)}
    for kind, models in stream_models.of_kinds().items():  # everywhere: tests/exact/test_streams.py
        counts[kind] = dict.fromkeys(case_places(FAMILIES[kind]), len(models))
    for kind, models in control_flow_models.of_kinds().items():  # everywhere: tests/exact/test_control_flow.py
        counts[kind] = dict.fromkeys(case_places(FAMILIES[kind]), len(models))
    for kind, operators in signal_models.of_kinds().items():  # everywhere: tests/exact/test_signal.py
        counts[kind] = dict.fromkeys(case_places(FAMILIES[kind]), operators)
    return counts


def dtype_counts() -> dict[str, dict[str, int]]:
    """kind -> {dtype of the data: number of cases compared with an interpreter}, for operators with their own cases."""
    found: dict[str, Counter[str]] = {}
    for table in (NAMED, layer_cases.NAMED):
        for kind, ops in table.items():
            found.setdefault(kind, Counter()).update(_dtype(op) for op in ops.values())
    for kind in conv_cases.FAMILIES:
        for extreme in (False, True):
            for dtype, label in (("int8", "int8"), ("int4", "int8 x int4")):
                found.setdefault(kind, Counter())[label] += len(conv_cases.tflm_cases(kind, extreme, dtype))
    for kind, models in uint8_models.CASES.items():  # against LiteRT: tests/exact/test_uint8.py
        found.setdefault(kind, Counter())["uint8"] += len(models)
    return {kind: dict(sorted(counts.items())) for kind, counts in found.items()}


def _dtype(op: Op) -> str:
    """Dtype of the operand that is computed at run time; if all are constant, or only select others, of the output."""
    return op.output.dtype if op.kind == "SELECT_V2" else (op.activations or op.outputs)[0].dtype


def counts_text() -> str:
    """Text of the file, one line for each operator, so that changes of several operators don't conflict."""
    counts: dict[str, dict[str, Any]] = dict(case_counts())
    for kind, dtypes in dtype_counts().items():
        counts[kind] = {**counts[kind], "dtypes": dtypes}
    lines = (f'  "{kind}": {json.dumps(of_kind)}' for kind, of_kind in sorted(counts.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TESTED_CASES.write_text(counts_text())
