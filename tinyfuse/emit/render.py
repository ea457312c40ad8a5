"""Renders the files of templates/."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from tinyfuse.resources import cache_folder, resource_dir


def render(template: str, context: Mapping[str, Any]) -> str:
    """Text of a template, with the variables of `context`."""
    return _environment().get_template(template).render(context)


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Cache of compiled templates, keyed by their text: compiling takes as long as planning a small model. Nothing is
    cached if its folder is read-only."""

    def get_source_checksum(self, source: str) -> str:
        """Checksum of the template's text and of jinja2's version."""
        return super().get_source_checksum(f"{jinja2.__version__}\0{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, EOFError, UnpicklingError):  # jinja2 sees to other damage
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _environment() -> jinja2.Environment:
    return new_environment(resource_dir("templates"))


def new_environment(templates: Path) -> jinja2.Environment:
    """Environment for a folder's templates, with a cache."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        bytecode_cache=_Compiled(str(cache_folder("templates"))),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
