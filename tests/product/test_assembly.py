"""Asm statements of runtime_c: compilers trust their clobber lists, so a missing register shows in no run."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from asm_statements import AsmStatement, asm_statements

from tinyfuse.targets import load_target
from tinyfuse.toolchain.programs import find_program

RUNTIME_C = Path(__file__).resolve().parents[2] / "runtime_c"
TARGETS = ["cortex-m0plus", "cortex-m4", "cortex-m55"]


@cache
def statements(target: str) -> tuple[AsmStatement, ...]:
    """Asm statements of all headers together, preprocessed for a core."""
    gcc = find_program("arm-none-eabi-gcc")
    if gcc is None:
        pytest.skip("no arm-none-eabi-gcc is installed")
    source = "".join(f'#include "{header.name}"\n' for header in sorted(RUNTIME_C.glob("*.h")))
    command = [gcc, "-E", "-P", "-O2", *load_target(target).flags, f"-I{RUNTIME_C}", "-x", "c", "-"]
    return tuple(
        asm_statements(subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_asm_statements_say_all_that_they_change(target: str) -> None:
    assert statements(target)
    assert not [(found, each.template[:200]) for each in statements(target) if (found := each.faults())]


@pytest.mark.parametrize("target", TARGETS)
def test_a_clobber_that_is_missing_is_seen(target: str) -> None:
    for each in statements(target):
        for name in each.clobbers:
            fewer = replace(each, clobbers=each.clobbers - {name})
            assert fewer.faults() or not re.search(rf"\b{name}\b", each.template), (name, each.template[:200])
    seen = {
        name for each in statements(target) for name in each.clobbers if replace(each, clobbers=frozenset()).faults()
    }
    assert seen >= {"cc", "memory", "r1", *(("q0", "q7", "p0", "lr") if target == "cortex-m55" else ())}
