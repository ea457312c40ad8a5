"""`verify` sees faults of use: registers, modes, interrupts, memory, time, misuse, helpers, names, levels.

CI takes a dozen; `--campaign` takes all, and writes the table to use_faults.txt. tests/emulated/test_mutations.py seeds
faults of arithmetic.
"""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from unittest.mock import patch

import core_program
import pytest
from single_unit_firmware import takes
from test_mutations import RUNS, Subject, subject_of
from use_faults import FAULTS, Fault, plan_for

from tinyfuse.api import measuring
from tinyfuse.emit import emit
from tinyfuse.errors import TinyfuseError
from tinyfuse.options import VerifyOptions
from tinyfuse.verify.emulation import build, find_emulator, module
from tinyfuse.verify.emulation.checked_calls import entry_points

HAS_QEMU = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
pytestmark = pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")

#: at least one of each group, and of each mechanism that only one fault needs
IN_CI = (
    "r8, Armv6-M", "s19", "a VPT block left open", "BASEPRI raised", "relies on GE",
    "data below sp", "interrupts masked for a while", "lazy stacking",
    "a lock in a system register", "scratch in a system register, Armv8.1-M",
    "a word far behind is read", "a word far behind is read, Armv6-M", "more rows of a cursor",
    "init is relied on", "rows that are aligned", "rows are written", "a cursor of another inference",
    "a damaged check word", "too few rows", "NaN", "the scale of a division", "argmax takes the last of a tie",
    "rounding assumed",
)  # fmt: skip


@cache
def subject(model: str) -> Subject:
    return subject_of(plan_for(model), RUNS)


@cache
def asked(model: str, thorough: bool) -> measuring.OracleAnswer:
    how = VerifyOptions(oracle="reference", thorough=thorough)
    return measuring.ask_oracle(plan_for(model), b"", how, lambda line: None)


def verified(model: str, files: dict[str, str], thorough: bool) -> str:
    """Failure that `verify` reports for a module of these files, built as users do; "" if it reports none."""
    plan, how = plan_for(model), VerifyOptions(oracle="reference", thorough=thorough, timeout=60 if thorough else 15)
    answer = asked(model, thorough)
    with (
        patch.object(module, "emit", lambda plan: files),
        patch.object(measuring, "ask_oracle", lambda *_: answer),
        patch.object(measuring, "level_coverage", lambda *_: None),
        patch.object(build, "_WARNINGS", ("-w",)),  # a warning is no finding of verify
    ):
        try:
            found = measuring.verify_plan(plan, None, b"", find_emulator("qemu", plan.context.target), how, print)
        except TinyfuseError as error:
            return str(error)
    return "; ".join([*found.problems, *(["outputs differ"] if found.mismatches else [])])


def quickly(model: str, files: dict[str, str], work: Path) -> str:
    """As `verified` without `thorough`, at O0 and in one file, and without what the linked files say."""
    with patch.object(core_program, "WARNINGS", ("-w",)):
        return subject(model).verdict(files, work)


def judge(fault: Fault, work: Path) -> tuple[str, str]:
    """(what sees the fault: "default", "thorough" or "nothing"; its words)."""
    plan = plan_for(fault.model)
    files = fault.seeded(emit(plan), plan)
    said = ""
    if fault.by == "default":
        if takes(plan) and fault.group != "linking":
            said = quickly(fault.model, files, work)
        said = said or verified(fault.model, files, thorough=False)
    if said:
        return "default", said
    said = verified(fault.model, files, thorough=True)
    return ("thorough" if said else "nothing"), said


@pytest.mark.parametrize("model", sorted({fault.model for fault in FAULTS if fault.name in IN_CI}))
def test_unspoilt_modules_pass(tmp_path, model: str) -> None:
    assert quickly(model, emit(plan_for(model)), tmp_path / "work") == ""


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in IN_CI], ids=lambda fault: fault.name)
def test_a_fault_of_use_is_seen(tmp_path, fault: Fault) -> None:
    plan = plan_for(fault.model)
    assert fault.seen in quickly(fault.model, fault.seeded(emit(plan), plan), tmp_path / "work")


def test_names_and_variables_are_seen() -> None:
    """Object files are read once for a whole module: a variable, and a global name without the module's prefix."""
    plan, faults = plan_for("conv"), {fault.name: fault for fault in FAULTS}
    files = faults["static scratch of a kernel"].seeded(emit(plan), plan)
    files = faults["a function without prefix"].seeded(files, plan)
    said = verified("conv", files, thorough=False)
    assert "the module has a variable, tinyfuse_scratch," in said and "the global name group_0" in said


def test_all_names_are_different_and_all_groups_are_there() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 120
    assert {fault.group for fault in FAULTS if fault.name in IN_CI} >= {"registers and modes", "memory", "time"}
    assert set(IN_CI) <= {fault.name for fault in FAULTS}


#: the campaign's parts
PARTS = 8


def test_every_fault_of_use_has_its_place() -> None:
    """A fault that changes nothing would only be noticed in a campaign."""
    for fault in FAULTS:
        plan = plan_for(fault.model)
        fault.seeded(emit(plan), plan)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_every_fault_of_use_is_seen(tmp_path, part: int, request: pytest.FixtureRequest) -> None:
    """The table of all parts is in use_faults.txt once they ran."""
    unseen, counts = [], Counter[str]()
    for fault in FAULTS[part::PARTS]:
        by, said = judge(fault, tmp_path / "work")
        counts[f"{fault.group}/{by}"] += 1
        if not said or fault.seen not in said:
            unseen.append(f"{fault.group}, {fault.name}: {said[:200] or 'nothing was said'}")
    cache = request.config.cache
    cache.set(f"use_faults/{part}", counts)
    found = [cache.get(f"use_faults/{number}", None) for number in range(PARTS)]
    if None not in found:
        (request.config.rootpath / "use_faults.txt").write_text(_table(sum(map(Counter, found), Counter())))
    assert not unseen, "\n".join(unseen)


def _table(counts: Counter[str]) -> str:
    """Table with one row for each group, and one for all."""
    ends = ("default", "thorough", "nothing")
    groups = list(dict.fromkeys(fault.group for fault in FAULTS))
    rows = [(group, [counts[f"{group}/{end}"] for end in ends]) for group in groups]
    rows.append(("all", [sum(row[column] for _, row in rows) for column in range(len(ends))]))
    lines = [f"{'seen by':<22}" + "".join(f"{end:>10}" for end in ends)]
    return "\n".join([*lines, *(f"{name:<22}" + "".join(f"{n:>10}" for n in row) for name, row in rows), ""])


def test_entry_points_are_what_an_application_calls() -> None:
    header = emit(plan_for("conv"))["net.h"]
    found = entry_points(header, "net")
    assert {"net_init", "net_run", "net_input", "net_output_bytes", "net_strerror"} <= set(found)
    assert not any("quantize" in name for name in found)  # static inline
