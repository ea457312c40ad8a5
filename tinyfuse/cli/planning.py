"""Makes the plan of a request, and the answers that commands about a model share."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tinyfuse.api.settings import add_labels
from tinyfuse.api.writing import check_flash, check_ram, check_step, report
from tinyfuse.cli.fitting import fitting_hint
from tinyfuse.cli.request import Request
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.code import CodeBytes
from tinyfuse.errors import TinyfuseError, ToolMissing
from tinyfuse.frontend.read_model import read_model
from tinyfuse.kernels.registry import kernels_for, kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.options import CMSIS_NN_VERSIONS
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.targets import load_target
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.toolchain.devices import Device
from tinyfuse.verify.emulation.code_size import measure_code


def make_plan(request: Request, progress: Progress, needs_tree: bool) -> tuple[Plan, Tree | None]:
    """Plan of a request, and the CMSIS-NN tree for its calls; None if there is none.

    Without --cmsis-nn-version, the version is that of the tree if one is needed (verify, --bundle), else the latest; a
    warning says which. DoesNotFit if arena and state exceed --max-ram, or a step --max-step.
    """
    plan, tree = _plan_for_tree(request, progress, needs_tree)
    plan = replace(plan, warnings=(*plan.warnings, *_lacking_in_version(plan)))
    check_step(plan)
    check_ram(plan, lambda plan: fitting_hint(plan, progress))
    return plan, tree


def _plan_for_tree(request: Request, progress: Progress, needs_tree: bool) -> tuple[Plan, Tree | None]:
    target = load_target(request.target)
    options = request.options
    if request.cmsis_nn_path:  # a wrong path is an error even if nothing is called
        cmsis_nn.named_tree(request.cmsis_nn_path)
    progress(f"reading {request.model}")
    graph = read_model(request.model, request.data)
    graph = replace(graph, warnings=(*request.warnings, *graph.warnings)) if request.warnings else graph
    graph, options = add_labels(graph, options, request.network, request.labels)
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
        raise ToolMissing("CMSIS-NN", cmsis_nn.how_to_get(options.kernels))
    if tree.version != plan.context.cmsis_nn:
        found = ".".join(map(str, tree.version))
        if request.cmsis_nn_version is not None or found not in CMSIS_NN_VERSIONS:
            raise ToolMissing(
                f"CMSIS-NN {options.cmsis_nn_version}",
                f"found {found} at {tree.path}; give --cmsis-nn PATH, or --cmsis-nn-version {found}",
            )
        warning = (
            f"generated for CMSIS-NN {found}, the tree that was found; gen without --bundle takes "
            f"{options.cmsis_nn_version} unless --cmsis-nn-version is given"
        )
        graph = replace(graph, warnings=(*graph.warnings, warning))
        options = replace(options, cmsis_nn_version=found)
        plan = compile_graph(graph, target, options)
    lacking = tree.missing(plan.cmsis_nn_functions)
    if lacking:
        warning = f"this copy of CMSIS-NN lacks {', '.join(sorted(lacking))}: other kernels are used instead"
        graph = replace(graph, warnings=(*graph.warnings, warning))
        # exclude everything that is missing, so that no replacement is missing too
        lacking = tree.missing(cmsis_nn_functions())
        plan = compile_graph(graph, target, replace(options, cmsis_nn_lacks=tuple(sorted(lacking))))
    return plan, tree


def _lacking_in_version(plan: Plan) -> list[str]:
    """Sentence for each operator that only a later version of CMSIS-NN can compute; empty without --kernels
    cmsis-nn."""
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
                    f"{stage.op}: {fitting[0]} of CMSIS-NN {plan.options.cmsis_nn_version} cannot compute it, that of "
                    f"{version} can: {stage.kernel.name} is used instead"
                )
                break
    return found


def plan_json(plan: Plan, tree: Tree | None, progress: Progress, device: Device | None) -> JsonObject:
    """JSON of a plan's report, with measured code if this machine can build it. DoesNotFit as in check_flash. `device`
    is the one that the user named; its memory sizes are added."""
    code = _measured_code(plan, tree, progress)
    check_flash(plan, code)
    named = None if device is None else {"name": device.name, "ram": device.ram, "flash": device.flash}
    return report(plan, code) | {"device": named}


def _measured_code(plan: Plan, tree: Tree | None, progress: Progress) -> CodeBytes | None:
    """Measures the linked code; None if that is impossible here."""
    if plan.context.target.cpu is None or (plan.uses_cmsis_nn and tree is None):
        return None
    progress("measuring the code with the cross compiler")
    try:
        with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
            return measure_code(plan, tree, Path(work))
    except TinyfuseError:
        return None


def cmsis_nn_functions() -> set[str]:
    """All functions of CMSIS-NN that tinyfuse may call."""
    return {k.name for f in FAMILIES.values() for k in kernels_of(f.kind) if k.library == "cmsis-nn"}
