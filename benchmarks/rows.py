"""One line of the comparison: a tool, one of its settings, a model and a core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Figures of one inference; None where they are not known.

    ram_bytes   static RAM: arena or workspace, inputs and outputs, and what else the tool holds
    exact       every output element of every run is TensorFlow Lite Micro's
    failure     why there are no figures
    """

    tool: str
    setting: str
    model: str
    target: str
    instructions: int | None = None
    instructions_per_mac: float | None = None
    arena_bytes: int | None = None
    ram_bytes: int | None = None
    stack_bytes: int | None = None
    flash_code_bytes: int | None = None
    flash_weight_bytes: int | None = None
    exact: bool | None = None
    recorded: bool = False
    failure: str | None = None


def recorded_rows(peers: dict) -> list[Row]:
    """The rows of peers.json."""
    return [
        Row(
            row["tool"],
            "",
            row["model"],
            row["target"],
            row["instructions"],
            round(row["instructions"] / peers["models"][row["model"]]["macs"], 3),
            None,
            row["ram_bytes"],
            row["stack_bytes"],
            row["flash_code_bytes"],
            row["flash_weight_bytes"],
            row["max_difference"] == 0,
            recorded=True,
        )
        for row in peers["rows"]
    ]
