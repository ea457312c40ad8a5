"""The page as one file: markup, style, script and data in it, nothing that a browser would fetch."""

from __future__ import annotations

import base64
import hashlib
import json

from tinyfuse.emit.render import render
from tinyfuse.report.answer import JsonObject
from tinyfuse.resources import resource_dir

#: the page's script, in the order in which its parts know each other
_SCRIPTS = ("common.js", "layers.js", "banks.js", "graph.js", "arena.js", "rows.js", "pareto.js", "start.js")


def html_page(data: JsonObject) -> str:
    """The page for data.py's data; the same data gives the same text.

    A policy in the page lets the browser run this script and use this style alone, and load nothing: should a name from
    a model slip through as markup, it does nothing.
    """
    folder = resource_dir("templates") / "report"
    style = (folder / "style.css").read_text(encoding="utf-8")
    script = "".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n{script}'
    policy = (
        f"default-src 'none'; script-src '{content_hash(script)}'; style-src '{content_hash(style)}'; base-uri 'none'"
    )
    context = {
        "figures": data["figures"], "data": embedded(data), "style": style, "script": script, "policy": policy,
    }  # fmt: skip
    return render("report/page.html.j2", context)


def embedded(data: JsonObject) -> str:
    """JSON that may stand in a script element: no character of it can end the element, or is other than ASCII."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content_hash(text: str) -> str:
    """The text's hash as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
