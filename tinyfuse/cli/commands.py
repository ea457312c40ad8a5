"""What the commands do, without printing: `tinyfuse.cli.main` shows what these functions return."""

from __future__ import annotations

import importlib.util
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyfuse import __version__
from tinyfuse.cli.fitting import what_would_fit
from tinyfuse.compiler import arena_bytes_by_rule, compile_graph
from tinyfuse.emit import emit
from tinyfuse.emit.depfile import depfile_text
from tinyfuse.emit.identifiers import default_module_name, module_name
from tinyfuse.emit.manifest import MANIFEST, digest, manifest_text
from tinyfuse.emit.output_folder import write_file, write_folder
from tinyfuse.errors import DoesNotFit, TinyfuseError, ToolMissing, UsageError
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.text import explain_text
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.registry import kernels_for, kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.options import CMSIS_NN_VERSIONS, Options, parse_size
from tinyfuse.plan import Plan
from tinyfuse.report.pareto import pareto_json, pareto_lines
from tinyfuse.report.report_json import estimated_code_bytes, plan_envelope, report_json
from tinyfuse.report.text import report_text, summary_lines
from tinyfuse.targets import load_target
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.verify.selftest import embedded_selftest
from tinyfuse.verify.streams import default_frames

if TYPE_CHECKING:  # loaded where it is needed: gen and report do without
    from tinyfuse.verify.emulation import Emulator

Progress = Callable[[str], None]

_LATEST = "7.0"


@dataclass(frozen=True)
class Request:
    """What the user asked to generate: the arguments that gen, report and verify share."""

    model: str
    target: str
    name: str | None = None
    kernels: str = "auto"
    fusion: str = "rows"
    optimize: str = "balanced"
    weights: str = "packed"
    feed_rows: bool = False
    plugins: tuple[str, ...] = ()
    cmsis_nn_version: str | None = None
    cmsis_nn_path: str | None = None
    max_ram: str | None = None
    max_flash: str | None = None


#: inferences that `verify` compares by default, and of a model with state
RUNS, STREAM_RUNS = 8, 64

REQUEST_FIELDS = tuple(Request.__dataclass_fields__)


@dataclass(frozen=True)
class Answer:
    """facts: the JSON; lines: what a person is shown; text: the whole report, of `plan`."""

    data: dict
    lines: list[str]
    text: str = ""
    exact: bool = True
    plan: Plan | None = None


# --- gen and report ----------------------------------------------------------------------------


def report(request: Request, progress: Progress, pareto: bool = False) -> Answer:
    """The report of a model, nothing written; with `pareto` all plans that no other one beats in both
    arena and instructions, and those that --optimize takes. DoesNotFit where a limit is broken."""
    plan, tree = make_plan(request, progress, needs_tree=False)
    data = plan_envelope(plan) | _data(plan, tree, progress) | {"pareto": None}
    text = report_text(plan, data)
    if pareto:
        if plan.options.fusion != "rows":
            raise UsageError(f"--pareto needs --fusion rows, not {plan.options.fusion}")
        data["pareto"] = pareto_json(plan, progress)
        text += "\n".join(["", *pareto_lines(data["pareto"])]) + "\n"
    return Answer(data, summary_lines(data), text, plan=plan)


def explain(request: Request, progress: Progress) -> Answer:
    """Why the plan of a model is as it is. DoesNotFit where the arena exceeds --max-ram."""
    plan, _ = make_plan(request, progress, needs_tree=False)
    data = plan_envelope(plan) | explain_json(plan)
    return Answer(data, [], explain_text(data))


