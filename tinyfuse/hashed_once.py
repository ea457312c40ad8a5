"""Values that are looked up by the thousand remember their hash."""

from __future__ import annotations

from typing import Any, TypeVar

_Value = TypeVar("_Value")

_KEPT = "_hash"


def hashed_once(kind: type[_Value]) -> type[_Value]:
    """A decorator of frozen dataclasses: the hash of all fields, computed once a value. It is no part of what is
    pickled, for strings have other hashes in another process."""
    of_fields = kind.__hash__

    def hash_of(self: _Value) -> int:
        known: int | None = self.__dict__.get(_KEPT)
        if known is None:
            known = self.__dict__[_KEPT] = of_fields(self)
        return known

    def state_of(self: _Value) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _KEPT}

    setattr(kind, "__hash__", hash_of)  # noqa: B010
    setattr(kind, "__getstate__", state_of)  # noqa: B010
    return kind
