"""Linker fragments for tools that are not installed: the armlink, IAR and Zephyr texts name the same places as GNU
ld's, which test_memory_banks.py links and runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from executors import assert_exact, plan_of
from linker_rules import armlink, iar, zephyr
from stream_models import STREAM_MODELS
from test_generated_code import write

from tinyfuse.emit import emit
from tinyfuse.emit.forms import make_delivery
from tinyfuse.emit.memory import bank_sections
from tinyfuse.plan import Plan

BANKS = ("dtcm=48K", "sram=1M:ram", "qspi=1M:slow", "flash=4K", "itcm=64K:code")


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan with arena and state in one bank, weights in two."""
    return plan_of(STREAM_MODELS["keyword spotter"], "cortex-m7", memory=BANKS)


def test_every_linker_puts_the_same_sections_into_the_same_banks(plan: Plan, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    write(tmp_path, emit(plan))
    banks = bank_sections(plan)
    assert any(bank.flash for bank in banks) and not all(bank.flash for bank in banks)
    starts = {f"NET_{bank.name.upper()}_START": 0x1000_0000 * (i + 1) for i, bank in enumerate(banks)}
    starts["NET_ITCM_LOAD"] = 0x0800_0000
    wanted = [(bank.inputs, bank.bytes, bank.kind == "ram") for bank in banks]
    by_arm = armlink(tmp_path / "net_memory.sct", starts)
    assert [(each.sections, each.bytes, each.kept) for each in by_arm] == wanted
    by_iar = iar(tmp_path / "net_memory.icf")
    assert [(each.sections, each.bytes, each.kept) for each in by_iar] == wanted
    assert [each.region for each in by_iar] == [bank.name for bank in banks]
    gnu = (tmp_path / "net_memory.ld").read_text()
    for bank in banks:
        loaded = " AT > net_code_load" if bank.kind == "code" else ""
        assert f"*({' '.join(bank.inputs)})" in gnu and f"}} > {bank.name}{loaded}\n" in gnu


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
    for file, text in emit(plan, delivery=make_delivery(formats, {})).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "main.c").write_text('#include "net.h"\nNET_DEFINE_ARENA(arena);\nNET_DEFINE_STATE(state);\n')
    told = zephyr(tmp_path, "net", str(tmp_path / "main.c"))
    left = {(section, bank.name) for bank in bank_sections(plan) for section in bank.inputs}
    for file, pattern, location, nocopy, unknown in told:
        bank, _, kind = location.rpartition("_")
        assert unknown == "" and (kind, nocopy) in (("RODATA", "TRUE"), ("BSS", "FALSE"), ("TEXT", "FALSE"))
        source = tmp_path / file
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m7", "-mthumb", "-O1", "-I", tmp_path, "-c", source, "-o", "x.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        listed = subprocess.run(["arm-none-eabi-objdump", "-h", "x.o"], cwd=tmp_path, capture_output=True, text=True)
        sections = {word for line in listed.stdout.splitlines() for word in line.split() if word.startswith(".")}
        found = {section for section in sections if re.search(pattern, section)}
        assert len(found) == 1 and re.match(f"\\.{kind.lower()}\\.", min(found)), (pattern, sections)
        left.remove((min(found), bank))
    assert not left
    plain = emit(plan_of(STREAM_MODELS["keyword spotter"], "cortex-m7"), delivery=make_delivery(["zephyr"], {}))
    assert "relocate" not in plain["zephyr/CMakeLists.txt"]


def test_code_in_ram_is_loaded_from_flash(plan: Plan, tmp_path: Path) -> None:
    """The image has it where it is copied from; nothing but accessors and messages stays in .text."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs arm-none-eabi-gcc")
    write(tmp_path, emit(plan))
    main = '#include "net.h"\nNET_DEFINE_ARENA(a);\nNET_DEFINE_STATE(s);\nint _start(void) { return net_run(a, s); }\n'
    (tmp_path / "main.c").write_text(main)
    regions = {"FLASH": 0x0800_0000, "RAM": 0x2000_0000, "itcm": 0x0001_0000, "dtcm": 0x2010_0000,
               "sram": 0x2400_0000, "qspi": 0x9000_0000, "flash": 0x0810_0000}  # fmt: skip
    lines = [f"{name} : ORIGIN = {at:#x}, LENGTH = 1M" for name, at in regions.items()]
    text = ".text : { *(.text*) *(.rodata*) } > FLASH .data : { *(.data*) } > RAM AT > FLASH .bss : { *(.bss*) } > RAM"
    sections = f"SECTIONS {{ INCLUDE net_memory.ld {text} }}"
    alias = 'REGION_ALIAS("net_code_load", FLASH)'
    (tmp_path / "all.ld").write_text("\n".join(["MEMORY {", *lines, "}", alias, sections, ""]))
    flags = ["-mcpu=cortex-m7", "-mthumb", "-O2", "-nostartfiles", "-Wl,-e,_start", "-T", "all.ld", "-o", "all.elf"]
    files = ["main.c", "net.c", "net_weights.c", "-lm", "-lc", "--specs=nosys.specs"]
    subprocess.run(["arm-none-eabi-gcc", *flags, *files], cwd=tmp_path, check=True, capture_output=True)
    listed = subprocess.run(["arm-none-eabi-objdump", "-h", "all.elf"], cwd=tmp_path, capture_output=True, text=True)
    (code,) = (line.split() for line in listed.stdout.splitlines() if " .net.itcm " in line)
    size, runs, loaded = (int(field, 16) for field in code[2:5])
    assert size > 2000 and runs == regions["itcm"] and loaded >> 20 == regions["FLASH"] >> 20


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_code_runs_in_a_bank(target: str) -> None:
    if shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None:
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    assert_exact(plan_of(STREAM_MODELS["keyword spotter"], target, memory=BANKS), runs=2)
    assert_exact(plan_of(STREAM_MODELS["keyword spotter"], target, memory=("xip=1M:code",)), runs=2)
