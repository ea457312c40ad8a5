"""The tables of docs/reference/operators.md, made from `tinyfuse operators --json` when the site is built."""

from __future__ import annotations

from tinyfuse.cli.reference import escape_markdown
from tinyfuse.report.answer import JsonObject


def operators_markdown(data: JsonObject) -> str:
    """Markdown of all operators: a table with the numbers of tested cases, the rules of each, and its tested dtypes."""
    lines = [
        "| operator | computes | rows | in place | TFLM | host | M4 | M55 |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for o in data["operators"]:
        cells = [
            _link(o["kind"]), escape_markdown(o["summary"]), _yes(o["streams_rows"]), _yes(o["in_place"]),
            *_cells(o["tested_cases"]),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Rules"]
    first_with: dict[tuple[str, ...], str] = {}
    for o in data["operators"]:
        first = first_with.setdefault(tuple(o["rules"]), o["kind"])
        rules = [f"- {escape_markdown(rule)}" for rule in o["rules"]]
        lines += ["", f"### {o['kind']}", "", *(rules if first == o["kind"] else [f"The rules of {_link(first)}."])]
        if any(o["dtypes"].values()):
            lines += ["", f"Tested dtypes: {_dtypes(o['dtypes'])}."]
        if not o["kernels"]:
            lines += ["", "No kernel: the compiler removes it."]
    return "\n".join(lines) + "\n"


def _link(kind: str) -> str:
    """Link to the heading of a kind."""
    return f"[{kind}](#{kind.lower().replace(' ', '-')})"


def _dtypes(counts: dict[str, int]) -> str:
    """Numbers of cases by dtype, "int8 25, int16 11"."""
    return ", ".join(f"{dtype} {count}" for dtype, count in counts.items() if count)


def _cells(counts: dict[str, int]) -> list[str]:
    """Cells of the counts."""
    by = " (LiteRT)" if "litert" in counts else ""
    first, *others = map(str, counts.values())
    return [first + by, *others]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
