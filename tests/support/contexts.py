"""Makes contexts from the names of their fields."""

from dataclasses import fields
from typing import Any

from tinyfuse.kernels.core.context import Context, Objective
from tinyfuse.targets import Target

_OF_OBJECTIVE = {field.name for field in fields(Objective)}


def context_of(target: Target, **choices: Any) -> Context:
    """Makes a Context from fields of Context and of Objective."""
    objective = {name: value for name, value in choices.items() if name in _OF_OBJECTIVE}
    others = {name: value for name, value in choices.items() if name not in _OF_OBJECTIVE}
    return Context(target, objective=Objective(**objective), **others)
