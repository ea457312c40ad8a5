"""report.txt: the report for people, with a map of the arena; plain ASCII, deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tinyfuse import __version__
from tinyfuse.arena import arena_map
from tinyfuse.board_timing import BY_USER
from tinyfuse.emit.identifiers import comment
from tinyfuse.ir import ARITHMETIC
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.buffer_roles import buffer_roles
from tinyfuse.report.compressed import compressed_lines, compressed_summary
from tinyfuse.report.memory import layer_lines, memory_lines
from tinyfuse.report.predicted import not_predicted_lines
from tinyfuse.report.window import window_lines
from tinyfuse.report.wrapping import wrap_text

#: Group.library -> name in the report
_LIBRARIES = {"tinyfuse": "tinyfuse", "cmsis-nn": "CMSIS-NN", "both": "both"}

_BETWEEN = (
    "traffic: bytes of the whole tensors that the group reads and writes; unfused: the same if each of its operators "
    "ran alone. Rows that stay inside a group and repeated loads are not counted; `tinyfuse profile` measures them"
)


def report_text(plan: Plan, data: JsonObject, cycles: bool = False) -> str:
    """Text of report.txt. `data` is from report_json, without a measured code size. `cycles` adds estimated cycles even
    if the options do not ask for them."""
    counts_cycles, board = plan.options.count == "cycles", plan.context.cycles
    assumed = f" as on {board.name}" if board and board.name and plan.options.timing is None else ""
    roles = buffer_roles(plan)
    lines = [
        *_wrap_lines(
            f"{plan.options.name}: {comment(plan.graph.path.replace(chr(92), '/').split('/')[-1])} "
            f"for {plan.context.target.name}, by tinyfuse {__version__}"
        ),
        f"model SHA-256 {plan.graph.sha256}",
        *_wrap_lines(f"output bits equal those of {plan.source.runtime}, where {ARITHMETIC[plan.source.runtime]}"),
        f"kernels {plan.options.kernels}, fusion {plan.options.fusion}, optimize {plan.options.optimize}"
        f"{f', count cycles{assumed}' if counts_cycles else ''}",
        "",
        *summary_lines(data, cycles or counts_cycles or plan.options.timing is not None),
        "",
        *_wrap_lines(
            *_port_lines("input", data["inputs"]),
            *_port_lines("output", data["outputs"]),
            *_fed_lines(data),
            *_state_lines(data["states"]),
            "",
            *_rewrite_lines(data),
            *compressed_lines(data["compressed"]),
            *layer_lines(data["memory"]),
        ),
        *_group_lines(data),
        "",
        "Arena: addresses upward, groups to the right in the order in which they run",
        arena_map([replace(b, owner=roles[b.name].text) for b in plan.buffers], plan.placement),
    ]
    for warning in plan.warnings:
        lines += ["", *wrap_text(f"warning: {comment(warning)}", "  ")]
    return "\n".join(lines) + "\n"


def summary_lines(data: JsonObject, cycles: bool = True) -> list[str]:
    """Lines of the figures that `gen` prints; `cycles` adds estimated cycles."""
    arena, unfused = data["arena_bytes"], data["unfused_arena_bytes"]
    proof = (
        "placement proven minimal"
        if data["placement_optimal"]
        else f"no placement takes less than {data['arena_lower_bound']:,}"
    )
    estimate = f"measured; {data['estimated_code_bytes']:,} estimated" if data["code_bytes_measured"] else "estimated"
    lines = [
        f"arena    {arena:>11,} bytes   {kib(arena)}, {proof}; {unfused:,} with --fusion none",
        *_state_line(data),
        *window_lines(data),
        *reordering_lines(data["reordering"]),
        f"weights  {data['weight_bytes']:>11,} bytes   {kib(data['weight_bytes'])}",
        *compressed_summary(data["compressed"]),
        f"code     {data['code_bytes']:>11,} bytes   {kib(data['code_bytes'])}, {estimate}{_library_words(data)}",
        *_device_lines(data),
        f"MACs     {data['macs']:>11,}{_macs_words(data)}",
        *_instructions_line(data),
        *(_cycles_line(data) if cycles else []),
        *_longest_step_line(data["longest_step"]),
        *memory_lines(data["memory"]),
    ]
    return [part for line in lines for part in wrap_text(line, " " * 29)]


def _wrap_lines(*lines: str) -> Iterator[str]:
    """Wraps lines that begin with a label; continuations are indented below the second word."""
    for line in lines:
        yield from wrap_text(line, " " * 8)


def _device_lines(data: JsonObject) -> list[str]:
    """Shares of the RAM and flash of the named microcontroller; empty in report.txt, which names none."""
    device = data.get("device")
    if device is None:
        return []
    taken = {
        "RAM": (data["arena_bytes"] + data["state_bytes"], device["ram"]),
        "flash": (data["weight_bytes"] + data["code_bytes"] + (data["helper_bytes"] or 0), device["flash"]),
    }
    return [
        f"{sort:<8} {used:>11,} bytes   {kib(used)}, {100 * used / there:.1f} % of {device['name']}'s {kib(there)}"
        for sort, (used, there) in taken.items()
        if there
    ]


def kib(size: int) -> str:
    """Size in KiB (1,024 bytes) with one decimal, "5.0 KiB"."""
    return f"{size / 1024:,.1f} KiB"


def _instructions_line(data: JsonObject) -> list[str]:
    unknown = not_predicted_lines(data)
    if data["known_instructions"] is None:
        return unknown
    run = "inference" if data["window"] is None else "step"
    without = f", without {len(unknown)} operator{'s' if len(unknown) > 1 else ''}" if unknown else ""
    return [f"speed    {data['known_instructions']:>11,} instructions per {run}, predicted{without}", *unknown]


def _cycles_line(data: JsonObject) -> list[str]:
    if data["known_cycles"] is None:
        return []
    run, told = "inference" if data["window"] is None else "step", cycles_words(data)
    without = ", without these operators," if data["predicted_cycles"] is None and data["not_predicted"] else ""
    return [f"cycles   {data['known_cycles']:>11,} per {run}, estimated{without}{told}"]


def cycles_words(data: JsonObject) -> str:
    """Words that follow a number of estimated cycles: the board, the milliseconds, the clock and the wait states."""
    timing = data["timing"]
    if timing is None:
        return " for memories without wait states"
    named = "" if timing["source"] == BY_USER else f" on {timing['name']}"
    milliseconds = "" if data["predicted_ms"] is None else f", {data['predicted_ms']:,} ms"
    clock, waits = f"{timing['mhz']:g} MHz", f"{timing['cycles_per_flash_byte']:g} cycles per byte read from flash"
    return f"{named}{milliseconds} at {clock}, {waits}"


def _longest_step_line(step: JsonObject | None) -> list[str]:
    if step is None:
        return []
    told = "?" if step["predicted_instructions"] is None else f"{step['predicted_instructions']:,}"
    return [f"step     {told:>11} instructions in the longest, predicted: group {step['group']}, {step['operator']}"]


def reordering_lines(reordering: JsonObject | None) -> list[str]:
    """Line about operators that run in another order than the file's; empty if none moved."""
    if reordering is None:
        return []
    count, instructions = reordering["operators_moved"], reordering["file_order_predicted_instructions"]
    time = "" if instructions is None else f" and {instructions:,} instructions"
    moved = f"{count} operators run" if count > 1 else "an operator runs"
    arena = f"{reordering['file_order_arena_bytes']:,} bytes of arena{time}"
    return [f"order    {moved} earlier or later than in the file, whose order would take {arena}"]


