"""Text of each group's function: pointers into the arena, the row loop, the kernels' calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.emit.arena import arena_c
from tinyfuse.emit.call_sites import CallSites
from tinyfuse.emit.identifiers import comment
from tinyfuse.emit.stack import STACK
from tinyfuse.emit.staging import copy_statements
from tinyfuse.emit.statements import Printer
from tinyfuse.emit.steps import PIECE, cursor_checks, end_of_step
from tinyfuse.errors import InternalFault
from tinyfuse.ir import Tensor, quoted, type_text
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.kernel import Piece, division
from tinyfuse.kernels.core.statements import Loop
from tinyfuse.kernels.program.feed_rows import BEFORE, ROWS
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import ConstantKey, Group, Plan, Stage, constant_key
from tinyfuse.plan.rows import height


@dataclass(frozen=True)
class GroupFunction:
    """A group's function as the template prints it.

    comment      lines of its comment
    body         lines of its body, indented by four
    copies       statements before its call that copy weights
    cursor_rows  numbers that it keeps from one step to the next; 0 if the group is a single step
    no_inline    it is never inlined
    loops        lines of the functions that only it calls
    """

    index: int
    comment: tuple[str, ...]
    body: tuple[str, ...]
    returns_status: bool
    uses_state: bool
    parameters: str
    cursor_rows: int = 0
    copies: tuple[str, ...] = ()
    no_inline: bool = False
    loops: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class SubgraphFunction:
    """C functions of a graph that an operator runs, as the template prints them: one per group, and one that calls
    these in order."""

    number: int
    name: str
    groups: tuple[GroupFunction, ...]

    @property
    def uses_state(self) -> bool:
        """Tells whether any of its groups uses the state."""
        return any(group.uses_state for group in self.groups)


def subgraph_functions(plan: Plan, constants: dict[ConstantKey, str]) -> list[SubgraphFunction]:
    """Functions of all graphs that operators run, each after the graphs that it calls. Their states are at the caller's
    offsets."""
    name, found = plan.options.name, []
    for number, inner in plan.subplans.items():
        subplan = replace(inner, states={tensor: plan.states[tensor] for tensor in inner.states})
        prefix = f"{name}_subgraph_{number}"
        groups = tuple(_Writer(name, prefix, subplan, group, constants).write() for group in subplan.groups)
        found.append(SubgraphFunction(number, prefix, groups))
    return found


def reset_lines(plan: Plan, constants: dict[ConstantKey, str]) -> list[str]:
    """Statements of NAME_reset, which give each state its initial value."""
    lines = []
    for tensor, offset in plan.states.items():
        place = f"(uint8_t *)state + {offset}u"
        constant = plan.initial_values.get(tensor)
        if constant is None:
            byte = int(np.ascontiguousarray(tensor.initial_values.flat[:1]).view(np.uint8)[0])
            fill = f"memset({place}, {byte}, {tensor.bytes}u);"
        else:
            fill = f"memcpy({place}, {constants[constant_key(constant)]}, {tensor.bytes}u);"
        lines.append(f"{fill} /* {comment(f'{quoted(tensor.name)} {type_text(tensor)}')} */")
    return lines


def group_functions(plan: Plan, constants: dict[ConstantKey, str]) -> list[GroupFunction]:
    """C functions of the groups, in the order in which they run."""
    return [_Writer(plan.options.name, plan.options.name, plan, group, constants).write() for group in plan.groups]


class _Writer(Printer):
    def __init__(self, module: str, prefix: str, plan: Plan, group: Group, constants: dict[ConstantKey, str]):
        super().__init__(module, f"{prefix}_group_{group.index}", plan.options.step)
        self.plan, self.group, self.constants = plan, group, constants
        self.arena = arena_c(plan)
        self.sites = CallSites(module, plan, group, constants)
        self.rows, self.first = self.sites.rows, self.sites.first
        self.loop, self.stack = self.sites.loop, self.sites.stack

    def write(self) -> GroupFunction:
        self.cursor = self._cursor()
        self._print_pointers()
        if not self.group.stages[0].by_row:
            self._whole(self.group.stages[0])
        elif len(self.group.stages) == 1:
            self._single_loop(self.group.stages[0])
        else:
            self._row_loop()
        parameters = [f"{self.arena.group_type}arena"]
        if self.group.uses_state:
            parameters.append("uint8_t *state")
        if self.cursor:
            parameters.append("int32_t *rows")
        if self.plan.fed is not None and self.group.counters:
            parameters += [f"const {CTYPE[self.plan.fed.dtype]} *{ROWS}", f"int32_t {BEFORE}", "int32_t count"]
        return GroupFunction(
            self.group.index, tuple(self._comment()), tuple(self.lines), self.returns_status,
            self.group.uses_state, ", ".join(parameters), len(self.cursor),
            copy_statements(self.plan, self.group.index, self.constants),
            any(stage.kernel.no_inline for stage in self.group.stages), tuple(self.outlined),
        )  # fmt: skip

    # --- the comment ------------------------------------------------------------------------

    def _comment(self) -> list[str]:
        live = self.plan.live_bytes(self.group.index)
        lines = []
        for stage in self.group.stages:
            op = stage.op
            shapes = ", ".join(type_text(t) for t in op.activations)
            outputs = ", ".join(type_text(t) for t in op.outputs)
            names = quoted((op.outputs + op.states)[0].name)
            lines.append(comment(f"op {op.index} {op.kind} {names}: {shapes} -> {outputs}"))
            how = "by rows" if stage.by_row else "whole"
            lines.append(f"    {stage.kernel.name}, {how}, {stage.macs} MACs")
        lines.append(f"buffers: {live} bytes in sum, some share addresses; largest scratch: {self.group.scratch_bytes}")
        return lines

    # --- pieces -----------------------------------------------------------------------------

    def _cursor(self) -> list[str]:
        """Names of the loop variables that a module with NAME_step keeps between steps."""
        if not self.plan.options.step:
            return []
        pieces = [PIECE] if any(stage.pieces > 1 for stage in self.group.stages) else []
        if not self.group.stages[0].by_row:
            return pieces
        return [*(self.rows[stage.op.output] for stage in self.group.stages), *self.first.values(), *pieces]

    def _print_pointers(self) -> None:
        """Prints pointers to tensors, states, scratch and counters, each with a comment about its target."""
        seen: dict[Tensor, bool] = {}
        for stage in self.group.stages:
            for tensor in stage.op.outputs:
                seen[tensor] = True
            for tensor in stage.op.activations:
                seen.setdefault(tensor, False)
        for tensor, written in seen.items():
            storage, const = self.plan.storage[tensor], "" if written else "const "
            kind = "sliding ring" if storage.slides else "ring"
            rows = f", a {kind} of {storage.ring_rows} row(s)" if self.sites.is_ring(tensor) else ""
            ctype = CTYPE[tensor.dtype]
            if tensor in self.stack:
                name = comment(f"{quoted(tensor.name)} {type_text(tensor)}")
                self.print_line(
                    f"/* {self.sites.pointers[tensor]}: {name}, up to {storage.ring_rows} row(s) in a stack */"
                )
                continue
            self.print_line(
                f"{const}{ctype} *const {self.sites.pointer(tensor)} = "
                f"({const}{ctype} *)(void *)({self.arena.at(self.plan.offset(tensor), 'arena')}); "
                f"/* {comment(f'{quoted(tensor.name)} {type_text(tensor)}')}{rows} */"
            )
        if not seen and not any(self.group.scratch):
            self.print_line("(void)arena;")
        updated = {stage.op.inputs[i] for stage in self.group.stages for i in FAMILIES[stage.op.kind].updated(stage.op)}
        for tensor in self.group.own_states:
            const = "" if tensor in updated else "const "
            rows = f", a ring of {height(tensor)} row(s)" if tensor.cursor else ""
            ctype = CTYPE[tensor.dtype]
            self.print_line(
                f"{const}{ctype} *const {self.sites.states[tensor]} = "
                f"({const}{ctype} *)(void *)(state + {self.plan.states[tensor]}u); "
                f"/* {comment(f'{quoted(tensor.name)} {type_text(tensor)}')}{rows} */"
            )
        if self.stack:
            place = self.arena.at(self.plan.stack_offset(self.group), "arena")
            self.print_line(f"uint8_t *const {STACK} = {place};")
        for scratch, stage in zip(self.group.scratch, self.group.stages, strict=True):
            if scratch and not self.stack:
                place = self.arena.at(self.plan.placement.offsets[scratch], "arena")
                self.print_line(f"uint8_t *const {scratch} = {place}; /* {stage.scratch_bytes} bytes */")

        if self.group.counters:
            ctype, offset = self._counter_type(), self.plan.placement.offsets[self.group.counters]
            self.print_line(f"{ctype} *const made = ({ctype} *)(void *)({self.arena.at(offset, 'arena')});")

    def _counter_type(self) -> str:
        return f"uint{8 * self.group.counter_bytes}_t"

    def _whole(self, stage: Stage) -> None:
        if not self.cursor:
            self._call(stage, row=None)
            return
        self.print_line()
        self._piece_number()
        self.print_line()
        self._call(stage, row=None)
        self.print_line(f"++{PIECE};")
        self._end_of_step(f"{PIECE} < {stage.pieces}")

    def _piece_number(self) -> None:
        """Prints the number of the piece that a step computes, if calls are divided."""
        if PIECE in self.cursor:
            self.print_line(
                f"int32_t {PIECE} = rows[{len(self.cursor) - 1}]; /* number of the next piece of the call */"
            )

    def _count_row(self, stage: Stage) -> None:
        """Prints the statements that follow a call by rows, or its last piece: they count the row."""
        if stage.pieces > 1:
            self.print_line(f"if (++{PIECE} == {stage.pieces}) {{")
            self.depth += 1
            self.print_line(f"{PIECE} = 0;")
        self.print_line(self.loop.count_rows(stage))
        for tensor in stage.op.activations:
            if tensor in self.first:
                self._slide(tensor, self.sites.overwritable_tensor(stage) is tensor)
        output = stage.op.output
        if output in self.stack and output is not self.group.resident_output and self.loop.leaves_rows_out(output):
            self._slide(output)  # drops rows that nobody reads
        if stage.pieces > 1:
            self.depth -= 1
            self.print_line("}")

    def _single_loop(self, stage: Stage) -> None:
        row = self.rows[stage.op.output]
        self.print_line()
        if self.cursor:
            self.print_line(f"int32_t {row} = rows[0];")
            self._piece_number()
            self.print_line()
            self._check_cursor()
            self._call(stage, row)
            self._count_row(stage)
            self._end_of_step(f"{row} < {height(stage.op.output)}")
            return
        self.print_line(f"{Loop(row, height(stage.op.output), (), stage.kernel.rows_a_call).head} {{")
        self.depth += 1
        self._call(stage, row)
        self.depth -= 1
        self.print_line("}")

    def _row_loop(self) -> None:
        fed = bool(self.group.counters)
        for s, stage in enumerate(self.group.stages):
            row, start = self.rows[stage.op.output], "0"
            if fed:
                start = f"made[{s - 1}]" if s else BEFORE
            elif self.cursor:
                start = f"rows[{s}]"
            self.print_line(
                f"int32_t {row} = {start}; /* rows of {self.sites.pointers[stage.op.output]} computed so far */"
            )
        for n, (tensor, first) in enumerate(self.first.items(), len(self.group.stages)):
            start = self.loop.oldest_needed(tensor) if fed else f"rows[{n}]" if self.cursor else "0"
            self.print_line(
                f"int32_t {first} = {start}; /* number of the row at the start of {self.sites.pointers[tensor]} */"
            )
        if self.stack:
            self.print_lines(self.stack.set_offsets())
        self._piece_number()
        self.print_line()
        self._check_cursor()
        if fed and self._output_move:
            self.print_line(f"const int unfinished = {self._unfinished};")
        each = "One row is computed" if self.cursor else "Each iteration computes one row"
        self.print_line(f"/* {each}: by the last operator whose input rows exist and")
        self.print_line("   whose next row is needed. */")
        self.print_line("for (;;) {" if fed else "do {")
        self.depth += 1
        for stage in reversed(self.group.stages):
            row = self.rows[stage.op.output]
            self.print_line(f"if ({' && '.join(self.loop.run_conditions(stage))}) {{")
            self.depth += 1
            self._call(stage, row)
            self._count_row(stage)
            self.print_line("continue;")
            self.depth -= 1
            self.print_line("}")
        if fed:
            self.print_line("break; /* no operator can continue before the next input row */")
        self.depth -= 1
        if fed:
            self.print_line("}")
            self._print_output_move(f"unfinished && !({self._unfinished})")
            for s, stage in enumerate(self.group.stages[1:]):
                self.print_line(f"made[{s}] = ({self._counter_type()}){self.rows[stage.op.output]};")
            return
        if self.cursor:
            self.print_line("} while (0);")
            self._print_output_move(f"!({self._unfinished})")
            self._end_of_step(self._unfinished)
        else:
            self.print_line(f"}} while ({self._unfinished});")
            self.print_lines(self._output_move)

    @property
    def _unfinished(self) -> str:
        """C expression that is true while any output still lacks rows."""
        return " || ".join(f"{self.rows[t]} < {height(t)}" for t in self.group.outputs)

    @property
    def _output_move(self) -> list[str]:
        """Statement that moves an output from the stack's bottom to its place; empty if it is there already."""
        output = self.group.resident_output
        up = 0 if output is None else self.plan.offset(output) - self.plan.stack_offset(self.group)
        if output is None or not up:
            return []
        return [self.stack.move_output(output, self.arena.at(self.plan.offset(output), "arena"), up > 0)]

    def _print_output_move(self, finished: str) -> None:
        if self._output_move:
            self.print_lines([f"if ({finished}) {{", *(f"    {line}" for line in self._output_move), "}"])

    def _check_cursor(self) -> None:
        if self.cursor:
            made = [(row, str(height(tensor))) for tensor, row in self.rows.items()]
            begun = [(first, self.rows[tensor]) for tensor, first in self.first.items()]
            self.print_lines(cursor_checks(self.module.upper(), (*made, *begun)))

    def _end_of_step(self, left: str) -> None:
        self.print_lines(end_of_step(self.module.upper(), self.cursor, left))

    def _slide(self, tensor: Tensor, taken: bool = False) -> None:
        """Prints the statement that drops the rows of a sliding ring which no reader needs. `taken`: the ring is in a
        stack, and its first row may have been overwritten already."""
        if tensor in self.stack:
            self.print_line(self.stack.drop(tensor, self.loop.oldest_needed(tensor), taken))
            return
        first, made, size = self.first[tensor], self.rows[tensor], tensor.bytes // height(tensor)
        arguments = f"{self.sites.pointer(tensor)}, {first}, {self.loop.oldest_needed(tensor)}, {made}, {size}"
        self.print_line(f"{first} = tinyfuse_rows_slide({arguments});")

    # --- a kernel's call --------------------------------------------------------------------

    def _piece(self, stage: Stage) -> Piece | None:
        """Prints the numbers of the piece to be computed, and a check that refuses numbers that no step left."""
        if PIECE in self.cursor:
            self.print_lines(cursor_checks(self.module.upper(), [(PIECE, str(stage.pieces - 1))]))
        if stage.piece is None:
            return None
        whole = division(stage.kernel, stage.op, stage.by_row, self.plan.context)
        if whole is None:
            raise InternalFault("the printer of groups", f"the calls of {stage.kernel.name} can't be divided")
        self.print_line(f"const int32_t unit = {PIECE} * {stage.piece};")
        rest = f"tinyfuse_min({stage.piece}, {whole.units} - unit)"
        return Piece("unit", str(stage.piece) if whole.units % stage.piece == 0 else rest)

    def _call(self, stage: Stage, row: str | None) -> None:
        piece = self._piece(stage)
        site = self.sites.call_site(stage, row, piece)
        if row is not None and stage.op.output in self.stack:
            source = self.sites.overwritable_tensor(stage)
            oldest = None if source is None else (source, self.loop.oldest_needed(source, ran=stage))
            rows = "1" if stage.kernel.rows_a_call == 1 else f"({self.loop.rows_after_call(stage)} - {row})"
            self.print_lines(self.stack.make_room(stage.op.output, rows, oldest))
        statements = stage.kernel.call(stage.op, site, self.plan.context)
        for statement in statements:
            self.print_statement(statement)
