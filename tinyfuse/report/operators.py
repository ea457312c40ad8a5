"""Text and JSON of `tinyfuse operators`: operators, their rules and tested cases.

Rules come from the families in tinyfuse/ops. tests/support/case_counts.py counts the cases in the tests' tables and
writes them to `tested_cases.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tinyfuse import __version__
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.report.answer import JsonObject

#: JSON file: kind -> {place: number of operators, each with its own shapes and quantization, compared there}
TESTED_CASES = Path(__file__).with_name("tested_cases.json")

#: places where the kernels' cases run
_KERNEL_PLACES = ("host", "cortex-m4", "cortex-m55")


def operators_json() -> JsonObject:
    """JSON of `tinyfuse operators --json` (docs/json.md)."""
    counts = json.loads(TESTED_CASES.read_text(encoding="utf-8"))
    families = sorted((f for f in FAMILIES.values() if f.in_files), key=lambda family: family.kind)
    return {
        "schema_version": 1,
        "tinyfuse_version": __version__,
        "operators": [_data(family, counts.get(family.kind, {})) for family in families],
    }


def case_places(family: OpFamily) -> tuple[str, ...]:
    """Names of the places where cases run. The first one compares the Python reference with an interpreter."""
    return "tflm" if family.in_tflm else "litert", *_KERNEL_PLACES


def _data(family: OpFamily, counts: JsonObject) -> JsonObject:
    return {
        "kind": family.kind,
        "summary": family.summary,
        "rules": [rule.text for rule in family.rules],
        "kernels": sorted({(kernel.library, kernel.name) for kernel in kernels_of(family.kind)}),
        "streams_rows": any(kernel.by_row for kernel in kernels_of(family.kind)),
        "in_place": family.alias or any(_works_in_place(kernel) for kernel in kernels_of(family.kind)),
        "tested_cases": {place: counts.get(place, 0) for place in case_places(family)},
        "dtypes": counts.get("dtypes", {}),
    }


def _works_in_place(kernel: Kernel) -> bool:
    """Tells whether the kernel can compute some operator in place."""
    return bool(kernel.in_place) or type(kernel).access_orders is not Kernel.access_orders


def operators_lines(data: JsonObject) -> list[str]:
    """Table of all operators for a terminal."""
    rows = [(o["kind"], str(o["tested_cases"]["host"]), str(_emulated(o)), o["summary"]) for o in data["operators"]]
    head = ("operator", "host", "emulated", "computes")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for kind, host, emulated, summary in (head, *rows):
        lines.append(f"{kind:<{widths[0]}}  {host:>{widths[1]}}  {emulated:>{widths[2]}}  {summary}")
    lines += ["", "host, emulated: cases compared byte for byte. Rules: `tinyfuse operators KIND`."]
    return lines


def operator_lines(data: JsonObject) -> list[str]:
    """Text of one operator with its rules and kernels; `data` is an entry of "operators"."""
    cases = ", ".join(f"{count} {place}" for place, count in data["tested_cases"].items())
    return [
        f"{data['kind']}: {data['summary']}",
        *(f"  rule     {rule}" for rule in data["rules"]),
        *(f"  kernel   {name} ({library})" for library, name in data["kernels"]),
        f"  rows     {_yes(data['streams_rows'])}",
        f"  in place {_yes(data['in_place'])}",
        f"  cases    {cases}",
        f"  dtypes   {', '.join(f'{count} {dtype}' for dtype, count in data['dtypes'].items()) or 'of whole models'}",
    ]


def _emulated(data: JsonObject) -> int:
    return sum(count for place, count in data["tested_cases"].items() if place.startswith("cortex"))


def _yes(value: bool) -> str:
    return "yes" if value else "no"
