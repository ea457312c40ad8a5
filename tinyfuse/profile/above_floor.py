"""Explains layers far above their floors, for a terminal: instructions per MAC by kind."""

from __future__ import annotations

from rich.table import Table

from tinyfuse.profile.instruction_kinds import KINDS
from tinyfuse.report.answer import JsonObject

#: shorter names of kinds, for a terminal
_TITLES = {"multiply": "mult", "requantize": "scale", "branch": "jump"}


def far_layers(data: JsonObject) -> list[tuple[str, JsonObject]]:
    """Operators that take more than `far_above_floor` times their floor, each with a label that has its group's number.
    Empty if single instructions were not counted."""
    return [
        (f"{number} {op['kind']}", op)
        for number, group in enumerate(data["groups"])
        for op in group["operators"]
        if op["floor_per_mac"] is not None
        and op["instructions_per_mac"] is not None
        and op["instructions_per_mac"] > data["far_above_floor"] * op["floor_per_mac"]
    ]


def above_floor_table(data: JsonObject) -> Table | None:
    """Table with the floor of each of `far_layers`, and its instructions per MAC by kind; None without such layers."""
    layers = far_layers(data)
    if not layers:
        return None
    title = f"instructions per MAC by kind, where above {data['far_above_floor']:g} times the floor"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="")
    table.add_column("group, operator", no_wrap=True)
    for title in ("floor", "all", *(_TITLES.get(kind, kind) for kind in KINDS)):
        table.add_column(title, justify="right", no_wrap=True)
    for label, op in layers:
        kinds = [op["instruction_kinds"][kind] / op["macs"] for kind in KINDS]
        figures = [op["floor_per_mac"], op["instructions_per_mac"], *kinds]
        table.add_row(label, *(f"{figure:.2f}" for figure in figures))
    return table
