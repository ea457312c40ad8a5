"""Writes the page as one file: markup, style, script and data, with nothing to be fetched."""

from __future__ import annotations

import base64
import hashlib
import json

from tinyfuse.emit.render import render
from tinyfuse.report.answer import JsonObject
from tinyfuse.resources import resource_dir

#: files of the page's script, in the order of their dependences
_SCRIPTS = ("common.js", "layers.js", "banks.js", "graph.js", "arena.js", "rows.js", "pareto.js", "start.js")


def html_page(data: JsonObject) -> str:
    """HTML of the page for data.py's data; equal data gives equal text.

    A content security policy lets the browser use only this script and this style, and load nothing. So a name from a
    model that slipped through as markup would have no effect.
    """
    folder = resource_dir("templates") / "report"
    style = (folder / "style.css").read_text(encoding="utf-8")
    script = "".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n{script}'
    policy = (
        f"default-src 'none'; script-src '{content_hash(script)}'; style-src '{content_hash(style)}'; base-uri 'none'"
    )
    context = {
        "figures": data["figures"], "data": script_json(data), "style": style, "script": script, "policy": policy,
    }  # fmt: skip
    return render("report/page.html.j2", context)


def script_json(data: JsonObject) -> str:
    """JSON that is safe inside a script element: ASCII, without characters that could end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content_hash(text: str) -> str:
    """The text's SHA-256 as written in a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
