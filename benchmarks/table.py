"""The comparison as Markdown."""

from __future__ import annotations

from rows import Row
from tinyfuse_runs import DEFAULT, title

_TITLES = (
    "tool",
    "setting",
    "instructions",
    "per MAC",
    "arena",
    "static RAM",
    "stack",
    "code",
    "weights",
    "exact",
)


def markdown(rows: list[Row], head: list[str], tools: dict[str, str]) -> str:
    """One table a model and core, fewest instructions first; `tools` says what each recorded tool is."""
    lines = ["# Benchmarks", "", *head, "", *summary(rows), ""]
    for model, target in dict.fromkeys((row.model, row.target) for row in rows):
        lines += [f"## {model}, {target}", "", f"| {' | '.join(_TITLES)} |"]
        lines.append("|---|---|" + "---:|" * 7 + "---|")
        here = [row for row in rows if (row.model, row.target) == (model, target)]
        for row in sorted(here, key=lambda row: row.instructions or 1 << 60):
            lines.append(f"| {' | '.join(_cells(row))} |")
        lines.append("")
    if tools:
        lines += ["Recorded tools, not run here:", ""]
    lines += [f"- {name}: {text}" for name, text in tools.items()]
    return "\n".join(lines) + "\n"


def summary(rows: list[Row]) -> list[str]:
    """A table of a line a model and core: tinyfuse as it comes beside the tools that are exact on it."""
    lines = [
        "| model, core | tinyfuse: instructions / static RAM | TFLM (recorded) | bakeNN, CMSIS-NN |",
        "|---|---:|---:|---:|",
    ]
    for model, target in dict.fromkeys((row.model, row.target) for row in rows):
        here = [row for row in rows if (row.model, row.target) == (model, target) and row.exact]
        cells = []
        for tool, setting in (("tinyfuse", title(DEFAULT)), ("TFLM", ""), ("bakeNN", "cmsis-nn")):
            found = [row for row in here if row.tool == tool and row.setting.startswith(setting)]
            cells.append(f"{found[0].instructions:,} / {found[0].ram_bytes:,}" if found else "")
        lines.append(f"| {model}, {target} | {' | '.join(cells)} |")
    return lines


def _cells(row: Row) -> list[str]:
    tool = f"{row.tool} (recorded)" if row.recorded else row.tool
    if row.failure:
        return [tool, row.setting, f"none: {row.failure.replace('|', '/')}", *[""] * 7]
    figures = (
        row.instructions,
        row.instructions_per_mac,
        row.arena_bytes,
        row.ram_bytes,
        row.stack_bytes,
        row.flash_code_bytes,
        row.flash_weight_bytes,
    )
    return [tool, row.setting, *map(_figure, figures), {True: "yes", False: "no", None: ""}[row.exact]]


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
