"""What schemas are built of (JSON Schema, draft 2020-12)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeAlias

from tinyfuse.options import Options

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def record(**keys: Schema) -> Schema:
    """An object with all of these keys. Others may be there: a later tinyfuse of the same version adds some."""
    return {"type": "object", "required": list(keys), "properties": keys}


def add_optional(known: Schema, **keys: Schema) -> Schema:
    """The record, with keys that are not always there."""
    return known | {"properties": known["properties"] | keys}


def merge_records(*records: Schema) -> Schema:
    """One record with the keys of all."""
    required = [key for each in records for key in each["required"]]
    properties = {key: value for each in records for key, value in each["properties"].items()}
    return {"type": "object", "required": required, "properties": properties}


def items(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def table(of: Schema) -> Schema:
    """An object whose keys are names, all with values of one kind."""
    return {"type": "object", "additionalProperties": of}


def nullable(known: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [known, {"type": "null"}]}


#: types of the options' declarations
_OF_TYPES = {
    "str": TEXT, "bool": FLAG, "int": INTEGER, "float": NUMBER, "tuple[str, ...]": items(TEXT),
    "tuple[tuple[str, ...], ...]": items(items(TEXT)),
}  # fmt: skip


def options_schema() -> Schema:
    """What changed the generated code: a key for each field of `Options`."""
    return record(**{field.name: _type_schema(str(field.type)) for field in fields(Options)})


def _type_schema(name: str) -> Schema:
    known = _OF_TYPES[name.removesuffix(" | None")]
    return nullable(known) if name.endswith(" | None") else known
