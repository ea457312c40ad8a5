"""`tinyfuse operators`: lists the operators that a model may have."""

from __future__ import annotations

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, show
from tinyfuse.errors import UsageError
from tinyfuse.report.operators import operator_lines, operators_json, operators_lines

_EXAMPLES = """\b
Examples:
  tinyfuse operators
  tinyfuse operators CONV_2D ADD
  tinyfuse operators --json | jq .operators[].kind
"""


@click.command("operators", epilog=_EXAMPLES)
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@json_flag("Print only JSON (docs/json.md).")
def command(kinds: tuple[str, ...], as_json: bool) -> int:
    """List the operators that a model may have. With KINDs, such as CONV_2D, show their rules, kernels and tested
    cases."""
    data = operators_json()
    if not kinds:
        return show(Answer(data, operators_lines(data)), as_json)
    known = {operator["kind"].upper(): operator for operator in data["operators"]}
    unknown = [kind for kind in kinds if kind.upper() not in known]
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: not a supported operator; `tinyfuse operators` lists all")
    data["operators"] = [known[kind.upper()] for kind in kinds]
    return show(Answer(data, [line for each in data["operators"] for line in operator_lines(each)]), as_json)
