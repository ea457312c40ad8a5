"""Memory banks for linkers that are not here: armlink's, IAR's and Zephyr's texts name the same places as GNU ld's,
which test_memory_banks.py links and runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from executors import plan_of
from linker_rules import armlink, iar, zephyr
from stream_models import STREAM_MODELS
from test_generated_code import write

from tinyfuse.emit import emit
from tinyfuse.emit.forms import delivery_of
from tinyfuse.emit.memory import bank_sections
from tinyfuse.plan import Plan

BANKS = ("dtcm=48K", "sram=1M:ram", "qspi=1M:slow", "flash=4K")


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Arena and state in a bank, weights in two."""
    return plan_of(STREAM_MODELS["keyword spotter"], "cortex-m7", memory=BANKS)


def test_every_linker_puts_the_same_sections_into_the_same_banks(plan: Plan, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    write(tmp_path, emit(plan))
    banks = bank_sections(plan)
    assert any(bank.flash for bank in banks) and not all(bank.flash for bank in banks)
    starts = {f"NET_{bank.name.upper()}_START": 0x1000_0000 * (i + 1) for i, bank in enumerate(banks)}
    wanted = [(bank.inputs, bank.bytes, not bank.flash) for bank in banks]
    by_arm = armlink(tmp_path / "net_memory.sct", starts)
    assert [(each.sections, each.bytes, each.kept) for each in by_arm] == wanted
    by_iar = iar(tmp_path / "net_memory.icf")
    assert [(each.sections, each.bytes, each.kept) for each in by_iar] == wanted
    assert [each.region for each in by_iar] == [bank.name for bank in banks]
    gnu = (tmp_path / "net_memory.ld").read_text()
    assert all(f"*({' '.join(bank.inputs)})" in gnu and f"}} > {bank.name}\n" in gnu for bank in banks)


def test_armlink_is_told_where_an_address_is_missing(plan: Plan, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    write(tmp_path, emit(plan))
    done = subprocess.run(["gcc", "-E", "-x", "c", tmp_path / "net_memory.sct"], capture_output=True, text=True)
    assert done.returncode != 0 and "net_memory.sct needs NET_" in done.stderr


@pytest.mark.parametrize("formats", [["zephyr"], ["zephyr", "single-file"]], ids=" ".join)
def test_zephyr_relocates_what_the_objects_have(plan: Plan, formats: list[str], tmp_path: Path) -> None:
    """Filters are held against the sections of compiled files; a module without banks relocates nothing."""
    if shutil.which("cmake") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs cmake and arm-none-eabi-gcc")
    for file, text in emit(plan, delivery=delivery_of(formats, {})).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text('#include "net.h"\nNET_DEFINE_ARENA(arena);\nNET_DEFINE_STATE(state);\n')
    told = zephyr(tmp_path, "net", str(tmp_path / "main.c"))
    left = {(section, bank.name) for bank in bank_sections(plan) for section in bank.inputs}
    for file, pattern, location, nocopy, unknown in told:
        bank, _, kind = location.rpartition("_")
        assert unknown == "" and (kind, nocopy) in (("RODATA", "TRUE"), ("BSS", "FALSE"))
        source = tmp_path / file
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m7", "-mthumb", "-O1", "-I", tmp_path, "-c", source, "-o", "x.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        listed = subprocess.run(["arm-none-eabi-objdump", "-h", "x.o"], cwd=tmp_path, capture_output=True, text=True)
        sections = {word for line in listed.stdout.splitlines() for word in line.split() if word.startswith(".")}
        found = {section for section in sections if re.search(pattern, section)}
        assert len(found) == 1 and re.match(f"\\.{kind.lower()}\\.", min(found)), (pattern, sections)
        left.remove((min(found), bank))
    assert not left
    plain = emit(plan_of(STREAM_MODELS["keyword spotter"], "cortex-m7"), delivery=delivery_of(["zephyr"], {}))
    assert "relocate" not in plain["zephyr/CMakeLists.txt"]
