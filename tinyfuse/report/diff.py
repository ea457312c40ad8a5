"""Compares two answers of `report`, `gen`, `verify` or `profile`: finds what grew, and what grew beyond its limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from tinyfuse.errors import UsageError
from tinyfuse.report.answer import SCHEMA_VERSION, JsonObject


@dataclass(frozen=True)
class Change:
    """A figure that both answers have. `limit` is its permitted growth as the user wrote it; None for no limit."""

    figure: str
    old: int
    new: int
    limit: str | None = None

    @property
    def change(self) -> int:
        return self.new - self.old

    @property
    def percent(self) -> float | None:
        """Growth in percent; None if the old figure is 0 and the new one is not."""
        return round(100 * self.change / self.old, 3) if self.old else None if self.new else 0.0

    @property
    def grew(self) -> bool:
        """Tells whether the figure grew by more than its limit."""
        if self.limit is None:
            return False
        amount, percent = parse_limit(self.limit)
        return self.change > (self.old * amount / 100 if percent else amount)

    def json(self) -> JsonObject:
        return asdict(self) | {"change": self.change, "percent": self.percent, "grew": self.grew}


#: figure -> functions that read it from an answer; the first that finds it in both answers is used. A measured figure
#: is never compared with a predicted or an estimated one.
_FIGURES: dict[str, tuple[Callable[[JsonObject], object], ...]] = {
    "ram": (lambda a: _sum(a, "arena_bytes", "state_bytes"),),
    "arena": (lambda a: a.get("arena_bytes"),),
    "state": (lambda a: a.get("state_bytes"),),
    "flash": (lambda a: _code(a, True, "weights"), lambda a: _code(a, False, "weights")),
    "weights": (lambda a: a.get("weight_bytes", a.get("flash_weight_bytes")),),
    "code": (lambda a: _code(a, True), lambda a: _code(a, False)),
    "stack": (lambda a: a.get("stack_bytes"),),
    "instructions": (lambda a: a.get("instructions"), lambda a: a.get("predicted_instructions")),
    "macs": (lambda a: a.get("macs"),),
}  # fmt: skip


def _sum(answer: JsonObject, *keys: str) -> object:
    values = [answer.get(key) for key in keys]
    return None if None in values else sum(_whole(value) for value in values)


def _code(answer: JsonObject, measured: bool, more: str = "") -> object:
    """Code bytes, measured or estimated as asked; with `more="weights"`, plus weight bytes. None if absent."""
    if "flash_code_bytes" in answer:
        keys = ("flash_code_bytes", *(["flash_weight_bytes"] if more else []))
        return _sum(answer, *keys) if measured else None
    if answer.get("code_bytes_measured") is not measured:
        return None
    return _sum(answer, "code_bytes", *(["weight_bytes"] if more else []))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise UsageError(f"a figure is {ascii(value)[:60]}: tinyfuse did not write this JSON")
    return value


def read_answer(name: str, text: str) -> JsonObject:
    """Reads an answer from the text of file `name`. UsageError if it cannot be compared."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not JSON ({error}); write it with `tinyfuse report ... --json`") from error
    if not isinstance(answer, dict) or "schema_version" not in answer:
        raise UsageError(f"{name}: not JSON of tinyfuse; write it with `tinyfuse report ... --json`")
    if answer["schema_version"] != SCHEMA_VERSION:
        raise UsageError(
            f"{name}: its JSON has version {answer['schema_version']!a}, and this tinyfuse reads {SCHEMA_VERSION}"
        )
    if "error" in answer:
        raise UsageError(f"{name}: it has no figures, because the command failed: {_message(answer)}")
    if not all(isinstance(answer.get(key), str) for key in ("model", "target", "tinyfuse_version")):
        raise UsageError(f"{name}: it has no model's figures; give the JSON of report, gen, verify or profile")
    return answer


def _message(answer: JsonObject) -> str:
    error = answer["error"]
    return str(error.get("message") if isinstance(error, dict) else error)[:200]


def parse_limits(given: tuple[str, ...]) -> dict[str, str]:
    """Parses ("ram=0,instructions=1%",) to {"ram": "0", "instructions": "1%"}. UsageError for other texts."""
    found: dict[str, str] = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        name, equals, limit = part.partition("=")
        if name not in _FIGURES or not equals:
            known = ", ".join(_FIGURES)
            raise UsageError(
                f"--fail-if-grows {part!a}: write FIGURE=LIMIT, such as ram=0 or instructions=1%; figures: {known}"
            )
        parse_limit(limit)
        found[name] = limit
    return found


def parse_limit(text: str) -> tuple[float, bool]:
    """Parses a limit, "12" or "1.5%", to its number and whether it is percent. UsageError for other texts."""
    if not re.fullmatch(r"\d{1,15}(\.\d{1,6})?%|\d{1,15}", text, re.ASCII):
        raise UsageError(
            f"--fail-if-grows: {text!a} is not a limit; write a whole number, or a percentage such as 1.5%"
        )
    return float(text.rstrip("%")), text.endswith("%")


def compare_figures(old: JsonObject, new: JsonObject, limits: Mapping[str, str]) -> list[Change]:
    """Pairs the figures that both answers have, in the order of _FIGURES. UsageError if one with a limit is missing."""
    found = []
    for name, sources in _FIGURES.items():
        pairs = ((source(old), source(new)) for source in sources)
        both = next(((was, now) for was, now in pairs if was is not None and now is not None), None)
        if both is not None:
            found.append(Change(name, _whole(both[0]), _whole(both[1]), limits.get(name)))
        elif name in limits:
            raise UsageError(
                f"--fail-if-grows {name}: the two files do not both have this figure, or one is measured and the other "
                "estimated; write both with the same command and tools"
            )
    return found


def comparison_warnings(old: JsonObject, new: JsonObject) -> list[str]:
    """Differences that make the two answers hard to compare, one sentence each."""
    found = []
    if old["target"] != new["target"]:
        found.append(f"the targets differ: {old['target']} and {new['target']}")
    for key in ("compiler", "compiler_opt"):
        if key in old and key in new and old[key] != new[key]:
            found.append(f"{key.replace('_', ' ')} differs: {old[key]!a} and {new[key]!a}")
    return found


def text_lines(changes: list[Change]) -> list[str]:
    """Table of the changes for a terminal, one line per figure."""
    lines = [f"{'':<13}{'old':>13}{'new':>13}{'change':>13}"]
    for change in changes:
        verdict = f"   more than {change.limit}" if change.grew else ""
        figures = f"{change.figure:<13}{change.old:>13,}{change.new:>13,}{change.change:>+13,}"
        lines.append(f"{figures}  {_percent(change):>9}{verdict}")
    return lines


def markdown_lines(changes: list[Change]) -> list[str]:
    """Table of the changes in Markdown, for a pull request."""
    lines = ["| figure | old | new | change | | limit |", "|---|---:|---:|---:|---:|---|"]
    for change in changes:
        limit = "" if change.limit is None else f"{change.limit}{' **exceeded**' if change.grew else ''}"
        lines.append(
            f"| {change.figure} | {change.old:,} | {change.new:,} | {change.change:+,} | {_percent(change)} | {limit} |"
        )
    return lines


def _percent(change: Change) -> str:
    if not change.change:
        return "="
    return "new" if change.percent is None else f"{change.percent:+.2f} %"
