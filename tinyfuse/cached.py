"""Properties that are computed once an object.

As those of `functools`, but without a lock: in Python 3.11 it takes longer than what most of these compute. What two
threads compute at once is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):
    """A decorator of a method without arguments, of a class whose objects have a `__dict__`: the value is put there."""

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
