"""Bytes of code predicted before anything is compiled, from a table of each core.

A kernel's call is inlined, so each operator adds bytes of its own. The large parts of a kernel are C functions that a
module has once (TINYFUSE_SHARED); with a single call, the compiler specializes them. `targets/code/NAME.toml`
(benchmarks/measure_code.py) has both sizes, at -O2. Code of CMSIS-NN and of plugins is guessed.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from tinyfuse.cost.table import table_text
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.counts.common import memoized
from tinyfuse.plan import Group, Plan, Stage

#: bytes of a module without operators, of each input, output and state, of each stage in a row loop of several, and of
#: each ring that slides; cores differ by less than 20 bytes
_MODULE, _PORT, _LOOP_STAGE, _SLIDE = 110, 15, 27, 70

#: guess for a kernel without sizes: bytes of each call, and of the kernel
_UNKNOWN_CALL, _UNKNOWN_KERNEL = 250, 1200

#: name in an entry for the bytes of each call; all other names are shared functions
CALL = "call"

#: `CALL` and shared functions -> bytes
Sizes = dict[str, int]


class CodeBytes(NamedTuple):
    """Linked bytes of code with its constants.

    module   the module, and the CMSIS-NN functions that it calls
    helpers  functions of the compiler and the C library that the linker adds for it (soft floats, memcpy, expf)
    """

    module: int
    helpers: int

    @property
    def total(self) -> int:
        return self.module + self.helpers


@dataclass(frozen=True, eq=False)
class CodeTable:
    """Measured code sizes of a core, in bytes.

    about      compiler and flags of the measurement
    usual      size of a call of a kernel without an entry; such kernels share no functions
    functions  size of each function that several calls share
    kernels    kernel, with or without its `code_path` -> size of a call, and of each shared function if only this call
               uses it
    """

    about: dict[str, str]
    usual: int
    functions: Sizes
    kernels: dict[str, Sizes]

    @memoized
    def sizes(self, kernel: Kernel, entry: str) -> Sizes | None:
        """Sizes of an entry's calls, or of the most similar path's; None for a kernel of CMSIS-NN or a plugin."""
        if kernel.library != "tinyfuse" or kernel.folder is not None:
            return None
        return most_alike(self.kernels, entry) or {CALL: self.usual}


def most_alike(kernels: Mapping[str, Sizes], entry: str) -> Sizes | None:
    """Sizes of an entry, or of its kernel on the most similar path; None without one."""
    known = [each for each in kernels if each.partition(" ")[0] == entry.partition(" ")[0]]
    alike = max(known, key=lambda each: _likeness(each, entry), default=None)
    return None if alike is None else kernels[alike]


def _likeness(entry: str, other: str) -> tuple[bool, int, int]:
    """Rank of an entry by its likeness to another: same first part (commas separate parts), then the number of common
    parts, then shortness."""
    parts, others = entry.split(", "), other.split(", ")
    return parts[0] == others[0], len({*parts} & {*others}), -len(entry)


@cache
def code_table(name: str | None) -> CodeTable | None:
    """Table of that name (Target.cost_table), None for None. ToolMissing if the file is missing."""
    return None if name is None else CodeTable(**tomllib.loads(table_text("code", name)))


def every_group(plan: Plan) -> Iterator[tuple[Plan, Group]]:
    """Yields all groups with their plans, those of called graphs included."""
    yield from ((each, group) for each in (plan, *plan.subplans.values()) for group in each.groups)


def code_entry(op: Op, kernel: Kernel, by_row: bool, context: Context) -> str:
    """Name of a call's entry in a code table."""
    return f"{kernel.name} {kernel.code_path(op, by_row, context)}".rstrip()


def calls_in(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Iterator[tuple[Kernel, Op, bool]]:
    """Yields a stage's kernel and the kernels that it calls: (kernel, operator, called by rows)."""
    yield kernel, op, by_row
    yield from ((inner, part, True) for inner, part in kernel.parts(op, context))


def specialized(calls: Sequence[Sizes]) -> list[bool]:
    """Tells for each call of a module whether it is the only caller of at least one function. The compiler then knows
    which branches of the function are taken, so that the call links no function of size 0."""
    users = Counter(name for call in calls for name in call if name != CALL)
    return [any(size and users[name] == 1 for name, size in call.items()) for call in calls]


@dataclass(frozen=True)
class PlanCode:
    """Predicted code size of a module, at -O2.

    module     bytes of its API and of the loops over rows
    stages     sizes of what each stage of each group links, `CALL` among them; empty if its kernel has no sizes; groups
               of called graphs come last
    functions  name of a shared function -> its bytes, counted once
    guessed    bytes of kernels without sizes
    """

    module: int
    stages: tuple[tuple[Sizes, ...], ...]
    functions: Sizes
    guessed: int

    @property
    def total(self) -> int:
        calls = sum(stage.get(CALL, 0) for group in self.stages for stage in group)
        return self.module + calls + sum(self.functions.values()) + self.guessed


def plan_code(plan: Plan) -> PlanCode:
    """Predicts the code size of a plan's module and of the CMSIS-NN functions that it calls."""
    table = code_table(plan.context.target.cost_table)
    groups = list(every_group(plan))
    sizes = [_stage_sizes(stage, each.context, table) for each, group in groups for stage in group.stages]
    calls = [each or {} for each in sizes]
    linked = [
        {name: size for name, size in call.items() if size or not alone or name == CALL}
        for call, alone in zip(calls, specialized(calls), strict=True)
    ]
    callers = Counter(name for stage in linked for name in stage if name != CALL)
    single = {name: size for stage in linked for name, size in stage.items()}
    several = table.functions if table else {}
    kernels = [stage.kernel.name for _, group in groups for stage in group.stages]
    unknown = [name for name, each in zip(kernels, sizes, strict=True) if each is None]
    stages = iter(linked)
    return PlanCode(
        module_bytes(plan),
        tuple(tuple(islice(stages, len(group.stages))) for _, group in groups),
        {
            name: several[name] if count > 1 else single[name] or several[name]
            for name, count in sorted(callers.items())
        },
        _UNKNOWN_CALL * len(unknown) + _UNKNOWN_KERNEL * len(set(unknown)),
    )


def _stage_sizes(stage: Stage, context: Context, table: CodeTable | None) -> Sizes | None:
    """Sizes of the kernels that a stage calls; None if one is not known."""
    total = Counter[str]()
    for kernel, op, by_row in calls_in(stage.op, stage.kernel, stage.by_row, context):
        sizes = table.sizes(kernel, code_entry(op, kernel, by_row, context)) if table else None
        if sizes is None:
            return None
        total.update(sizes)
    return dict(total)


def module_bytes(plan: Plan) -> int:
    """Predicted bytes of a module besides its kernels: the functions that firmware calls, and loops over rows."""
    ports = len(plan.source.inputs) + len(plan.source.outputs) + len(plan.states)
    return _MODULE + _PORT * ports + sum(_loop_bytes(each, group) for each, group in every_group(plan))


def _loop_bytes(plan: Plan, group: Group) -> int:
    """Code bytes of a group outside its operators' calls: its row loop and its moves of rows."""
    sliding = [tensor for op in group.ops for tensor in op.outputs if plan.storage[tensor].slides]
    return _SLIDE * len(sliding) + (_LOOP_STAGE * len(group.stages) if len(group.stages) > 1 else 0)


def estimated_code_bytes(plan: Plan) -> int:
    """Estimated code size in bytes, without compiling; texts for users must call it an estimate."""
    return plan_code(plan).total
