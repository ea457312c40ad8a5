"""What every JSON answer begins with: for whatever prints, so nothing that reads or plans models is imported here."""

from __future__ import annotations

from typing import Any, TypeAlias

from tinyfuse import __version__

SCHEMA_VERSION = 1

#: what is printed as JSON: its keys are in docs/json.md
JsonObject: TypeAlias = dict[str, Any]


def envelope(model: str, sha256: str | None, target: str, options: JsonObject, warnings: list[str]) -> JsonObject:
    """The keys that every JSON answer about a model begins with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tinyfuse_version": __version__,
        "model": model,
        "model_sha256": sha256,
        "target": target,
        "options": options,
        "warnings": warnings,
    }


def verdict(data: JsonObject) -> str:
    """A comparison's result in a word or two."""
    if data["exact"]:
        return "exact"
    if data["unproven"]:
        return "unproven"
    return "within bound" if data["within_bound"] else "NOT EXACT"