def generate(
    request: Request, output: str | None, bundle: bool, force: bool, progress: Progress, selftest: bool = False,
    depfile: str | None = None,
) -> Answer:  # fmt: skip
    """Writes the module's folder, and its depfile after it. DoesNotFit, before anything is written, where
    a limit is broken."""
    if output == "":
        raise UsageError("-o '' names no folder; leave it out for NAME_tinyfuse")
    plan, tree = make_plan(request, progress, needs_tree=bundle)
    data = plan_envelope(plan) | _data(plan, tree, progress)
    files = {name: text.encode() for name, text in emit(plan, embedded_selftest(plan) if selftest else None).items()}
    # what the folder holds is a function of the model and the options, so it has no measured figure
    pure = report_json(plan, data["unfused_arena_bytes"], None)
    # nor the place where the model lay
    told = replace_path(plan_envelope(plan))
    files["report.txt"] = report_text(plan, pure).encode()
    bundled: dict[str, Path] = {}
    if bundle and plan.uses_cmsis_nn:
        assert tree is not None
        bundled = cmsis_nn.bundle(tree, plan.cmsis_nn_functions)
        files |= {name: path.read_bytes() for name, path in bundled.items()}
    files[MANIFEST] = manifest_text(told, files).encode()
    folder = Path(f"{plan.options.name}_tinyfuse" if output is None else output)
    progress(f"writing {folder}")
    write_folder(folder, files, force)
    if depfile is not None:
        sources = [Path(request.model), *map(Path, request.plugins), *bundled.values()]
        write_file(Path(depfile), depfile_text(folder / MANIFEST, sources))
    hashes = {name: digest(data) for name, data in sorted(files.items())}
    lines = [f"{folder}: {len(files)} files for {plan.context.target.name}", *summary_lines(data)]
    lines += [f"warning: {warning}" for warning in plan.warnings]
    return Answer(data | {"output": str(folder), "files": hashes}, lines)


def replace_path(data: dict) -> dict:
    """The facts with the model's file name in place of its path: a folder must not tell the machine."""
    return data | {"model": Path(data["model"]).name}


def make_plan(request: Request, progress: Progress, needs_tree: bool) -> tuple[Plan, cmsis_nn.Tree | None]:
    """The plan, and the CMSIS-NN tree that its calls were made for, where there is one.

    Without --cmsis-nn-version, the version is the tree's where a tree is needed (verify, --bundle),
    else the latest; the plan then says so. DoesNotFit where arena and state exceed --max-ram.
    """
    plan, tree = _plan_for_tree(request, progress, needs_tree)
    plan = replace(plan, warnings=(*plan.warnings, *_lacking_in_version(plan)))
    limit = plan.options.max_ram
    if limit is not None and plan.ram_bytes > limit:
        state = f" and the state {plan.state_bytes:,}" if plan.states else ""
        raise DoesNotFit(
            f"{plan.graph.path}: the arena takes {plan.arena_bytes:,} bytes{state}, --max-ram allows "
            f"{limit:,} (lower bound of this schedule: {plan.arena_lower_bound + plan.state_bytes:,})"
            f"{what_would_fit(plan, progress)}"
        )
    return plan, tree


def _plan_for_tree(request: Request, progress: Progress, needs_tree: bool) -> tuple[Plan, cmsis_nn.Tree | None]:
    target = load_target(request.target)
    options = _options(request)
    if request.cmsis_nn_path:  # wrong even where nothing is called in the end
        cmsis_nn.named_tree(request.cmsis_nn_path)
    progress(f"reading {request.model}")
    graph = read_tflite(request.model)
    progress(f"planning for {target.name}")
    plan = compile_graph(graph, target, options, progress)
    if not plan.uses_cmsis_nn:
        return plan, None
    asked = request.cmsis_nn_version
    tree = cmsis_nn.find_cmsis_nn(request.cmsis_nn_path, CMSIS_NN_VERSIONS[asked] if asked else None)
    if not needs_tree:
        matches = tree is not None and tree.version == plan.context.cmsis_nn
        return plan, tree if matches else None
    if tree is None:
        raise ToolMissing("CMSIS-NN", cmsis_nn.HOW_TO_GET)
    if tree.version != plan.context.cmsis_nn:
        found = ".".join(map(str, tree.version))
        if request.cmsis_nn_version is not None or found not in CMSIS_NN_VERSIONS:
            raise ToolMissing(
                f"CMSIS-NN {options.cmsis_nn_version}",
                f"found {found} at {tree.path}; give --cmsis-nn PATH, or --cmsis-nn-version {found}",
            )
        warning = (
            f"generated for CMSIS-NN {found}, the tree that was found; gen without --bundle takes "
            f"{options.cmsis_nn_version} unless --cmsis-nn-version says otherwise"
        )
        graph = replace(graph, warnings=(*graph.warnings, warning))
        options = replace(options, cmsis_nn_version=found)
        plan = compile_graph(graph, target, options)
    lacking = tree.missing(plan.cmsis_nn_functions)
    if lacking:
        warning = f"this copy of CMSIS-NN lacks {', '.join(sorted(lacking))}: other kernels take their place"
        graph = replace(graph, warnings=(*graph.warnings, warning))
        # of all functions that tinyfuse calls: another one must not take the place that is missing too
        lacking = tree.missing(_cmsis_nn_functions())
        plan = compile_graph(graph, target, replace(options, cmsis_nn_lacks=tuple(sorted(lacking))))
    return plan, tree


