"""Collects the evidence for a module as titled tables, from its plan, its files and its verification."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tinyfuse import __version__
from tinyfuse.api.results import Verification
from tinyfuse.emit.header import stack_bound
from tinyfuse.emit.manifest import digest
from tinyfuse.evidence.deviations import deviations_of
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.operators import TESTED_CASES


@dataclass(frozen=True)
class Table:
    """A section: title, text before the table, names of the columns, and rows of text."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def evidence_tables(plan: Plan, report: JsonObject, files: dict[str, bytes], found: Verification) -> list[Table]:
    """Tables of the evidence, in the order of the page. `report` is the JSON of `gen` (docs/json.md), `files` are the
    generated ones, and `found` is a thorough verification of the plan. Equal arguments give equal tables."""
    return [
        _summary(plan, found),
        Table(
            "Traceability",
            "Each operator, the C function and the kernel that compute it, and the number of tinyfuse's test cases for "
            "this kind of operator. Column interpreter: cases that compare tinyfuse's reference with the interpreter. "
            "Other columns: cases that compare the kernels with the reference, on the host under sanitizers and on "
            "emulated cores. Operators without cases are made by rewrites, or are tested in whole models; the outputs "
            "of this model are compared below.",
            ("operator", "function", "kernel", "file", "interpreter", "host", "Cortex-M4", "Cortex-M55"),
            tuple(_traces(plan)),
        ),
        Table(
            "Rewrites",
            "Changes to the file's graph before kernels were chosen. The comparison of the outputs with the "
            "interpreter checks them all, because the interpreter runs the unchanged file.",
            ("pass", "operators"),
            tuple((str(each["pass"]), str(each["what"])) for each in report["rewrites"]),
        ),
        Table(
            "Requirements on the module",
            "Properties that the module guarantees to its caller, and how the verification below checks each of them.",
            ("requirement", "check"),
            tuple(_requirements(plan, found)),
        ),
        Table(
            "Resources",
            "Memory in bytes, and instructions per inference. The bound of the stack is not derived from the compiled "
            "code: it is the sum of a figure for the kernels of the deepest group and one for the functions around it.",
            ("resource", "bound or figure", "how it is known"),
            tuple(_resources(plan, report, found)),
        ),
        _verification(found),
        _tools(found),
        Table(
            "Deviations from MISRA C:2012",
            "Rules that files of the module may break, as cppcheck's addon reports them in tinyfuse's tests, which "
            "check modules that together call every kernel. No claim of compliance is made: run your own checker, and "
            "compare with this list.",
            ("rule", "category", "files", "reason"),
            tuple(
                (each.rule, each.category, ", ".join(each.files), each.reason)
                for each in deviations_of(plan.options.name, files)
            ),
        ),
        Table(
            "Files",
            "SHA-256 of each generated file, as in manifest.json.",
            ("file", "SHA-256"),
            tuple((name, digest(data)) for name, data in sorted(files.items())),
        ),
    ]


#: what a check needs: a firmware on a core, a model with state, nothing
_CORE, _STATE, _ALWAYS = "core", "state", ""

#: need, what a module promises, and the part of `verify` that sees a breach (docs/reference/checks.md)
_REQUIREMENTS = (
    (
        _ALWAYS,
        "Every output equals the interpreter's bit for bit, or differs by no more than the proven bounds of functions "
        "of libm.",
        "All output elements are compared.",
    ),
    (
        _ALWAYS,
        "Nothing is read or written outside arena, state and stack.",
        "Guard bytes around arena and state are compared after each run; their pattern differs in every run. On a "
        "core, an MPU makes accesses to other addresses fault, and all other memory is filled or summed, and compared "
        "at the end. On the host, AddressSanitizer checks each access.",
    ),
    (
        _CORE,
        "No variable is kept between calls, except in the state.",
        "The object files' symbols are checked for variables; the sum of all variables is compared before and after "
        "each inference; arenas contain random bytes at the start.",
    ),
    (
        _CORE,
        "The stack stays below the header's bound.",
        "The stack is filled with a pattern before each run that is neither timed nor interrupted, and its deepest "
        "changed byte is found afterwards.",
    ),
    (
        _CORE,
        "Registers and modes of the caller are preserved; interrupts stay enabled or masked.",
        "r4 to r11, s16 to s31, sp, the interrupt masks, VPR and FPSCR get known values, which are compared after each "
        "call; system registers are compared before and after each inference.",
    ),
    (
        _CORE,
        "An interrupt may occur at any instruction, is never delayed by the module, and may call it with another arena "
        "and state.",
        "A timer interrupts some inferences at hundreds of places. Its handler overwrites the stack below, measures "
        "the delay, and runs an inference.",
    ),
    (
        _ALWAYS,
        "Arguments that are null, too small or misaligned are refused with the documented status.",
        "Each function is called with each kind of bad argument.",
    ),
    (
        _CORE,
        "Any C or C++ file may include the header; the module may be linked with other modules.",
        "The header is compiled as C++, and after macros such as min are defined; the object files' global names are "
        "checked.",
    ),
    (_ALWAYS, "The weights in the firmware are those of the plan.", "The checksum of each array is compared."),
    (
        _STATE,
        "States are independent of each other and may be moved.",
        "Two instances take turns, and each state is at another address in every run.",
    ),
)


