"""The JSON Schema document of each command's answer."""

from __future__ import annotations

import json

from tinyfuse.report.answer import SCHEMA_VERSION
from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.parts import Schema


def schema(name: str) -> Schema:
    """JSON Schema of a command's answer. "error" names the answer of any command that fails."""
    what = "Any command that fails" if name == "error" else f"tinyfuse {name}"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tinyfuse:schema:{name}:{SCHEMA_VERSION}",
        "title": f"{what} --json",
        "description": "docs/json.md of tinyfuse says what each key means. Bytes are bytes; null: not measured.",
        **ANSWERS[name],
    }


def schema_text(name: str) -> str:
    """JSON text of a command's schema."""
    return json.dumps(schema(name), indent=1) + "\n"