def _lacking_in_version(plan: Plan) -> list[str]:
    """With --kernels cmsis-nn: a sentence for each operator that only a later version has a function for."""
    context, found = plan.context, []
    if context.kernels != "cmsis-nn":
        return []
    for stage in (stage for group in plan.groups for stage in group.stages):
        if stage.kernel.library == "cmsis-nn":
            continue
        for version, number in CMSIS_NN_VERSIONS.items():
            later = replace(context, cmsis_nn=number)
            fitting = [
                kernel.name
                for kernel in kernels_for(stage.op)
                if kernel.library == "cmsis-nn" and kernel.name not in context.lacks and kernel.accepts(stage.op, later)
            ]
            if number > context.cmsis_nn and fitting:
                found.append(
                    f"{stage.op}: {fitting[0]} of CMSIS-NN {plan.options.cmsis_nn_version} can't compute it, that of "
                    f"{version} can: {stage.kernel.name} takes its place"
                )
                break
    return found


def _options(request: Request) -> Options:
    return Options(
        name=default_module_name(request.model) if request.name is None else module_name(request.name),
        kernels=request.kernels,
        fusion=request.fusion,
        optimize=request.optimize,
        weights=request.weights,
        feed_rows=request.feed_rows,
        plugins=tuple(Path(path).name for path in request.plugins),
        cmsis_nn_version=request.cmsis_nn_version or _LATEST,
        max_ram=parse_size(request.max_ram),
        max_flash=parse_size(request.max_flash),
    )


def _data(plan: Plan, tree: cmsis_nn.Tree | None, progress: Progress) -> dict:
    code_bytes = _measured_code(plan, tree, progress)
    check_flash(plan, code_bytes)
    return report_json(plan, _unfused_arena(plan), code_bytes)


def _unfused_arena(plan: Plan) -> int:
    """Arena of the same model under --fusion none, by the same planner and target."""
    if plan.options.fusion == "none":
        return plan.arena_bytes
    return arena_bytes_by_rule(plan.source, plan.context.target, replace(plan.options, fusion="none", feed_rows=False))


def check_flash(plan: Plan, code_bytes: int | None) -> None:
    """DoesNotFit where weights and code (None: not measured, so estimated) exceed --max-flash."""
    limit, sort = plan.options.max_flash, "estimated" if code_bytes is None else "measured"
    code_bytes = estimated_code_bytes(plan) if code_bytes is None else code_bytes
    flash = plan.weight_bytes + code_bytes
    if limit is not None and flash > limit:
        raise DoesNotFit(
            f"{plan.graph.path}: weights ({plan.weight_bytes:,}) and {sort} code ({code_bytes:,}) "
            f"take {flash:,} bytes, --max-flash allows {limit:,}"
        )


