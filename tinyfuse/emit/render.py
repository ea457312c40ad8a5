"""Rendering the files of templates/."""

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
    """The text of a file of templates/."""
    return _environment().get_template(template).render(context)


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Compiled templates, for later runs: compiling them takes as long as planning a small model. They go by the
    templates' texts; a folder that can't be written keeps none."""

    def get_source_checksum(self, source: str) -> str:
        """Of the text, and of the version of the compiler."""
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
    """The environment of a folder's templates; it keeps them compiled."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        bytecode_cache=_Compiled(str(cache_folder("templates"))),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
