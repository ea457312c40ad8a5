"""What a module's folder holds, and what its module may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tinyfuse.compiler import arena_bytes_by_rule, compile_graph
from tinyfuse.cost.code import CodeBytes, estimated_code_bytes
from tinyfuse.cost.steps import fits_step, longest_step
from tinyfuse.emit import emit, emit_weights
from tinyfuse.emit.forms import PLAIN, Delivery, archives
from tinyfuse.emit.manifest import MANIFEST, manifest_text
from tinyfuse.errors import DoesNotFit, ToolMissing
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope, report_json
from tinyfuse.report.text import report_text
from tinyfuse.schedule.kernel_choice.select import compressible
from tinyfuse.toolchain import cmsis_nn
from tinyfuse.verify.selftest import embedded_selftest, has_selftest


def module_files(
    plan: Plan, unfused_arena: int, bundled: Mapping[str, Path], selftest: bool, delivery: Delivery = PLAIN
) -> dict[str, bytes]:
    """Name -> content of every file of the folder, the manifest among them. A function of the model and the options:
    no measured figure, and not the place where the model lay.

    unfused_arena  `unfused_arena_bytes`, which takes a plan of its own
    bundled        CMSIS-NN's files that go with it: name in the folder -> where it is (`bundled_files`)
    selftest       with the self-test, which output forms with a program that runs it have wherever there can be one
    """
    delivery = replace(delivery, bundled=tuple(bundled))
    programs = delivery.runs_selftest and has_selftest(plan) and not plan.options.weights_blob
    test = embedded_selftest(plan) if selftest or programs else None
    files = {name: text.encode() for name, text in emit(plan, test, delivery).items()}
    files |= emit_weights(plan)
    files["report.txt"] = report_text(plan, report_json(plan, unfused_arena, None)).encode()
    files |= {name: path.read_bytes() for name, path in bundled.items()}
    files |= archives(plan.options.name, delivery, files)
    envelope = plan_envelope(plan) | ({"formats": [form.name for form in delivery.forms]} if delivery.forms else {})
    files[MANIFEST] = manifest_text(envelope | {"model": Path(envelope["model"]).name}, files).encode()
    return files


def bundled_files(plan: Plan, tree: cmsis_nn.Tree | None) -> dict[str, Path]:
    """The files of the tree that what the plan calls needs; none without a tree."""
    return {} if tree is None else cmsis_nn.bundle(tree, plan.cmsis_nn_functions)


def report(plan: Plan, code: CodeBytes | None = None) -> JsonObject:
    """The figures of `tinyfuse report`; `code`: as it was measured, None for an estimate."""
    return report_json(plan, unfused_arena_bytes(plan), code, _whole_plan(plan))


def _whole_plan(plan: Plan) -> Plan | None:
    """Of a step of a sliding window, the plan of the whole model."""
    window = plan.source.window
    if window is None:
        return None
    options = replace(
        plan.options, slide=None, slide_axis=None, feed_rows=False, max_ram=None, max_flash=None, memory=()
    )
    return compile_graph(window.whole, plan.context.target, options)


def unfused_arena_bytes(plan: Plan) -> int:
    """Arena of the same model under --fusion none, by the same planner and target."""
    if plan.options.fusion == "none":
        return plan.arena_bytes
    options = replace(plan.options, fusion="none", feed_rows=False)
    return arena_bytes_by_rule(plan.source, plan.context.target, options)


def check_ram(plan: Plan, advice: Callable[[Plan], str] = lambda plan: "") -> None:
    """DoesNotFit where arena and state exceed --max-ram; what `advice` says of the plan then ends the message."""
    limit = plan.options.max_ram
    if limit is not None and plan.ram_bytes > limit:
        state = f" and the state {plan.state_bytes:,}" if plan.states else ""
        raise DoesNotFit(
            f"{plan.graph.path}: the arena takes {plan.arena_bytes:,} bytes{state}, --max-ram allows {limit:,} "
            f"(lower bound of this schedule: {plan.arena_lower_bound + plan.state_bytes:,}){advice(plan)}"
        )


def check_step(plan: Plan) -> None:
    """DoesNotFit where a step may take more than --max-step, or can't be predicted."""
    limit, step = plan.options.max_step, longest_step(plan)
    if limit is None or step is None or fits_step(plan, limit):
        return
    where = f"{plan.graph.path}: the longest step, group {step.group}, {step.op}"
    if step.bound is None:
        raise DoesNotFit(
            f"{where}, can't be predicted for {plan.context.target.name}: leave --max-step out, and measure"
        )
    # of another limit calls may be in larger pieces: those of this one are the least that there are
    raise DoesNotFit(
        f"{where}, may take {step.bound:,} instructions, --max-step allows {limit:,}; it is {step.kind}, the least "
        f"that there is; --max-step {step.bound} would fit"
    )


def check_flash(plan: Plan, code: CodeBytes | None) -> None:
    """DoesNotFit where weights, code and what the linker adds for it exceed --max-flash; None: code is not measured, so
    estimated, and nothing is known of what is added."""
    limit, sort = plan.options.max_flash, "estimated" if code is None else "measured"
    if code is None:
        code = CodeBytes(estimated_code_bytes(plan), 0)
    flash = plan.weight_bytes + code.total
    if limit is not None and flash > limit:
        helpers = f" with functions of the C library ({code.helpers:,})" if code.helpers else ""
        raise DoesNotFit(
            f"{plan.graph.path}: weights ({plan.weight_bytes:,}) and {sort} code ({code.module:,}){helpers} "
            f"take {flash:,} bytes, --max-flash allows {limit:,}; --max-flash {flash} would fit{_fewer_weights(plan)}"
        )


def _fewer_weights(plan: Plan) -> str:
    """Another value of --weights that takes less flash."""
    stages = [stage for group in plan.groups for stage in group.stages]
    if plan.context.weights != "compressed" and any(compressible(stage.op, plan.context) for stage in stages):
        return " (hint: --weights compressed takes the fewest)"
    return " (hint: --weights packed takes the fewest)" if plan.context.weights in ("unpacked", "winograd") else ""


def cmsis_nn_tree(plan: Plan, path: str | None) -> cmsis_nn.Tree | None:
    """The CMSIS-NN tree for what the plan calls, at `path` or where one is found; None where it calls nothing.
    ToolMissing where there is none, or one of another version or without a function that is called."""
    if path is not None:
        cmsis_nn.named_tree(path)  # wrong even where nothing is called
    if not plan.uses_cmsis_nn:
        return None
    version = plan.options.cmsis_nn_version
    tree = cmsis_nn.find_cmsis_nn(path, plan.context.cmsis_nn)
    if tree is None:
        raise ToolMissing("CMSIS-NN", cmsis_nn.how_to_get(plan.options.kernels))
    if tree.version != plan.context.cmsis_nn:
        found = ".".join(map(str, tree.version))
        hint = f"found {found} at {tree.path}; give another path, or compile with cmsis_nn_version={found!r}"
        raise ToolMissing(f"CMSIS-NN {version}", hint)
    lacking = tree.missing(plan.cmsis_nn_functions)
    if lacking:
        names = ", ".join(sorted(lacking))
        hint = f"the copy at {tree.path} lacks it; compile with kernels='tinyfuse'"
        raise ToolMissing(f"{names} of CMSIS-NN", hint)
    return tree
