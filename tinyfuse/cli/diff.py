"""`tinyfuse diff`: compares two answers."""

from __future__ import annotations

import click

from tinyfuse.cli.files import read_text
from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, show, versioned
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.diff import (
    compare_figures,
    comparison_warnings,
    markdown_lines,
    parse_limits,
    read_answer,
    text_lines,
)

_EXAMPLES = """\b
Examples:
  tinyfuse diff old.json new.json
  tinyfuse diff old.json new.json --fail-if-grows ram=0,instructions=1%
  tinyfuse diff old.json new.json --markdown >> "$GITHUB_STEP_SUMMARY"
"""

#: largest answer that is read, in bytes
_MOST_BYTES = 1 << 28


@click.command("diff", epilog=_EXAMPLES)
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option(
    "--fail-if-grows",
    multiple=True,
    metavar="FIGURE=LIMIT,...",
    help="Exit with code 1 if a figure grew by more than LIMIT, a number or a percentage of the old figure. FIGURE is "
    "ram, arena, state, flash, weights, code, stack, instructions or macs.",
)
@click.option("--markdown", is_flag=True, help="Print the comparison as a Markdown table.")
@json_flag()
def command(old: str, new: str, fail_if_grows: tuple[str, ...], markdown: bool, as_json: bool) -> int:
    """Compare RAM, flash and instructions in two JSON files, OLD and NEW, which report, gen, verify or profile printed
    with --json."""
    return show(diff(old, new, fail_if_grows, markdown), as_json)


def diff(old: str, new: str, fail_if_grows: tuple[str, ...] = (), markdown: bool = False) -> Answer:
    """Compares two answers; `exact` is False if a figure grew beyond its limit. UsageError for files that cannot be
    compared."""
    limits = parse_limits(fail_if_grows)
    before, after = read_answer(old, _text(old)), read_answer(new, _text(new))
    changes, warnings = compare_figures(before, after, limits), comparison_warnings(before, after)
    ok = not any(change.grew for change in changes)
    data = versioned(
        old=_about(before), new=_about(after), figures=[change.json() for change in changes], warnings=warnings, ok=ok
    )
    lines = markdown_lines(changes) if markdown else text_lines(changes)
    lines += [f"{'> ' if markdown else ''}warning: {warning}" for warning in warnings]
    return Answer(data, lines, exact=ok)


def _text(name: str) -> str:
    return read_text(name, "a JSON file", _MOST_BYTES, "not JSON: ")


def _about(answer: JsonObject) -> JsonObject:
    return {key: answer.get(key) for key in ("model", "model_sha256", "target", "tinyfuse_version")}
