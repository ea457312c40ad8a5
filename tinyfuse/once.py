"""Caches the hashes of values that are dictionary keys by the thousand."""

from __future__ import annotations

from typing import Any, TypeVar

_Value = TypeVar("_Value")

_HASH_KEY = "_hash"


def hashed_once(kind: type[_Value]) -> type[_Value]:
    """Decorator that caches the hash of a frozen dataclass. The hash is not pickled, because strings hash differently
    in another process."""
    of_fields = kind.__hash__

    def hash_of(self: _Value) -> int:
        known: int | None = self.__dict__.get(_HASH_KEY)
        if known is None:
            known = self.__dict__[_HASH_KEY] = of_fields(self)
        return known

    def state_of(self: _Value) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _HASH_KEY}

    setattr(kind, "__hash__", hash_of)  # noqa: B010
    setattr(kind, "__getstate__", state_of)  # noqa: B010
    return kind
