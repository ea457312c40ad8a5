"""Building blocks of schemas (JSON Schema, draft 2020-12)."""

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
    """Object with at least these keys: a later tinyfuse with the same schema version may add keys."""
    return {"type": "object", "required": list(keys), "properties": keys}


def add_optional(known: Schema, **keys: Schema) -> Schema:
    """Adds optional keys to the schema of a JSON record."""
    return known | {"properties": known["properties"] | keys}


def merge_records(*records: Schema) -> Schema:
    """Record with the keys of all `records`."""
    required = [key for each in records for key in each["required"]]
    properties = {key: value for each in records for key, value in each["properties"].items()}
    return {"type": "object", "required": required, "properties": properties}


def items(of: Schema) -> Schema:
    """Array of such values."""
    return {"type": "array", "items": of}


def table(of: Schema) -> Schema:
    """Schema of a JSON object whose keys are names and whose values are of one kind."""
    return {"type": "object", "additionalProperties": of}


def nullable(known: Schema) -> Schema:
    """Schema of a value that may be null."""
    return {"anyOf": [known, {"type": "null"}]}


#: type in a declaration of Options -> schema
_OF_TYPES = {
    "str": TEXT, "bool": FLAG, "int": INTEGER, "float": NUMBER, "tuple[str, ...]": items(TEXT),
    "tuple[tuple[str, ...], ...]": items(items(TEXT)),
}  # fmt: skip


def options_schema() -> Schema:
    """Record of the options that change the generated code, with a key for each field of `Options`."""
    return record(**{field.name: _type_schema(str(field.type)) for field in fields(Options)})


def _type_schema(name: str) -> Schema:
    known = _OF_TYPES[name.removesuffix(" | None")]
    return nullable(known) if name.endswith(" | None") else known
