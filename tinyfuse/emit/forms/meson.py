"""Meson: a subproject."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "meson",
    "meson.build: a subproject with dependency NAME",
    {"meson.build": "forms/meson.build.j2"},
    cmsis_nn="bundle",
)
