"""Faults to seed into a generated module: what `verify` must see.

    for mutant in mutants(emit(plan), plan): mutant.files is the module with one fault

Every fault is one small change of the text of NAME.c, NAME.h or NAME_weights.c, made mechanically; `kind`
says which sort it is of. Mutation testing as in DeMillo, Lipton, Sayward, "Hints on Test Data Selection:
Help for the Practicing Programmer", Computer, 1978.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tinyfuse.plan import Plan


@dataclass(frozen=True)
class Mutant:
    """A module with one fault: the file and line, and the line before and after."""

    kind: str
    file: str
    number: int
    before: str
    after: str
    files: dict[str, str]

    @property
    def fields(self) -> dict[str, int]:
        """For a change of a kernel's parameters: all fields before the change."""
        lines = self.files[self.file].split("\n")
        lines[self.number - 1] = self.before
        start = max((i for i in range(self.number) if lines[i].endswith(" = {")), default=0)
        found = (re.match(r" *\.(\w+) = (-?\d+),", line) for line in lines[start + 1 :])
        return {match[1]: int(match[2]) for match in itertools.takewhile(bool, found)}

    @property
    def kernel(self) -> str:
        """The function that is called next after the line, or ""."""
        after = "\n".join(self.files[self.file].split("\n")[self.number - 1 :])
        call = re.search(r"^ +(tinyfuse_\w+)\(", after, re.M)
        return call[1] if call else ""

    @property
    def unread(self) -> bool:
        """Tells whether the kernel's header never reads the changed field."""
        field = re.match(r" *\.(\w+) = ", self.before)
        headers = [text for text in self.files.values() if self.kernel and f" {self.kernel}(const " in text]
        return bool(field and headers) and not any(f"p->{field[1]}" in text for text in headers)

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}:{self.number}: {self.before.strip()!r} became {self.after.strip()!r}"


#: kind -> names of the fields of a kernel's parameters
_FIELDS = {
    "window": "kernel_h|kernel_w|stride_h|stride_w|dilation_h|dilation_w|memory|rank",
    "padding": "pad_top|pad_left",
    "clamp": "act_min|act_max",
    "zero point": r"\w*zero_point",
    "multiplier": r"\w*multiplier",
    "shift": r"\w*shift|[ab]_right|scale_step",
    "size": r"in_\w|in_ring|out_\w|groups|batches|inputs|units|block|rows|columns|count",
}

#: (kind, file's ending, pattern, substitute); {n} is the module's name, {N} that of its macros. An integer
#: in a group called "number" is changed by one, up and down; else the match is substituted.
_TEXTS = [
    *((kind, ".c", rf"^ *\.(?:{names}) = (?P<number>-?\d+),$", None) for kind, names in _FIELDS.items()),
    ("offset", ".c", r"\((?:arena|state) \+ (?P<number>\d+)u\); /\*", None),
    ("offset", ".c", r"= arena \+ (?P<number>\d+)u; /\*", None),
    ("row", ".c", r"(?<=[ty]\d )[+*] (?P<number>\d+)(?=[,)])", None),
    ("row", ".c", r"^ +tinyfuse_.*? y\d \* (?P<number>\d+)", None),
    ("loop", ".c", r"(?:\by\d|count) <= ?(?P<number>\d+)|\by\d < (?P<number2>\d+)", None),
    ("condition", ".c", r"^ +if \((?P<drop>y\d < .*)\) \{$", "1"),
    ("argument", ".c", r"^ +tinyfuse_\w+\(&?\w+, .*?, (?P<number>\d+)(?=[,)])", None),
    ("call", ".c", r"^ +(?P<drop>){n}_group_\d+\(bytes.*\);$", "if (0) "),
    ("reset", ".c", r"^ +(?P<drop>)(?:memset|memcpy)\((?:\(uint8_t \*\))?state.*$", "if (0) "),
    ("reset", ".c", r"^ +(?:memset|memcpy)\(.*state \+ (?P<number>\d+)u, ", None),
    ("reset", ".c", r"^ +memset\(.*state \+ \d+u, (?P<number>\d+), ", None),
    ("reset", ".c", r"^ +(?:memset|memcpy)\(.*state .*, (?P<number>\d+)u\);", None),
    ("check", ".c", r"^    if \((?P<drop>(?!status).*)\) \{$", "0 && ({old})"),
    ("status", ".c", r"return {N}_ERROR_\w+;", "return {N}_OK;"),
    ("accessor", ".c", r"case \d+: return \(.*arena \+ (?P<number>\d+)u;$", None),
    ("accessor", ".c", r"case \d+: return (?P<number>\d+)u;$", None),
    ("accessor", ".c", r"return (?=\((?:const )?\w+ \*\){n}_(?:in|out)put\(arena, \d+\);$)", "return 1 + "),
    ("accessor", ".c", r"default: return (?:NULL|0u);", "default: return {wrong};"),
    ("message", ".c", r'case {N}_ERROR_\w+: return "(?P<drop>.*)";', "unknown error"),
    (
        "macro",
        ".h",
        r"^#define {N}_(?:\w+_(?:BYTES|ALIGN|RANK|ELEMENTS)|INPUTS|OUTPUTS|FEED_ROWS) (?P<number>\d+)$",
        None,
    ),
    ("macro", ".h", r"^#define {N}_\w+_ZERO_POINT \((?P<number>-?\d+)\)$", None),
    ("macro", ".h", r"^#define {N}_\w+_SHAPE \{(?:\d+, )*(?P<number>\d+)\}$", None),
    ("macro", ".h", r"^#define {N}_\w+_SCALE \d*\.\d*?(?P<number>\d)(?=\d{0,3}f$)", None),
    ("macro", ".h", r"^#define {N}_\w+_DTYPE int8_t$", "uint8_t"),
    ("macro", ".h", r'^#define {N}_(?:MODEL_SHA256|TINYFUSE_VERSION) "\w*?(?P<number>[0-8])', None),
    ("macro", ".h", r"^    {N}_ERROR_\w+ = (?P<number>\d)", None),
    ("macro", ".h", r"uint8_t symbol\[{N}_(?:ARENA|STATE)_BYTES(?P<drop>)\]", " + 1"),
    ("weights", "_weights.c", r"^    .*?(?P<number>-?\d+)(?=,)", None),
]

