"""Prints kernels' calls, and the statements around them, as C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tinyfuse.emit.identifiers import comment
from tinyfuse.emit.weights import scalar
from tinyfuse.kernels.core.statements import Branch, Call, Let, Loop, NoInlineCall, PreprocessorIf, Statement, WhileLoop


class Printer:
    """Prints the body of a C function.

    function        its name
    lines           lines of its body, indented
    outlined        functions that only it calls, each as lines
    returns_status  some statement returns a status code of the module
    """

    def __init__(self, module: str, function: str, returns_status: bool):
        self.module, self.function, self.returns_status = module, function, returns_status
        self.lines: list[str] = []
        self.outlined: list[tuple[str, ...]] = []
        self.depth = 1

    def print_line(self, text: str = "") -> None:
        self.lines.append("    " * self.depth + text if text else "")

    def print_lines(self, lines: list[str]) -> None:
        for line in lines:
            self.print_line(line)

    def print_statement(self, statement: Statement) -> None:
        match statement:
            case Let():
                self._print_constant(statement)
            case NoInlineCall():
                self._print_outlined(statement)
            case Call():
                self._print_call(statement)
            case PreprocessorIf():
                self.lines.append(f"#if {statement.condition}")
                for inner in statement.body:
                    self.print_statement(inner)
                self.lines.append("#endif")
            case Loop():
                if statement.pragma:
                    self.print_line(statement.pragma)
                self.print_line(f"{statement.head} {{")
                self.print_block(statement.body)
                self.print_line("}")
            case Branch():
                self.print_line(f"if ({statement.condition} != 0) {{")
                self.print_block(statement.then)
                self.print_line("} else {")
                self.print_block(statement.otherwise)
                self.print_line("}")
            case WhileLoop():
                self.print_line("for (;;) {")
                self.print_block(statement.before)
                self.print_line(f"    if ({statement.condition} == 0) {{")
                self.print_line("        break;")
                self.print_line("    }")
                self.print_block(statement.body)
                self.print_line("}")

    def print_block(self, statements: tuple[Statement, ...]) -> None:
        self.depth += 1
        for statement in statements:
            self.print_statement(statement)
        self.depth -= 1

    def _print_constant(self, statement: Let) -> None:
        if not isinstance(statement.value, Mapping):
            note = f" /* {comment(statement.note)} */" if statement.note else ""
            self.print_line(f"const {statement.ctype} {statement.name} = {_expression(statement.value)};{note}")
            return
        # in flash, unless a field is only known at run time
        static = "static " if _is_constant(statement.value) else ""
        self.print_line(f"{static}const {statement.ctype} {statement.name} = {{")
        self.depth += 1
        for name, value in statement.value.items():
            self.print_line(f".{name} = {_initializer(value)},")
        self.depth -= 1
        self.print_line("};")

    def _print_call(self, statement: Call) -> None:
        call = f"{statement.function}({', '.join(_expression(a) for a in statement.args)})"
        if statement.status is None:
            self.print_line(f"{call};")
        elif statement.hands_on:
            self.returns_status = True
            self.print_line("{")
            self.print_line(f"    const int status = {call};")
            self.print_line(f"    if (status != {statement.status}) {{")
            self.print_line("        return status;")
            self.print_line("    }")
            self.print_line("}")
        else:
            self.returns_status = True
            self.print_line(f"if ({call} != {statement.status}) {{")
            code = "NO_RESULT_YET" if statement.awaits else "ERROR_KERNEL"
            self.print_line(f"    return {self.module.upper()}_{code};")
            self.print_line("}")

    def _print_outlined(self, statement: NoInlineCall) -> None:
        name = f"{self.function}_loop_{len(self.outlined)}"
        inner = Printer(self.module, name, returns_status=False)
        for each in statement.body:
            inner.print_statement(each)
        parameters = ", ".join(f"{ctype} {each}".replace("* ", "*") for ctype, each, _ in statement.parameters)
        head = f"static TINYFUSE_APART void {name}({parameters})"
        self.outlined.append((f"{self.module.upper()}_CODE_ATTR", head, "{", *inner.lines, "}"))
        self.print_line(f"{name}({', '.join(_expression(value) for _, _, value in statement.parameters)});")


def _is_constant(fields: Mapping[str, Any]) -> bool:
    """Tells whether every field is a number or an initializer of numbers."""
    return all(
        _is_constant(value)
        if isinstance(value, Mapping)
        else not isinstance(value, str) or not re.search("[A-Za-z_]", value)
        for value in fields.values()
    )


def _initializer(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f".{name} = {_initializer(v)}" for name, v in value.items()) + "}"
    return _expression(value)


def _expression(value: Any) -> str:
    return value if isinstance(value, str) else scalar(value)