def _measured_code(plan: Plan, tree: cmsis_nn.Tree | None, progress: Progress) -> int | None:
    """Linked code bytes of the module and of CMSIS-NN, None where they can't be measured here."""
    if plan.context.target.cpu is None or (plan.uses_cmsis_nn and tree is None):
        return None
    if importlib.util.find_spec("elftools") is None:
        return None
    from tinyfuse.verify.emulation.inputs import input_set
    from tinyfuse.verify.emulation.module import build_module

    progress("measuring the code with the cross compiler")
    try:
        with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
            inputs = input_set(plan.source, 1, 0)
            return build_module(plan, tree, inputs, "qemu", "O2", Path(work), only_size=True).code_bytes
    except TinyfuseError:
        return None


def tree_json(tree: cmsis_nn.Tree) -> dict:
    """What `cmsis-nn where` tells of a tree; `lacks`: functions that tinyfuse would call."""
    return {
        "schema_version": 1,
        "tinyfuse_version": __version__,
        "path": str(tree.path),
        "version": ".".join(map(str, tree.version)),
        "found_by": tree.found_by,
        "core_include": str(tree.core_include) if tree.core_include else None,
        "lacks": sorted(tree.missing(_cmsis_nn_functions())),
    }


def _cmsis_nn_functions() -> set[str]:
    """All functions of CMSIS-NN that tinyfuse may call."""
    return {k.name for f in FAMILIES.values() for k in kernels_of(f.kind) if k.library == "cmsis-nn"}


# --- verify ------------------------------------------------------------------------------------


def verify(
    request: Request, progress: Progress, emulator: str, oracle: str, runs: int | None, frames: int | None, seed: int,
    opt: str, timeout: float,
) -> Answer:  # fmt: skip
    """Runs the module on an emulated core and compares every output element with the oracle.

    `runs` None: RUNS, or STREAM_RUNS for a model with state; `frames` None: two streams for each of two
    instances (tinyfuse/verify/streams.py).

    ToolMissing without compiler, emulator, CMSIS-NN or oracle; EmulationFailed where the firmware
    crashed or hung; UsageError for a combination that can't run.
    """
    from tinyfuse.verify.comparison import compare, problems
    from tinyfuse.verify.emulation.module import build_module
    from tinyfuse.verify.oracle import make_oracle
    from tinyfuse.verify.telling_inputs import doubts, telling_inputs

    asked = request
    machine, request, warnings = machine_for(request, emulator)
    plan, tree = make_plan(request, progress, needs_tree=True)
    judge = make_oracle(oracle, Path(request.model).read_bytes(), plan.source)
    given = runs is not None or frames is not None
    if runs is None:
        runs = STREAM_RUNS if plan.states else RUNS
    if frames is not None and not plan.states:
        raise UsageError("--frames is for models with state; this one keeps nothing between inferences")
    if frames is None and plan.states:
        frames = default_frames(runs)
    command = _command(asked, emulator, oracle, runs, frames, seed, opt)
    progress(f"asking {judge.name} for {runs} results")
    inputs, expected, frames = telling_inputs(plan.source, judge, runs, frames, seed, fixed=given)
    runs = len(inputs)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        progress(f"compiling for {plan.context.target.name}")
        firmware = build_module(plan, tree, inputs, machine.name, opt, Path(work), frames or 1)
        check_flash(plan, firmware.code_bytes)
        progress(f"running {runs} inferences on {machine.name}")
        outcome = machine.run(firmware, timeout)
    comparison = compare(plan, expected, outcome.outputs)
    broken = problems(plan, firmware.opt, outcome)
    exact = comparison.mismatches == 0 and not broken
    data = plan_envelope(plan) | {
        "warnings": [*plan.warnings, *warnings, *judge.warnings, *doubts(plan.source, expected)],
        "emulator": f"{machine.name} {machine.version}".strip(),
        "oracle": f"{judge.name} {judge.version}".strip(),
        "runs": runs,
        "frames": frames,
        "seed": seed,
        "outputs": comparison.elements,
        "mismatches": comparison.mismatches,
        "first_mismatch": asdict(comparison.first) if comparison.first else None,
        "problems": broken,
        "exact": exact,
        "instructions": outcome.instructions,
        "macs": plan.macs,
        "arena_bytes": plan.arena_bytes,
        "state_bytes": plan.state_bytes,
        "ram_bytes": firmware.ram_bytes,
        "stack_bytes": outcome.stack_bytes,
        "flash_code_bytes": firmware.code_bytes,
        "flash_weight_bytes": firmware.weight_bytes,
        "kernel_symbols": firmware.kernel_symbols,
        "cmsis_nn": {"path": str(tree.path), "version": ".".join(map(str, tree.version))} if tree else None,
        "compiler": firmware.compiler,
        "compiler_opt": firmware.opt,
        "command": command,
    }
    return Answer(data, _verify_lines(data, comparison), exact=exact)


