"""Deviations of generated modules from MISRA C:2012, with reasons (misra_deviations.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import filter as filter_names
from pathlib import Path

_FILE = Path(__file__).with_name("misra_deviations.toml")


@dataclass(frozen=True)
class Deviation:
    """A rule that some files of generated modules break, and why.

    rule      "10.1"
    category  "required" or "advisory"
    files     patterns of names in a generated folder; NAME is the module's
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
    """Deviations that concern a module of that name with these files; NAME in their texts is replaced by the name."""
    present, found = list(files), []
    for each in load_deviations():
        patterns = tuple(re.sub(r"^NAME\b", module, pattern) for pattern in each.files)
        concerned = tuple(pattern for pattern in patterns if filter_names(present, pattern))
        if concerned:
            found.append(Deviation(each.rule, each.category, concerned, each.reason))
    return found
