"""Keys shared by all JSON answers. Imports nothing that reads or plans models, so that every command can use it."""

from __future__ import annotations

from typing import Any, TypeAlias

from tinyfuse import __version__

SCHEMA_VERSION = 1

#: JSON object of an answer; docs/json.md has its keys
JsonObject: TypeAlias = dict[str, Any]


def envelope(model: str, sha256: str | None, target: str, options: JsonObject, warnings: list[str]) -> JsonObject:
    """Keys that begin every JSON answer about a model."""
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
    """Result of a comparison in a word or two: "exact", "unproven", "within bound" or "NOT EXACT"."""
    if data["exact"]:
        return "exact"
    if data["unproven"]:
        return "unproven"
    return "within bound" if data["within_bound"] else "NOT EXACT"
