"""Runs our kernels separately, in every way that a plan may call them, and compares with the reference byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from contexts import context_of
from kernel_program import Case, run_program
from overlaps import covered_inputs

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops import FAMILIES
from tinyfuse.targets import Target
from tinyfuse.thinning import pick_evenly

#: where the named cases run
TARGETS = ("host", "cortex-m4", "cortex-m55")


def cases_of(op: Op, context: Context, inputs: list[np.ndarray]) -> Iterator[Case]:
    """Cases of every kernel of ours that accepts `op`, in each of its ways of calling."""
    family = FAMILIES[op.kind]
    streams = all(family.row_window(op, i) is not None for i, t in enumerate(op.inputs) if t in op.activations)
    for kernel in kernels_for(op):
        if kernel.library != "tinyfuse" or not kernel.accepts(op, context):
            continue
        loops = ["whole"] * kernel.whole + ["rows"] * (kernel.by_row and streams)
        assert loops or not kernel.whole, kernel.name
        for how in loops:
            yield Case(op, kernel, inputs, how)
            for i in covered_inputs(op, kernel, how == "rows"):
                if not op.inputs[i].is_constant:
                    yield Case(op, kernel, inputs, how, i)
        if "rows" in loops and kernel.takes_rings(op):
            yield Case(op, kernel, inputs, "rings")


def chosen(cases: list[Case], target: Target, **choices: object) -> list[Case]:
    """The cases with a context of these options, for programs with several contexts."""
    context = context_of(target, kernels="tinyfuse", **choices)
    return [replace(case, context=context) for case in cases]


def assert_exact(
    cases: list[Case], target: Target, folder: Path, flags: str = "", compiler: str = "gcc", **choices: str
) -> None:
    """Checks that every case computes the reference's bytes on the target and writes no other memory. `flags` and
    `compiler` apply to emulated cores; `choices` are fields of the Context for cases without one."""
    assert cases
    verdicts = run_program(cases, context_of(target, kernels="tinyfuse", **choices), folder, flags, compiler)
    wrong = [f"{verdict} {case}" for case, verdict in zip(cases, verdicts, strict=True) if verdict != "."]
    assert not wrong, "\n".join(wrong)


def assert_some_exact(cases: list[Case], target: Target, folder: Path, flags: str, compiler: str) -> None:
    """Runs three cases of each kernel and path, compiled with these flags; a core without DSP keeps r9."""
    alike: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        alike.setdefault((case.kernel.name, case.kernel.path(case.op, True, case.context)), []).append(case)
    flags = flags if target.dsp else flags.replace("-ffixed-r9 ", "")
    assert_exact([case for found in alike.values() for case in pick_evenly(found, 3)], target, folder, flags, compiler)
