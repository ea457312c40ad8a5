"""Caches values in objects: properties, and hashes of values that are dictionary keys by the thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")

_HASH_KEY = "_hash"


class cached_property(Generic[_Value]):
    """Decorator that caches the value of a method without arguments in the object's `__dict__`.

    Unlike that of `functools`, it has no lock, which in Python 3.11 takes longer than most of these computations. Two
    threads may compute the same value twice.
    """

    def __init__(self, function: Callable[[Any], _Value]):
        self._function, self._name, self.__doc__ = function, function.__name__, function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> cached_property[_Value] | _Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


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