def _requirements(plan: Plan, found: Verification) -> Iterator[tuple[str, str]]:
    on_core = any(not build.emulator.startswith("host") for build in found.builds)
    met = {_ALWAYS: True, _CORE: on_core, _STATE: bool(plan.states)}
    for need, requirement, check in _REQUIREMENTS:
        if met[need]:
            yield requirement, check


def _summary(plan: Plan, found: Verification) -> Table:
    verdict = "exact" if found.exact else "within bounds" if found.within_bound else "not exact"
    options = {name: value for name, value in asdict(plan.options).items() if value not in (None, False, [], ())}
    return Table(
        f"Evidence for {plan.options.name}",
        "",
        ("property", "value"),
        (
            ("model", plan.graph.path.replace("\\", "/").rpartition("/")[2]),
            ("SHA-256 of the model", plan.graph.sha256),
            ("target", plan.context.target.name),
            ("options", ", ".join(f"{name}={value}" for name, value in options.items())),
            ("result of the verification", verdict),
            ("limits of the proof", "; ".join(found.warnings) or "none known"),
        ),
    )


def _verification(found: Verification) -> Table:
    return Table(
        "Verification",
        f"Each output element of {found.runs} runs was compared with {found.oracle}, without tolerance. The "
        f"inputs come from seed {found.seed}.{_coverage(found)}",
        ("level", "emulator", "elements", "different", "stack", "violated requirements"),
        tuple(
            (
                *(build.compiler_opt, build.emulator, f"{build.elements:,}", f"{build.mismatches:,}"),
                *(_figure(build.stack_bytes), "; ".join(build.problems) or "none"),
            )
            for build in found.builds
        ),
    )


def _tools(found: Verification) -> Table:
    return Table(
        "Tools",
        "Programs that generated and checked the module.",
        ("tool", "version"),
        (
            ("tinyfuse", __version__),
            ("Python", platform.python_version()),
            ("interpreter", found.oracle),
            *dict.fromkeys(("compiler", build.compiler) for build in found.builds),
            *dict.fromkeys(("emulator", build.emulator) for build in found.builds),
        ),
    )


def _coverage(found: Verification) -> str:
    """Sentence about the ends that layers' channels reached; empty if that is not known, or there are no layers."""
    layers = found.levels or ()
    reached, channels = sum(layer.reached for layer in layers), sum(layer.channels for layer in layers)
    if not layers:
        return ""
    return f" {reached:,} of {channels:,} channels of layers reached the least and the largest value of their range."


def _traces(plan: Plan) -> Iterator[tuple[str, ...]]:
    counts = json.loads(TESTED_CASES.read_text(encoding="utf-8"))
    computed = {stage.op.index for group in plan.groups for stage in group.stages}
    for group in plan.groups:
        for stage in group.stages:
            cases = counts.get(stage.op.kind, {})
            interpreter = cases.get("tflm", cases.get("litert"))
            yield (
                *(str(stage.op), f"{plan.options.name}_group_{group.index}"),
                *(stage.kernel.name, ", ".join(stage.kernel.headers) or "in the module"),
                *(_figure(number) for number in (interpreter, *map(cases.get, ("host", "cortex-m4", "cortex-m55")))),
            )

    for op in plan.source.ops:
        if op.index not in computed:
            yield str(op), "-", "no code of its own: a view, or computed with another operator", *("-",) * 5


def _resources(plan: Plan, report: JsonObject, found: Verification) -> Iterator[tuple[str, str, str]]:
    yield (
        "arena",
        f"{plan.arena_bytes:,}",
        "planned; a checker simulates the plan byte by byte; NAME_init refuses a smaller arena",
    )
    yield "state", f"{plan.state_bytes:,}", "planned and checked like the arena"
    for level, optimized in (("with optimization", True), ("at O0", False)):
        yield (
            f"stack {level}",
            f"{stack_bound(plan, optimized):,}",
            f"bound in the header; measured {_deepest(found, optimized)}",
        )
    yield "variables", f"{(found.ram_bytes or 0) - plan.arena_bytes - plan.state_bytes:,}", "size of linked sections"
    yield "code", _figure(found.code_bytes), f"linked at {found.compiler_opt}, without the C library"
    yield "weights", f"{plan.weight_bytes:,}", "sum of all arrays"
    yield "heap", "0", "no object file calls an allocator"
    if found.instructions is not None:
        least, most = found.least_instructions or found.instructions, found.most_instructions or found.instructions
        yield "instructions", f"{least:,} to {most:,}", f"counted at {found.compiler_opt} over all inputs (not cycles)"
    if report["longest_step"] is not None:
        yield "longest step", _figure(found.longest_step_instructions), "counted instructions over all inputs"


def _deepest(found: Verification, optimized: bool) -> str:
    depths = [build.stack_bytes for build in found.builds if (build.compiler_opt != "O0") is optimized]
    return _figure(max((depth for depth in depths if depth is not None), default=None))


def _figure(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
