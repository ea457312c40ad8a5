"""The operator families, by kind (the schema's name)."""

from tinyfuse.ops.base import Operator

FAMILIES: dict[str, Operator] = {}
