"""Make: variables for another Makefile, and a Makefile of its own that makes an archive."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "make",
    "NAME.mk for an include, and a Makefile that makes libNAME.a",
    {"{name}.mk": "forms/make.mk.j2", "Makefile": "forms/make.Makefile.j2"},
    cmsis_nn="bundle",
)
