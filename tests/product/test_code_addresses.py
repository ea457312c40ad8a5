"""Assembly blocks that are entered by a computed address. ADR counts from an aligned word, so code with an ADR must
begin at a word; compilers don't align it if they optimize for size or not at all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiler_modules import layers_of_int16, side_by_side
from executors import plan_of
from test_compilers import compile_modules

#: a section's header, whose second line has its alignment; a function's first line, and ADR as it is disassembled
_SECTION = re.compile(r"^ *\d+ (\.text\S*) +([0-9a-f]+ +){4}2\*\*(\d+)", re.MULTILINE)
_CODE = re.compile(r"^Disassembly of section (\S+):", re.MULTILINE)
_ADR = re.compile(r"\s(addw?|sub|subw|adr(\.w)?)\s+\w+, pc, #")


@pytest.mark.parametrize(("compiler", "level"), [("gcc", "-O0"), ("gcc", "-Os"), ("clang", "-O0"), ("clang", "-Oz")])
def test_code_with_an_address_begins_at_a_word(compiler: str, level: str, tmp_path: Path) -> None:
    if any(shutil.which(tool) is None for tool in (compiler, "arm-none-eabi-gcc")):
        pytest.skip(f"needs {compiler} and arm-none-eabi-gcc")
    plan = plan_of(side_by_side(layers_of_int16()), "cortex-m4", weights="unpacked", kernels="tinyfuse", fusion="none")
    compile_modules([plan], "cortex-m4", compiler, [level, "-ffunction-sections"], tmp_path)
    told = subprocess.run(
        ["arm-none-eabi-objdump", "-hd", tmp_path / "all.o"], capture_output=True, text=True, check=True
    )
    aligned = {found[1]: int(found[3]) for found in _SECTION.finditer(told.stdout)}
    _, *pieces = _CODE.split(told.stdout)
    of_words = {name for name, code in zip(pieces[::2], pieces[1::2], strict=True) if _ADR.search(code)}
    assert len(of_words) >= 3  # of dense layers, of pointwise ones, along lines
    assert {name: aligned[name] for name in of_words if aligned[name] < 2} == {}
