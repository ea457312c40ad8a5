"""The published schemas: python -m tinyfuse.schema.publish docs/schema"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tinyfuse.emit.output_folder import write_file
from tinyfuse.report.answer import SCHEMA_VERSION
from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.parts import Schema


def schema(name: str) -> Schema:
    """The schema of a command's answer, of "error" that of what any command prints where it fails."""
    what = "Any command that fails" if name == "error" else f"tinyfuse {name}"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tinyfuse:schema:{name}:{SCHEMA_VERSION}",
        "title": f"{what} --json",
        "description": "docs/json.md of tinyfuse says what each key means. Bytes are bytes; null: not measured.",
        **ANSWERS[name],
    }


def schema_text(name: str) -> str:
    """The schema as its file has it."""
    return json.dumps(schema(name), indent=1) + "\n"


if __name__ == "__main__":
    for each in ANSWERS:
        write_file(Path(sys.argv[1]) / f"{each}.json", schema_text(each))
