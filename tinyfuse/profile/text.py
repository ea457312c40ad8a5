"""Text of a profile: totals beside the unfused build, bars by group and operator, and layers far above floors."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tinyfuse.profile.above_floor import above_floor_table
from tinyfuse.profile.image import REGIONS
from tinyfuse.report.answer import JsonObject

#: terminal columns from which kernels and instructions per output are shown
_WIDE = 120
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def profile_text(data: JsonObject, width: int) -> RenderableType:
    """Text of the JSON of `profile`, for a terminal of `width` columns. A dash stands for a figure that was not
    measured."""
    compiler = f"{data['compiler']} -{data['compiler_opt']}"
    head = Text(f"{data['options']['name']} on {data['target']}, {data['emulator']}, {compiler}")
    parts: list[RenderableType] = [head, Text(), _totals(data), Text(), _operators(data, width)]
    if (above := above_floor_table(data)) is not None:
        parts += [Text(), above]
    if data["cycles_source"]:
        source = f"cycles are estimated from: {data['cycles_source']}"
        parts += [Text(), Text(f"{source}{_waits(data)}", "dim")]
    parts += [Text(f"warning: {warning}", "yellow") for warning in data["warnings"]]
    return Group(*parts)


def _waits(data: JsonObject) -> str:
    """Words about the board's timing; empty without --timing."""
    timing = data["timing"]
    if timing is None:
        return ""
    return (
        f"; multiplied by {timing['fetch']:g}, plus {timing['cycles_per_flash_byte']:g} for each byte loaded from "
        f"flash; at {timing['mhz']:g} MHz (--timing {timing['name']})"
    )


# --- totals ------------------------------------------------------------------------------------


def _totals(data: JsonObject) -> Table:
    unfused = data["unfused"]
    table = Table(box=None, pad_edge=False)
    table.add_column("one inference")
    table.add_column(f"--fusion {data['options']['fusion']}", justify="right")
    if unfused:
        table.add_column("none", justify="right")
        table.add_column("saved", justify="right")
    for label, value in _total_rows(data):
        row = [label, format_figure(value)]
        if unfused:
            plain = dict(_total_rows(unfused)).get(label)  # None for memory banks, which it does not have
            row += [format_figure(plain), _saved(value, plain)]
        table.add_row(*row)
    return table


def _total_rows(build: JsonObject) -> list[tuple[str, float | None]]:
    def bytes_of(region: str, way: str) -> int | None:
        return build[way][region] if build[way] else None

    rows: list[tuple[str, float | None]] = [
        ("instructions", build["instructions"]),
        *([("instructions, mean step", mean)] if (mean := build["instructions_mean"]) is not None else []),
        ("instructions, predicted", build["predicted_instructions"]),
        ("instructions / MAC", build["instructions_per_mac"]),
        ("cycles, estimated", build["estimated_cycles"]),
        ("est. cycles, predicted", build["predicted_cycles"]),
        *([("ms, estimated", ms)] if (ms := build["estimated_ms"]) is not None else []),
        *([("cycles, on the board", cycles)] if (cycles := build.get("board_cycles")) is not None else []),
        ("calls", build["calls"]),
    ]
    for way, label in (("loaded_bytes", "bytes loaded"), ("stored_bytes", "bytes stored")):
        for region in REGIONS:
            value = bytes_of(region, way)
            if value != 0:
                rows.append((f"{label}, {region}", value))
    for bank, found in (build["bank_bytes"] or {}).items():
        rows += [(f"bytes {way}, bank {bank}", value) for way, value in found.items() if value]
    state = [("state bytes", build["state_bytes"])] if build["state_bytes"] else []
    return [*rows, ("arena bytes", build["arena_bytes"]), *state, ("stack bytes", build["stack_bytes"])]


def _saved(value: float | None, plain: float | None) -> str:
    if value is None or not plain:
        return "-"
    return f"{100 * (plain - value) / plain:.1f} %"


# --- operators ---------------------------------------------------------------------------------


def _operators(data: JsonObject, width: int) -> Table:
    wide, on_board = width >= _WIDE, data["board_cycles"] is not None
    length = 24 - 14 * on_board if wide else max(8, width - 77 - 6 * on_board)
    table = Table(box=None, pad_edge=False)
    table.add_column("group, operator", no_wrap=True)
    if wide:
        table.add_column("kernel", no_wrap=True, overflow="ellipsis", style="dim")
    # columns for which a narrow terminal has no room
    hidden = {"/MAC", "/output"} if on_board else {"board"} if wide else {"board", "/output"}
    for title in _COLUMNS:
        if title not in hidden:
            table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", width=length, no_wrap=True)

    def row(label: str, kernel: str, usage: JsonObject, bar: str, style: str | None) -> None:
        shown = zip(_COLUMNS, _figures(usage, data["instructions"]), strict=True)
        figures = [text for title, text in shown if title not in hidden]
        table.add_row(label, *([kernel] if wide else []), *figures, Text(bar, "cyan"), style=style)

    used = [op["instructions"] or 0 for group in data["groups"] for op in group["operators"]]
    largest = max([*used, 1])
    for number, group in enumerate(data["groups"]):
        several = len(group["operators"]) > 1
        if several:
            stack = "" if group["stack_bytes"] is None else f"stack {group['stack_bytes']:,} bytes"
            row(f"{number} whole group", stack, group, "", "bold")
        for op in group["operators"]:
            bar = draw_bar(op["instructions"], largest, length)
            usage = op if several else op | {"board_cycles": group["board_cycles"]}  # boards count groups
            row(f"  {op['kind']}" if several else f"{number} {op['kind']}", op["kernel"], usage, bar, None)
    return table


_COLUMNS = ("instructions", "%", "predicted", "/MAC", "/output", "cycles", "board")


def _figures(usage: JsonObject, all_of_them: int | None) -> list[str]:
    """Texts of the columns _COLUMNS."""
    share = usage["instructions"] is not None and all_of_them
    return [
        format_figure(usage["instructions"]),
        f"{100 * usage['instructions'] / all_of_them:.1f}" if share else "-",
        _error(usage),
        format_figure(usage["instructions_per_mac"], 2),
        format_figure(usage["instructions_per_output"], 1),
        format_figure(usage["estimated_cycles"]),
        format_figure(usage.get("board_cycles")),
    ]


def _error(usage: JsonObject) -> str:
    """Error of the prediction in percent."""
    measured, predicted = usage["instructions"], usage["predicted_instructions"]
    return f"{100 * (predicted - measured) / measured:+.1f} %" if measured and predicted is not None else "-"


def draw_bar(value: int | None, largest: int, length: int) -> str:
    """Bar of at most `length` characters, in steps of an eighth."""
    eighths = round(8 * length * (value or 0) / largest)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def format_figure(value: float | None, digits: int = 3) -> str:
    """Number for people; a dash if it is not known."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
