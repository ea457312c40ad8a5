"""Deviations of generated modules from MISRA C:2012, with reasons (misra_deviations.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("misra_deviations.toml")


@dataclass(frozen=True)
class Deviation:
    """A rule that some files of generated modules break, and why.

    rule      "10.1"
    category  "required" or "advisory"
    files     names in a generated folder; NAME is the module's
    """

    rule: str
    category: str
    files: tuple[str, ...]
    reason: str


def load_deviations() -> list[Deviation]:
    """Deviations of all modules, in the order of rules."""
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))["deviation"]
    return [Deviation(each["rule"], each["category"], tuple(each["files"]), each["reason"]) for each in entries]


def deviations_of(module: str, files: Iterable[str]) -> list[Deviation]:
    """Deviations that concern a module of that name with these files, whose names replace NAME."""
    present, found = set(files), []
    for each in load_deviations():
        named = tuple(file.replace("NAME", module, 1) if file.startswith("NAME.") else file for file in each.files)
        concerned = tuple(file for file in named if file in present)
        if concerned:
            found.append(Deviation(each.rule, each.category, concerned, each.reason))
    return found