#: statements after the last group, {at}: kind -> C
_STATEMENTS = {
    "write outside": [
        "bytes[-1] = (uint8_t)(bytes[-1] + 1);",
        "bytes[{bytes}] = (uint8_t)(bytes[{bytes}] + 1);",
        "bytes[{bytes} + 20000] = 1;",
        "bytes[{bytes} + 1000000] = 1;",
        "bytes[-9000] = 1;",
    ],
    "read outside": [
        "bytes[{output}] = (uint8_t)(bytes[{output}] ^ bytes[-1]);",
        "bytes[{output}] = (uint8_t)(bytes[{output}] ^ bytes[{bytes}]);",
        "bytes[{output}] = (uint8_t)(bytes[{output}] ^ bytes[{bytes} + 9000]);",
    ],
    "hidden state": ["{{ static uint8_t hidden; ++hidden; }}"],
    "stack": ["{{ volatile uint8_t more[{stack}]; more[0] = 1; bytes[0] = (uint8_t)(bytes[0] + more[0] - 1); }}"],
    "write to constants": ["*(volatile uint8_t *)(uintptr_t){constant} = 77;"],
}


def mutants(files: dict[str, str], plan: Plan) -> Iterator[Mutant]:
    """All faults, in the order of the lists above and of the lines."""
    name = plan.options.name
    for kind, ending, pattern, substitute in _TEXTS:
        file = name + ending
        yield from _in_lines(kind, file, files, _named(pattern, name), _named(substitute, name))
    yield from _inserted(files, plan)


def _named(text: str | None, name: str) -> str | None:
    return None if text is None else text.replace("{n}", name).replace("{N}", name.upper())


def _in_lines(kind: str, file: str, files: dict[str, str], pattern: str, substitute: str | None) -> Iterator[Mutant]:
    lines = files[file].split("\n")
    for number, line in enumerate(lines):
        match = re.search(pattern, line)
        if match is None:
            continue
        for after in _changed(line, match, substitute):
            text = "\n".join([*lines[:number], after, *lines[number + 1 :]])
            yield Mutant(kind, file, number + 1, line, after, files | {file: text})


def _changed(line: str, match: re.Match, substitute: str | None) -> list[str]:
    groups = {name: span for name in match.re.groupindex if (span := match.span(name)) != (-1, -1)}
    if substitute is None:
        ((start, end),) = groups.values()
        value = int(line[start:end])
        return [line[:start] + str(value + step) + line[end:] for step in (1, -1) if value + step >= 0 or value <= 0]
    start, end = groups.get("drop", match.span())
    wrong = substitute.replace("{wrong}", "(void *)1" if "NULL" in line else "1u").replace("{old}", line[start:end])
    return [line[:start] + wrong + line[end:]]


def _inserted(files: dict[str, str], plan: Plan) -> Iterator[Mutant]:
    file, text = f"{plan.options.name}.c", files[f"{plan.options.name}.c"]
    macro, last = plan.options.name.upper(), plan.groups[-1].index
    anchor = f"    {macro}_GROUP_END({last});"
    number = text[: text.index(anchor)].count("\n") + 1
    symbol = re.search(r"^extern .*const \w+ (\w+)\[", files[f"{plan.options.name}_weights.h"], re.M)[1]
    for kind, statements in _STATEMENTS.items():
        for statement in statements:
            after = "    " + statement.format(
                bytes=f"{macro}_ARENA_BYTES", output=plan.offset(plan.graph.outputs[0]), stack=f"{macro}_STACK_BYTES",
                constant=symbol,
            )  # fmt: skip
            yield Mutant(kind, file, number, anchor, after, files | {file: text.replace(anchor, f"{after}\n{anchor}")})
