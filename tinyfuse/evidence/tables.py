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
            "Each operator, the function and the kernel that compute it, and the tests of the operator: cases in "
            "which its reference is compared with the interpreter, and those in which each kernel that takes it is "
            "compared with the reference, on the host under sanitizers and on emulated cores. Operators without cases "
            "are made by rewrites, or tested in whole models; the outputs of this model are compared below.",
            ("operator", "function", "kernel", "file", "interpreter", "host", "Cortex-M4", "Cortex-M55"),
            tuple(_traces(plan)),
        ),
        Table(
            "Rewrites",
            "Changes of the file's graph before kernels were chosen. Each is proven exact by the comparison of the "
            "outputs with the interpreter, which runs the file itself.",
            ("pass", "operators"),
            tuple((str(each["pass"]), str(each["what"])) for each in report["rewrites"]),
        ),
        Table(
            "Requirements on the module",
            "What the module promises its caller, and what checks it in the verification below.",
            ("requirement", "check"),
            tuple(_requirements(plan, found)),
        ),
        Table(
            "Resources",
            "Bytes, and instructions of an inference. The stack's bound is not derived from the code: it is that of "
            "the deepest group, from a figure for each kernel, and of the functions around it.",
            ("resource", "bound or figure", "how it is known"),
            tuple(_resources(plan, report, found)),
        ),
        _verification(found),
        _tools(found),
        Table(
            "Deviations from MISRA C:2012",
            "Rules that files of the module may break, as cppcheck's addon finds them in tinyfuse's tests, which check "
            "modules that together call every kernel. No claim of compliance is made: run your own checker with this "
            "list.",
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
        "An output is, bit for bit, the interpreter's, or within the proven bounds of functions of libm.",
        "Comparison of all output elements.",
    ),
    (
        _ALWAYS,
        "Nothing is read or written outside arena, state and stack.",
        "Guards around arena and state have another pattern in every run. On a core, an MPU makes other accesses "
        "fault, and all other memory is filled or summed, and compared at the end; on the host, AddressSanitizer "
        "watches.",
    ),
    (
        _CORE,
        "No variable is kept between calls, except in the state.",
        "Symbols of the object files; sum of all variables before and after each inference; arenas full of junk.",
    ),
    (
        _CORE,
        "The stack stays below the header's bound.",
        "The stack is painted in every run that is neither timed nor interrupted.",
    ),
    (
        _CORE,
        "Registers and modes of the caller are preserved; interrupts stay enabled or masked.",
        "r4 to r11, s16 to s31, sp, the masks, VPR and FPSCR have known values, which are compared after each call; "
        "so are registers of the system around each inference.",
    ),
    (
        _CORE,
        "An interrupt may come anywhere, never waits for the module, and may call it with another arena and state.",
        "A timer interrupts some inferences at hundreds of places, overwrites the stack below, measures how late it "
        "comes, and makes one inference.",
    ),
    (
        _ALWAYS,
        "Arguments that are null, too small or misaligned are refused with the documented status.",
        "Each function is called with each of them.",
    ),
    (
        _CORE,
        "Any C or C++ file may include the header, and link the module beside others.",
        "The header is compiled as C++, and beside macros such as min; global names of the object files.",
    ),
    (_ALWAYS, "The weights are the plan's.", "Checksum of each array."),
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
        ("level", "emulator", "elements", "different", "stack", "broken promises"),
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
        "Programs that made and checked the module.",
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
    return f" {reached:,} of {channels:,} channels of layers reached both ends of their range." if layers else ""


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
    yield "arena", f"{plan.arena_bytes:,}", "planned; a checker plays the plan byte by byte; NAME_init refuses less"
    yield "state", f"{plan.state_bytes:,}", "as the arena"
    for level, optimized in (("with optimization", True), ("at O0", False)):
        yield (
            f"stack {level}",
            f"{stack_bound(plan, optimized):,}",
            f"bound in the header; measured {_deepest(found, optimized)}",
        )
    yield "variables", f"{(found.ram_bytes or 0) - plan.arena_bytes - plan.state_bytes:,}", "linked sections"
    yield "code", _figure(found.code_bytes), f"linked at {found.compiler_opt}, without the C library"
    yield "weights", f"{plan.weight_bytes:,}", "sum of all arrays"
    yield "heap", "0", "no object file calls an allocator"
    if found.instructions is not None:
        least, most = found.least_instructions or found.instructions, found.most_instructions or found.instructions
        yield "instructions", f"{least:,} to {most:,}", f"counted at {found.compiler_opt} over all inputs; no cycles"
    if report["longest_step"] is not None:
        yield "longest step", _figure(found.longest_step_instructions), "counted instructions over all inputs"


def _deepest(found: Verification, optimized: bool) -> str:
    depths = [build.stack_bytes for build in found.builds if (build.compiler_opt != "O0") is optimized]
    return _figure(max((depth for depth in depths if depth is not None), default=None))


def _figure(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
