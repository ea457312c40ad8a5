"""Text of an explanation for a terminal: fusions taken and refused, and advice."""

from __future__ import annotations

from tinyfuse.explain.sliding import sliding_lines
from tinyfuse.ir.graph import quoted
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.limits import limits_lines
from tinyfuse.report.predicted import not_predicted_lines
from tinyfuse.report.text import cycles_words, reordering_lines
from tinyfuse.report.wrapping import wrap_text


def explain_text(data: JsonObject) -> str:
    """Text of the JSON of `explain_json`, for a terminal."""
    planned = (
        f"{data['options']['name']} for {data['target']}, --optimize {data['options']['optimize']}: arena "
        f"{data['arena_bytes']:,} bytes, predicted {_instructions(data)}"
        f"{_cycles(data)}"
    )
    lines = [
        *_wrap(planned, "  ", first=""),
        *(line for told in not_predicted_lines(data) for line in _wrap(told, "  ", first="")),
        *reordering_lines(data["reordering"]),
        "",
    ]
    for fusion in data["fusions"]:
        lines += _fusion(fusion)
    for table in data["tables"]:
        lines += _wrap(_table(table), "  ", first="")
    for loop in data["merged"]:
        lines += _wrap(_merged(loop), "  ", first="")
    for tiles in data["tiled"]:
        lines += _wrap(_tiled(tiles), "  ", first="")
    for again in data["again"]:
        lines += _wrap(_again(again), "  ", first="")
    lines += sliding_lines(data)
    lines += ["", "advice" if data["advice"] else "no advice"]
    for advice in data["advice"]:
        lines += _wrap(f"{advice['topic']}: {advice['operator']} {advice['message']}", "  ")
        lines += _wrap(f"-> {advice['hint']}", "     ")
    lines += limits_lines(data["limits"])
    for warning in data["warnings"]:
        lines += _wrap(f"warning: {warning}", "  ", first="")
    return "\n".join(lines) + "\n"


def _fusion(fusion: JsonObject) -> list[str]:
    numbers = ", ".join(map(str, fusion["groups"]))
    what = f"taken    group {numbers}" if fusion["taken"] else f"refused  groups {numbers}"
    lines = _wrap(f"{what}: {_operators(fusion['operators'])}", "  ", first="")
    if fusion["fused"]:
        lines += _wrap(f"fused {_cost(fusion['fused'])}", "           ")
    lines += _wrap(f"apart {_cost(fusion['apart'])}", "           ")
    return lines + _wrap(fusion["reason"], "           ")


def _table(table: JsonObject) -> str:
    what, where = " + ".join(table["kinds"]), f"op {table['operator']['index']} {quoted(table['operator']['name'])}"
    size = f"{table['bytes']:,} bytes"
    tables = f"a table of {size}" if table["channels"] == 1 else f"{table['channels']} channels' tables of {size}"
    how = ", which the layer in front of it applies" if table["in_layer"] else ""
    return f"table    {where}: {what} of an int8 value are {tables}{how}"


def _merged(loop: JsonObject) -> str:
    what, where = " + ".join(loop["kinds"]), f"op {loop['operator']['index']} {quoted(loop['operator']['name'])}"
    return f"merged   {where}: {what} are one loop, whose intermediate values stay in registers"


def _tiled(tiles: JsonObject) -> str:
    what, where = " + ".join(tiles["kinds"]), f"op {tiles['operator']['index']} {quoted(tiles['operator']['name'])}"
    again = f", for {tiles['macs_again']:,} MACs more" if tiles["macs_again"] else ""
    size = f"{tiles['rows']} {'row' if tiles['rows'] == 1 else 'rows'} and {tiles['columns']} columns"
    return f"tiled    {where}: {what} are computed together for {size} at a time{again}"


def _again(again: JsonObject) -> str:
    what, where = " + ".join(again["kinds"]), f"op {again['operator']['index']} {quoted(again['operator']['name'])}"
    cost = f", for {again['macs']:,} MACs more" if again["macs"] else ""
    return f"again    {where}: {what} run again for a later reader{cost}, so their result need not be kept"


def _operators(operators: list[JsonObject]) -> str:
    """Kinds of the operators, with counts of adjacent equal ones: "CONV_2D + 2 ADD"."""
    shown: list[tuple[str, int]] = []
    for op in operators:
        if shown and shown[-1][0] == op["kind"]:
            shown[-1] = (op["kind"], shown[-1][1] + 1)
        else:
            shown.append((op["kind"], 1))
    return " + ".join(kind if count == 1 else f"{count} {kind}" for kind, count in shown)


def _cost(cost: JsonObject) -> str:
    """Words for the known parts of a cost."""
    ram = [] if cost["ram_bytes"] is None else [f"{cost['ram_bytes']:,} bytes of RAM"]
    cycles = [] if cost["cycles"] is None else [f"{cost['cycles']:,} cycles estimated"]
    return ", ".join([_count(cost["instructions"]), *cycles, *ram])


def _cycles(data: JsonObject) -> str:
    if data["known_cycles"] is None:
        return ""
    return f", {data['known_cycles']:,} cycles estimated{cycles_words(data)}"


def _instructions(data: JsonObject) -> str:
    """Words for the predicted instructions of all operators, or of those that can be predicted."""
    known = data["known_instructions"]
    return _count(known) + (" for the rest" if data["not_predicted"] and known is not None else "")


def _count(value: int | None) -> str:
    return "instructions not known" if value is None else f"{value:,} instructions"


def _wrap(text: str, indent: str, first: str | None = None) -> list[str]:
    return wrap_text(text, indent + "  ", indent if first is None else first)