def _library_words(data: JsonObject) -> str:
    """Words about functions that the linker adds from the C library."""
    return f"; {data['helper_bytes']:,} more for functions of the C library" if data["helper_bytes"] else ""


def _state_line(data: JsonObject) -> list[str]:
    """Line about the state, which a module keeps beside the arena from one inference to the next."""
    if not data["state_bytes"]:
        return []
    return [f"state    {data['state_bytes']:>11,} bytes   {kib(data['state_bytes'])} per stream, beside the arena"]


def _macs_words(data: JsonObject) -> str:
    """Words about MACs that differ from the model's.

    They are fewer after removal of dead channels (rewrite/prune_channels.py), and more with tiles
    (schedule/groups/tiling.py) and layers that run again (rewrite/rematerialize.py).
    """
    if data["macs"] == data["model_macs"]:
        return ""
    if data["macs"] > data["model_macs"]:
        times = data["macs"] / data["model_macs"]
        return f"         {times:.3f} times the model's {data['model_macs']:,}: some rows are computed twice"
    return f"         of the model's {data['model_macs']:,}: channels that change no output are removed"


def _port_lines(kind: str, ports: list[JsonObject]) -> list[str]:
    lines = []
    for port in ports:
        shape = "x".join(map(str, port["shape"])) or "scalar"
        quant = "" if port["scale"] is None else f"  scale {port['scale']:.9g}, zero point {port['zero_point']}"
        lines.append(f"{kind:<7} {port['symbol']}: {port['dtype']} {shape}{quant}")
    return lines


def _rewrite_lines(data: JsonObject) -> list[str]:
    if not data["rewrites"]:
        return []
    width = max(len(one["pass"]) for one in data["rewrites"])
    lines = [f"{'rewrite':<{width}}  {'MACs saved':>11}  {'weights':>9}  {'copied':>9}  operators"]
    for one in data["rewrites"]:
        figures = f"{one['macs_saved']:>11,}  {one['weight_bytes_saved']:>9,}  {one['copied_bytes_saved']:>9,}"
        lines.append(f"{one['pass']:<{width}}  {figures}  {one['what']}")
    return [*lines, ""]


def _fed_lines(data: JsonObject) -> list[str]:
    if data["fed_input"] is None:
        return []
    return [f"{comment(data['fed_input'])} is passed row by row, and never in RAM as a whole"]


def _state_lines(states: list[JsonObject]) -> list[str]:
    return [
        f"state   {comment(repr(state['name']))}: {state['dtype']} {'x'.join(map(str, state['shape']))}, "
        f"{state['bytes']:,} bytes at {state['offset']:,}{', a ring of rows' if state['ring'] else ''}"
        f"{', a part of it written in place' if state['updated_in_place'] else ''}"
        for state in states
    ]


def _group_lines(data: JsonObject) -> list[str]:
    # the column tells which library's kernels a group calls; it is left out if all are ours
    several = any(group["library"] != "tinyfuse" for group in data["groups"])
    header = "  library" if several else ""
    lines = wrap_text(_BETWEEN, "  ")
    lines.append(f"{'group':>5}  {'MACs':>11}  {'scratch':>8}  {'traffic':>9}  {'unfused':>10}{header}")
    for index, group in enumerate(data["groups"]):
        library = f"  {_LIBRARIES[group['library']]}" if several else ""
        lines.append(
            f"{index:>5}  {group['macs']:>11,}  {group['scratch_bytes']:>8,}  {group['traffic_bytes']:>9,}"
            f"  {group['unfused_traffic_bytes']:>10,}{library}"
        )
        lines += wrap_text(" + ".join(op["kind"] for op in group["operators"]), " " * 9, " " * 7)
        lines += wrap_text(", ".join(dict.fromkeys(group["kernels"])), " " * 9, " " * 7)
    return lines
