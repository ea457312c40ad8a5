"""Our kernels of the convolution families, on the host under sanitizers and on emulated cores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import FAMILIES, make_op, random_input, random_shape
from kernel_harness import Case, run_cases

from tinyfuse.ops.base import Context
from tinyfuse.targets import Target, load_target


#: the host also runs the C twins of the kernels for Helium
TARGETS = {name: load_target(name) for name in ("host", "cortex-m4", "cortex-m55")}
TARGETS["host-mve"] = replace(TARGETS["host"], mve=True)


def random_cases(kind: str, target: Target, count: int = 40, seed: int = 1) -> list[Case]:
    """Each random operator with every kernel that accepts it."""
    rng = np.random.default_rng(seed)
    context = Context(target, library="tinyfuse")
    cases: list[Case] = []
    while len(cases) < count:
        extreme = bool(rng.random() < 0.3)
        op = make_op(random_shape(kind, rng, explicit_padding=bool(rng.random() < 0.2)), rng, extreme)
        if any(rule.problem(op) for rule in FAMILIES[kind].rules):
            continue
        data = random_input(op, rng, bool(rng.random() < 0.3))
        for kernel in FAMILIES[kind].kernels:
            if kernel.library == "tinyfuse" and kernel.accepts(op, context):
                ring = kernel.by_row and kernel.rings and bool(rng.random() < 0.5)
                cases.append(Case(op, kernel, data, ring, int(rng.integers(0, 4))))
    return cases


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_random_shapes(kind: str, target: str, tmp_path: Path) -> None:
    needed = ["gcc"] if target.startswith("host") else ["arm-none-eabi-gcc", "qemu-system-arm"]
    if any(shutil.which(tool) is None for tool in needed):
        pytest.skip(f"needs {' and '.join(needed)}")
    cases = random_cases(kind, TARGETS[target])
    for case, result in zip(cases, run_cases(cases, TARGETS[target], tmp_path), strict=True):
        assert (result.wrong, result.damaged) == (0, 0), (case.kernel.name, str(case.op), case)
