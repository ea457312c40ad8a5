"""Text of a validation on a board: the verdict, then bars by group as in `profile`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tinyfuse.profile.text import draw_bar, format_figure
from tinyfuse.report.answer import JsonObject, verdict

#: terminal columns from which kernels, maximum cycles and cycles per MAC are shown
_WIDE = 110


def board_text(data: JsonObject, width: int) -> RenderableType:
    """Text of the JSON of `board validate`, for a terminal of `width` columns."""
    streams = f" in streams of {data['frames']}" if data["frames"] else ""
    parts: list[RenderableType] = [
        Text(
            f"{verdict(data)}: {data['mismatches']:,} of {data['outputs']:,} output elements differ in "
            f"{data['runs']} runs{streams} (the board at {data['port']} against {data['oracle']})"
        )
    ]
    if data["first_mismatch"]:
        parts.append(Text(_first_mismatch(data["first_mismatch"])))
    parts += [Text(problem) for problem in data["problems"]]
    if data["cycles"] is not None:
        parts += [*_totals(data), Text(), _groups(data, width)]
    return Group(*parts, *(Text(f"warning: {warning}", "yellow") for warning in data["warnings"]))


def _first_mismatch(found: JsonObject) -> str:
    return (
        f"first difference: run {found['run']}, output {found['tensor']!r} {list(found['index'])}: "
        f"computed {found['computed']}, expected {found['expected']}"
    )


def _totals(data: JsonObject) -> list[Text]:
    lines = [
        f"cycles        {data['cycles']:,}, {data['least_cycles']:,} to {data['most_cycles']:,} over all inputs; "
        f"{data['outside_cycles']:,} between groups ({data['counter']})",
    ]
    if data["predicted_instructions"] is not None:
        lines.append(f"predicted     {data['predicted_instructions']:,} instructions, {_each(data)} cycles each")
    if data["longest_step_cycles"] is not None:
        lines.insert(1, f"longest step  {data['longest_step_cycles']:,} cycles")
    return [Text(line) for line in lines]


def _groups(data: JsonObject, width: int) -> Table:
    wide = width >= _WIDE
    length = 20 if wide else max(8, width - 70)
    table = Table(box=None, pad_edge=False)
    table.add_column("group, operator", no_wrap=True)
    if wide:
        table.add_column("kernel", no_wrap=True, overflow="ellipsis", style="dim")
    for title in ("cycles", "%", *(["most", "/MAC"] if wide else []), "predicted", "cycles/instr."):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", width=length, no_wrap=True)
    largest = max([1, *(group["cycles"] for group in data["groups"])])
    for number, group in enumerate(data["groups"]):
        operators = group["operators"]
        several = len(operators) > 1
        first = operators[0]
        label = f"{number} together" if several else f"{number} {first['kind']}"
        kernel = "" if several else first["kernel"]
        share = f"{100 * group['cycles'] / data['cycles']:.1f}" if data["cycles"] else "-"
        per_mac = format_figure(group["cycles"] / group["macs"], 2) if group["macs"] else "-"
        more = [format_figure(group["most_cycles"]), per_mac] if wide else []
        figures = [
            format_figure(group["cycles"]),
            share,
            *more,
            format_figure(group["predicted_instructions"]),
            _each(group),
        ]
        drawn = Text(draw_bar(group["cycles"], largest, length), "cyan")
        table.add_row(label, *([kernel] if wide else []), *figures, drawn, style="bold" if several else None)
        for op in operators if several else ():
            figures = ["", "", *([""] * len(more)), format_figure(op["predicted_instructions"]), ""]
            table.add_row(f"  {op['kind']}", *([op["kernel"]] if wide else []), *figures, "")
    return table


def _each(usage: JsonObject) -> str:
    """Cycles per predicted instruction."""
    predicted = usage["predicted_instructions"]
    return format_figure(usage["cycles"] / predicted) if predicted else "-"
