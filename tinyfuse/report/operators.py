"""Text and JSON of `tinyfuse operators` and docs/operators.md: operators, their rules and tested cases.

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

_HEAD = """\
# Operators

Operators that a model may consist of. `python tests/support/case_counts.py` writes this page from `tinyfuse operators
--json` and the tables of the tests. A model that breaks a rule is refused before anything is written, with the
operator, the tensor and a hint.

Every case is an operator with its own shapes, quantization and attributes, and its result is compared byte for byte.
**TFLM** counts the cases in which our Python reference is compared with TensorFlow Lite Micro's interpreter (LiteRT's,
if TFLM lacks the operator). The other columns count the cases in which every C kernel of ours that takes the operator
is compared with that reference: whole, by rows, from rings and in place, on the **host** under sanitizers and on
emulated cores (**M4**, **M55**). Random cases, random networks and CMSIS-NN's kernels are tested as well.

*Rows*: it can be computed row by row in a fusion group. *In place*: the output may overwrite an input. *Dtypes*: cases
compared with the interpreter, by dtype of their data; uint8 is compared with LiteRT's reference kernels. Operators that
are tested in whole models (control flow, variables, SVDF, LSTM, ...) have no cases.
`tinyfuse operators KIND` names the kernels too.
"""


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


def _link(kind: str) -> str:
    """Link to the heading of a kind in docs/operators.md."""
    return f"[{kind}](#{kind.lower().replace(' ', '-')})"


def operators_markdown(data: JsonObject) -> str:
    """Text of docs/operators.md."""
    lines = [
        _HEAD,
        "| operator | computes | rows | in place | TFLM | host | M4 | M55 | dtypes |",
        "|---|---|---|---|---:|---:|---:|---:|---|",
    ]
    for o in data["operators"]:
        cells = [
            _link(o["kind"]), escape_markdown(o["summary"]), _yes(o["streams_rows"]), _yes(o["in_place"]),
            *_cells(o["tested_cases"]), _dtypes(o["dtypes"]),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Rules"]
    first_with: dict[tuple[str, ...], str] = {}
    for o in data["operators"]:
        first = first_with.setdefault(tuple(o["rules"]), o["kind"])
        rules = [f"- {escape_markdown(rule)}" for rule in o["rules"]]
        lines += ["", f"### {o['kind']}", "", *(rules if first == o["kind"] else [f"The rules of {_link(first)}."])]
        if not o["kernels"]:
            lines += ["", "No kernel: the compiler removes it."]
    return "\n".join(lines) + "\n"


def _dtypes(counts: dict[str, int]) -> str:
    """Cell of the dtypes, "int8 25, int16 11"."""
    return ", ".join(f"{dtype} {count}" for dtype, count in counts.items() if count)


def _cells(counts: dict[str, int]) -> list[str]:
    """Cells of the counts."""
    by = " (LiteRT)" if "litert" in counts else ""
    first, *others = map(str, counts.values())
    return [first + by, *others]


def _emulated(data: JsonObject) -> int:
    return sum(count for place, count in data["tested_cases"].items() if place.startswith("cortex"))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def escape_markdown(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    for character in "\\`*_|<[":
        text = text.replace(character, "\\" + character)
    return text
