"""Rendering the files of templates/."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2

from tinyfuse.resources import resource_dir


def render(template: str, context: Mapping[str, Any]) -> str:
    """The text of a file of templates/."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> jinja2.Environment:
    """The templates' environment; it keeps them compiled."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource_dir("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
