"""Writes tables of evidence as Markdown, HTML and JSON."""

from __future__ import annotations

import html
import json
from dataclasses import asdict

from tinyfuse import __version__
from tinyfuse.emit.manifest import MANIFEST, manifest_text
from tinyfuse.emit.render import render
from tinyfuse.evidence.tables import Table


def evidence_files(tables: list[Table]) -> dict[str, bytes]:
    """Files of the folder, by name. Equal tables give equal files: there are no times and no places."""
    data = {"schema_version": 1, "tinyfuse_version": __version__, "sections": [asdict(table) for table in tables]}
    files = {
        "evidence.json": (json.dumps(data, indent=2) + "\n").encode(),
        "evidence.md": _markdown(tables).encode(),
        "evidence.html": render("report/evidence.html.j2", {"tables": _escaped(tables)}).encode(),
    }
    manifest = {"schema_version": 1, "tinyfuse_version": __version__}
    return files | {MANIFEST: manifest_text(manifest, files).encode()}


def _markdown(tables: list[Table]) -> str:
    lines: list[str] = []
    for number, table in enumerate(tables):
        lines += [f"{'##' if number else '#'} {table.title}", ""]
        if table.text:
            lines += [table.text, ""]
        if table.rows:
            rows = [table.columns, ("---",) * len(table.columns), *table.rows]
            lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
        else:
            lines.append("None.")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text of a table cell, with the characters of a model's names escaped that would end the cell or begin markup."""
    escaped = "".join(f"\\{char}" if char in "\\`*_[]|" else char for char in html.escape(text, quote=False))
    return " ".join(escaped.split())


def _escaped(tables: list[Table]) -> list[Table]:
    return [
        Table(
            html.escape(table.title),
            html.escape(table.text),
            tuple(map(html.escape, table.columns)),
            tuple(tuple(map(html.escape, row)) for row in table.rows),
        )
        for table in tables
    ]
