"""One C file and its header, for whoever adds two files to a project; any other form can go with it."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form("single-file", "all C in NAME.c, beside NAME.h", {}, single=True)
