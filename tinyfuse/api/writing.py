"""Files of a module's folder, and checks of the limits that a user gave."""

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
    """Content of each file of the folder by name, including the manifest.

    It depends on the model and the options alone, not on measured figures or the model's folder.

    unfused_arena  result of `unfused_arena_bytes`, which needs a plan of its own
    bundled        CMSIS-NN's files to be added: name in the folder -> its place (`bundled_files`)
    selftest       adds the self-test; output forms with a program that runs it always have it if there can be one
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
    """Files of the tree that the plan's calls need; empty without a tree."""
    return {} if tree is None else cmsis_nn.bundle(tree, plan.cmsis_nn_functions)


def report(plan: Plan, code: CodeBytes | None = None) -> JsonObject:
    """Figures of `tinyfuse report`. `code` is measured; None for an estimate."""
    return report_json(plan, unfused_arena_bytes(plan), code, _whole_plan(plan))


def _whole_plan(plan: Plan) -> Plan | None:
    """Plan of the whole model, if `plan` is a step of a sliding window; else None."""
    window = plan.source.window
    if window is None:
        return None
    options = replace(
        plan.options, slide=None, slide_axis=None, feed_rows=False, max_ram=None, max_flash=None, memory=()
    )
    return compile_graph(window.whole, plan.context.target, options)


def unfused_arena_bytes(plan: Plan) -> int:
    """Arena bytes of the same model with --fusion none, by the same planner and target."""
    if plan.options.fusion == "none":
        return plan.arena_bytes
    options = replace(plan.options, fusion="none", feed_rows=False)
    return arena_bytes_by_rule(plan.source, plan.context.target, options)


def check_ram(plan: Plan, advice: Callable[[Plan], str] = lambda plan: "") -> None:
    """Raise DoesNotFit if arena and state exceed --max-ram; the message ends with `advice(plan)`."""
    limit = plan.options.max_ram
    if limit is not None and plan.ram_bytes > limit:
        state = f" and the state {plan.state_bytes:,}" if plan.states else ""
        raise DoesNotFit(
            f"{plan.graph.path}: the arena takes {plan.arena_bytes:,} bytes{state}, but --max-ram allows {limit:,} "
            f"(this schedule needs at least {plan.arena_lower_bound + plan.state_bytes:,}){advice(plan)}"
        )


def check_step(plan: Plan) -> None:
    """Raise DoesNotFit if a step may exceed --max-step, or cannot be predicted."""
    limit, step = plan.options.max_step, longest_step(plan)
    if limit is None or step is None or fits_step(plan, limit):
        return
    where = f"{plan.graph.path}: the longest step, group {step.group}, {step.op}"
    if step.bound is None:
        raise DoesNotFit(
            f"{where}, cannot be predicted for {plan.context.target.name}: leave out --max-step, and measure"
        )
    # with another limit, calls may be divided into larger pieces; here they are the smallest possible
    raise DoesNotFit(
        f"{where}, may take {step.bound:,} instructions, but --max-step allows {limit:,}; it is {step.kind}, which "
        f"cannot be divided further; --max-step {step.bound} would fit"
    )


def check_flash(plan: Plan, code: CodeBytes | None) -> None:
    """Raise DoesNotFit if weights, code and the library functions that it calls exceed --max-flash. `code` is None
    before it was measured: then it is estimated, without library functions."""
    limit, sort = plan.options.max_flash, "estimated" if code is None else "measured"
    if code is None:
        code = CodeBytes(estimated_code_bytes(plan), 0)
    flash = plan.weight_bytes + code.total
    if limit is not None and flash > limit:
        helpers = f" with functions of the C library ({code.helpers:,})" if code.helpers else ""
        raise DoesNotFit(
            f"{plan.graph.path}: weights ({plan.weight_bytes:,}) and {sort} code ({code.module:,}){helpers} "
            f"take {flash:,} bytes, but --max-flash allows {limit:,}; "
            f"--max-flash {flash} would fit{_fewer_weights(plan)}"
        )


def _fewer_weights(plan: Plan) -> str:
    """Hint at a value of --weights that takes less flash; empty if there is none."""
    stages = [stage for group in plan.groups for stage in group.stages]
    if plan.context.weights != "compressed" and any(compressible(stage.op, plan.context) for stage in stages):
        return " (hint: --weights compressed takes the fewest)"
    return " (hint: --weights packed takes the fewest)" if plan.context.weights in ("unpacked", "winograd") else ""


def cmsis_nn_tree(plan: Plan, path: str | None) -> cmsis_nn.Tree | None:
    """CMSIS-NN tree for the plan's calls, at `path` or found; None if the plan calls nothing.

    ToolMissing if there is none, or if it has another version or lacks a function that is called.
    """
    if path is not None:
        cmsis_nn.named_tree(path)  # a wrong path is an error even if nothing is called
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
        hint = f"the copy at {tree.path} lacks it; compile with kernels='auto'"
        raise ToolMissing(f"{names} of CMSIS-NN", hint)
    return tree
