"""One C file and its header, to be added to any project; can be combined with other forms."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form("single-file", "all C in NAME.c, beside NAME.h", {}, single=True)