def machine_for(request: Request, emulator: str) -> tuple[Emulator, Request, list[str]]:
    """The emulator for a request, the request for what it runs, and warnings: this machine runs a core's
    module, too, but without CMSIS-NN."""
    from tinyfuse.verify.emulation import find_emulator

    target = load_target(request.target)
    machine = find_emulator(emulator, target)
    if emulator == "auto" and machine.name == "renode":
        return machine, request, ["run on Renode, as QEMU is not installed or has no board with this core"]
    if machine.name != "host" or target.cpu is None:
        return machine, request, []
    warning = f"the module for {target.name}, with the portable forms of our kernels, on this machine"
    return machine, replace(request, kernels="tinyfuse"), [warning]


def _command(request: Request, emulator, oracle, runs, frames, seed, opt) -> str:
    """The command line that repeats a verification."""
    words = ["tinyfuse", "verify", request.model, "--target", request.target]
    for option, value, default in (
        ("--name", request.name, None),
        ("--kernels", request.kernels, "auto"),
        ("--fusion", request.fusion, "rows"),
        ("--optimize", request.optimize, "balanced"),
        ("--weights", request.weights, "packed"),
        ("--max-ram", request.max_ram, None),
        ("--cmsis-nn-version", request.cmsis_nn_version, None),
        ("--cmsis-nn", request.cmsis_nn_path, None),
        ("--emulator", emulator, "auto"),
        ("--oracle", oracle, "auto"),
        ("--runs", runs, RUNS if frames is None else STREAM_RUNS),
        ("--frames", frames, None if frames is None else default_frames(runs)),
        ("--seed", seed, 0),
        ("--compiler-opt", opt, "O2"),
    ):
        if value != default:
            words += [option, str(value)]
    if request.feed_rows:
        words.append("--feed-rows")
    for path in request.plugins:
        words += ["--plugin", path]
    return shlex.join(words)


def _verify_lines(data: dict, comparison) -> list[str]:
    def figure(key: str) -> str:
        return "not measured" if data[key] is None else f"{data[key]:,}"

    verdict = "exact" if data["exact"] else "NOT EXACT"
    lines = [
        f"{verdict}: {data['mismatches']:,} of {data['outputs']:,} output elements differ in "
        f"{data['runs']} runs{_streams(data)} ({data['emulator']} against {data['oracle']})",
        f"instructions  {figure('instructions')}",
        f"arena         {figure('arena_bytes')} bytes, {_state(data)}stack {figure('stack_bytes')}",
        f"flash         code {figure('flash_code_bytes')}, weights {figure('flash_weight_bytes')}",
        f"compiler      {data['compiler']} -{data['compiler_opt']}",
    ]
    if data["cmsis_nn"]:
        lines.append(f"CMSIS-NN      {data['cmsis_nn']['version']} at {data['cmsis_nn']['path']}")
    lines += [f"warning: {warning}" for warning in data["warnings"]]
    if comparison.first:
        lines.append(str(comparison.first))
    lines += data["problems"]
    if not data["exact"]:
        lines.append(f"repeat with: {data['command']}")
    return lines


def _streams(data: dict) -> str:
    return f" in streams of {data['frames']}" if data["frames"] else ""


def _state(data: dict) -> str:
    return f"state {data['state_bytes']:,}, " if data["state_bytes"] else ""
