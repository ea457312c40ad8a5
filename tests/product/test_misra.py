"""Violations of MISRA C:2012 in generated modules are those that misra_deviations.toml gives reasons for.

cppcheck's addon finds them. CI checks the five models of examples/models and two others for cortex-m4; `--campaign`
checks modules that together call every kernel on every path, other interfaces, and two other targets, too.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from compiler_modules import modules
from executors import plan_of
from scripts import scripts_of
from use_faults import plan_for

from tinyfuse.emit import emit
from tinyfuse.evidence.deviations import load_deviations
from tinyfuse.plan import Plan

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
#: macros of the compiler for a target
_MACROS = {
    "cortex-m4": ("-D__ARM_FEATURE_DSP=1",),
    "cortex-m55": ("-D__ARM_FEATURE_DSP=1", "-D__ARM_FEATURE_MVE=3"),
    "cortex-m0plus": ("-D__ARM_ARCH_6M__=1",),  # with a macro, cppcheck looks at one configuration only
}

_VIOLATION = re.compile(r"^(\S+?):\d+:\d+: .*\[misra-c2012-([\d.]+)\]$", re.M)

IN_CI = ("kws", "ic", "vww", "ad", "ww", "blob", "fed", "kws cortex-m55")
#: other interfaces, for `--campaign`
INTERFACES = ("slide", "step", "labels")


def _module(name: str) -> Plan:
    """Plan for one of IN_CI or INTERFACES."""
    model, _, target = name.partition(" ")
    if model in ("fed", "blob", *INTERFACES):
        return plan_for(model)
    return plan_of((MODELS / f"{model}.tflite").read_bytes(), target or "cortex-m4", kernels="tinyfuse")


def violations(plan: Plan, folder: Path) -> Counter[tuple[str, str]]:
    """Number of violations by (rule, file) in a plan's module, which is generated into the folder."""
    folder.mkdir()
    for file, text in emit(plan).items():
        (folder / file).write_text(text)
    name = plan.options.name
    command = ["cppcheck", "--addon=misra", "--enable=style", "--std=c99", "--platform=unix32"]
    found = subprocess.run(
        [*command, *_MACROS[plan.context.target.name], "-I.", f"{name}.c"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = _VIOLATION.findall(found.stderr)
    assert pairs, found.stderr[-1000:]  # a tool that finds nothing did not run
    return Counter((rule, re.sub(rf"^{name}(?=[._])", "NAME", file)) for file, rule in pairs)


def unexplained(plans: Iterable[Plan], work: Path) -> tuple[list[tuple[str, str]], set[tuple[str, str]]]:
    """(rules broken in files without a reason, patterns that some file needs)."""
    with ThreadPoolExecutor(2) as pool:
        folders = (work / str(number) for number in itertools.count())
        found = set().union(*pool.map(violations, plans, folders))
    listed = [(each.rule, pattern) for each in load_deviations() for pattern in each.files]
    matching = {pair: [(r, p) for r, p in listed if r == pair[0] and fnmatchcase(pair[1], p)] for pair in found}
    return sorted(pair for pair, by in matching.items() if not by), {p for by in matching.values() for p in by}


@pytest.mark.skipif(not shutil.which("cppcheck"), reason="needs cppcheck with its addon for MISRA")
def test_each_violation_has_a_reason(tmp_path) -> None:
    unlisted, _ = unexplained(map(_module, IN_CI), tmp_path)
    assert not unlisted, f"rules broken without a reason in misra_deviations.toml: {unlisted}"


@pytest.mark.campaign
@pytest.mark.skipif(not shutil.which("cppcheck"), reason="needs cppcheck with its addon for MISRA")
def test_each_reason_explains_a_violation(tmp_path) -> None:
    unlisted, needed = unexplained(
        [*map(_module, (*IN_CI, *INTERFACES)), *(plan for target in _MACROS for plan in modules(target))], tmp_path
    )
    assert not unlisted, f"rules broken without a reason in misra_deviations.toml: {unlisted}"
    listed = {(each.rule, pattern) for each in load_deviations() for pattern in each.files}
    assert listed == needed, f"entries of misra_deviations.toml that nothing needs: {sorted(listed - needed)}"


def test_deviations_are_complete_and_in_order() -> None:
    deviations = load_deviations()
    rules = [tuple(map(int, each.rule.split("."))) for each in deviations]
    assert rules == sorted(set(rules))
    for each in deviations:
        assert each.category in ("required", "advisory") and each.files
        assert len(each.reason) > 40 and each.reason.endswith(".")


@pytest.fixture
def misra_counts() -> Iterator[ModuleType]:
    with scripts_of(Path(__file__).resolve().parents[2] / "benchmarks"):
        yield import_module("misra_counts")


def test_the_page_has_the_counts(misra_counts: ModuleType) -> None:
    results = json.loads(misra_counts.RESULTS.read_text())
    page = misra_counts.PAGE.read_text()
    assert page == misra_counts.filled_page(page, results)


@pytest.mark.campaign
@pytest.mark.skipif(not shutil.which("cppcheck"), reason="needs cppcheck with its addon for MISRA")
def test_the_counts_are_of_today(misra_counts: ModuleType) -> None:
    assert misra_counts.count_models(misra_counts.ROOT) == json.loads(misra_counts.RESULTS.read_text())["now"]
