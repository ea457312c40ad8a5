"""Violations of MISRA C:2012 in generated modules are those that misra_deviations.toml gives reasons for.

cppcheck's addon finds them. Modules of the five models in examples/models are checked, for cortex-m4.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tinyfuse
from tinyfuse.evidence.deviations import load_deviations

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
NAMES = ("kws", "ic", "vww", "ad", "ww")

_VIOLATION = re.compile(r"^(\S+?):\d+:\d+: .*\[misra-c2012-([\d.]+)\]$", re.M)


def violations(name: str, folder: Path) -> Counter[tuple[str, str]]:
    """Number of violations by (rule, file) in the module of a model, which is generated into the folder."""
    tinyfuse.compile(MODELS / f"{name}.tflite", "cortex-m4").write(folder)
    command = ["cppcheck", "--addon=misra", "--enable=style", "--std=c99", "--platform=unix32"]
    found = subprocess.run(
        [*command, "-D__ARM_FEATURE_DSP=1", "-I.", f"{name}.c"], cwd=folder, capture_output=True, text=True, check=True
    )
    pairs = _VIOLATION.findall(found.stderr)
    assert pairs, found.stderr[-1000:]  # a tool that finds nothing did not run
    return Counter((rule, "NAME" + file[len(name) :] if file.startswith(f"{name}.") else file) for file, rule in pairs)


@pytest.mark.skipif(not shutil.which("cppcheck"), reason="needs cppcheck with its addon for MISRA")
def test_each_violation_has_a_reason(tmp_path) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = set().union(*pool.map(lambda name: violations(name, tmp_path / name), NAMES))
    listed = {(each.rule, file) for each in load_deviations() for file in each.files}
    assert not found - listed, f"rules broken without a reason in misra_deviations.toml: {sorted(found - listed)}"
    assert not listed - found, f"entries of misra_deviations.toml that nothing needs: {sorted(listed - found)}"


def test_deviations_are_complete_and_in_order() -> None:
    deviations = load_deviations()
    rules = [tuple(map(int, each.rule.split("."))) for each in deviations]
    assert rules == sorted(set(rules))
    for each in deviations:
        assert each.category in ("required", "advisory") and each.files
        assert len(each.reason) > 40 and each.reason.endswith(".")
