"""Reads a module's linker fragments by the documented rules of linkers that are not installed.

armlink: Arm Compiler's reference guide, "Scatter File Syntax" (load region, execution region, input section selectors).
IAR: the C/C++ development guide, "The linker configuration file" (define block, place in, do not initialize).
Zephyr: cmake/modules/extensions.cmake, `zephyr_code_relocate`, and its page on code and data relocation.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Placed:
    """Contents of a bank according to a fragment: section names, the most bytes, and whether they keep their values at
    reset."""

    region: str
    sections: tuple[str, ...]
    bytes: int
    kept: bool


_REGION = re.compile(
    r"LR_(?P<lr>\w+) (?P<at>0x[0-9a-f]+) (?P<most>\d+) "
    r"\{ (?P<er>\w+) (?P<er_at>0x[0-9a-f]+)(?P<attributes>(?: [A-Z]+(?: \d+)?)*?) (?P<er_most>\d+) "
    r"\{ \*\((?P<sections>[\w.]+(?:, [\w.]+)*)\) \} \}"
    r"(?P<check> ScatterAssert\(LoadLength\(LR_\w+\) > 0\))?"
)
_ATTRIBUTES = re.compile(r"(?: ALIGN \d+)?(?: UNINIT)?")


def armlink(fragment: Path, starts: dict[str, int]) -> list[Placed]:
    """Reads NAME_memory.sct; `starts`: macro -> address. AssertionError if it breaks a rule of armlink."""
    defined = [f"-D{macro}={at:#x}" for macro, at in starts.items()]
    command = ["gcc", "-E", "-P", "-x", "c", *defined, fragment]
    text = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    found = list(_REGION.finditer(text))
    assert " ".join(match[0] for match in found) == text, "something that is no load region with one execution region"
    for match in found:
        assert match["most"] == match["er_most"]
        is_code = match["sections"].startswith(".text.")
        assert match["at"] == match["er_at"] or is_code, "a region that start-up code copies"
        assert match["lr"] == match["er"] and _ATTRIBUTES.fullmatch(match["attributes"])
        assert (match["check"] or match["lr"]).count(match["lr"]), "a check of another region"
    names = [name for match in found for name in ("LR_" + match["lr"], match["er"])]
    assert len(set(names)) == len(names), "regions of one name"
    return [
        Placed(m["er"], tuple(m["sections"].split(", ")), int(m["most"]), "UNINIT" in m["attributes"]) for m in found
    ]


def iar(fragment: Path) -> list[Placed]:
    """Reads NAME_memory.icf. AssertionError if it breaks a rule of ILINK."""
    text = re.sub(r"/\*.*?\*/", " ", fragment.read_text(), flags=re.S)
    *statements, rest = (" ".join(statement.split()) for statement in text.split(";"))
    assert not rest
    kept: set[str] = set()
    blocks: dict[str, tuple[int, tuple[str, ...]]] = {}
    placed = []
    for statement in statements:
        if found := re.fullmatch(r"do not initialize \{ (section [\w.]+(?:, section [\w.]+)*) \}", statement):
            kept |= {each.removeprefix("section ") for each in found[1].split(", ")}
        elif found := re.fullmatch(r"initialize by copy \{ section ([\w.]+) \}", statement):
            assert found[1].startswith(".text."), "weights or an arena that start-up code copies"
        elif found := re.fullmatch(
            r"define block (\w+) with alignment = \d+, maximum size = (\d+) \{ (.*) \}", statement
        ):
            selectors = [re.fullmatch(r"(?:readonly )?section ([\w.]+)", each) for each in found[3].split(", ")]
            assert all(selectors) and found[1] not in blocks
            blocks[found[1]] = int(found[2]), tuple(each[1] for each in selectors if each)
        else:
            found = re.fullmatch(r"place in (\w+) \{ block (\w+) \}", statement)
            assert found, statement
            most, sections = blocks[found[2]]
            placed.append(Placed(found[1], sections, most, set(sections) <= kept))
    assert len(placed) == len(blocks)
    return placed


_STUBS = """
set(CONFIG_CODE_DATA_RELOCATION ON)
set(ZEPHYR_CURRENT_MODULE_DIR .)
foreach(name zephyr_include_directories zephyr_library_named zephyr_library_compile_options
        zephyr_library_compile_definitions zephyr_library_sources)
  cmake_language(EVAL CODE "function(${name})\nendfunction()")
endforeach()
function(zephyr_code_relocate)
  cmake_parse_arguments(GIVEN "NOCOPY" "LOCATION;FILTER" "FILES" ${ARGN})
  message("relocate|${GIVEN_FILES}|${GIVEN_FILTER}|${GIVEN_LOCATION}|${GIVEN_NOCOPY}|${GIVEN_UNPARSED_ARGUMENTS}")
endfunction()
"""


def zephyr(module: Path, name: str, arena_file: str) -> list[tuple[str, ...]]:
    """Relocations in NAME's zephyr/CMakeLists.txt and in its function for an application: file, filter, location,
    whether start-up copies nothing ("TRUE"), and unknown arguments ("")."""
    script = module / "zephyr" / "check.cmake"
    lines = [f"set(CONFIG_TINYFUSE_{name.upper()} ON)", "include(CMakeLists.txt)", f"{name}_relocate({arena_file})"]
    script.write_text(_STUBS + "\n".join(lines) + "\n")
    done = subprocess.run(["cmake", "-P", script.name], cwd=script.parent, capture_output=True, text=True, check=True)
    return [tuple(line.split("|")[1:]) for line in done.stderr.splitlines() if line.startswith("relocate|")]
