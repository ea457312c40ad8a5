"""The flag --measure: measures several plans, and changes the request to make the best one."""

from __future__ import annotations

from collections.abc import Mapping

import click

from tinyfuse.api.measured_choice import MeasuredPlan, measured_json, pick_measured, plans_to_measure
from tinyfuse.api.profiling import Counting, Planned, find_counting, measure_plan
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import ProfileOptions
from tinyfuse.profile.profile_json import whole
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.pareto import pareto_front, uncopied_ram_bytes
from tinyfuse.schedule.plans.pick_plan import max_slowdown
from tinyfuse.targets import load_target

measure_flag = click.option(
    "--measure",
    is_flag=True,
    help="Compile up to three plans, run them on the emulated core, and apply --optimize to the measured instructions "
    "(cycles with --count cycles), RAM and stack. Also print the options that make the chosen plan "
    "(docs/predictions.md).",
)


def measured_request(request: Request, progress: Progress) -> tuple[Request, list[JsonObject]]:
    """Return a request that makes the plan with the best measurements, and the JSON of all measured plans.

    Raises UsageError without --fusion rows, or if the module cannot run on an emulated core; ToolMissing if compiler or
    emulator is missing, or the plugin that --count cycles needs.
    """
    options, how = request.options, ProfileOptions()
    if options.fusion != "rows":
        raise UsageError(f"--measure needs --fusion rows, not {options.fusion}")
    counting = find_counting(load_target(request.target), options.feeds_image, how.emulator, how.compiler)
    if options.count == "cycles" and counting.counter is None:
        raise ToolMissing("the counter of --measure", f"{counting.warnings[0]}; or give --count instructions")
    planned = make_plan(request, progress, needs_tree=True)
    plan, _ = planned
    progress("searching for other plans")
    slowdown, front = max_slowdown(plan.context), pareto_front(plan, progress)
    fitting = [each for each in front if plan.options.max_ram is None or each.ram_bytes <= plan.options.max_ram]
    others = plans_to_measure(fitting, options.optimize, uncopied_ram_bytes(plan), slowdown)
    found = [_measured({}, planned, counting, how, progress)]
    for settings in (each.settings[0] for each in others):
        planned = make_plan(request.replace(**settings), progress, needs_tree=True)
        found.append(_measured(settings, planned, counting, how, progress))
    chosen = pick_measured(found, options.optimize, options.count, slowdown)
    return request.replace(**chosen.settings), measured_json(found, chosen)


def _measured(
    settings: Mapping[str, str], planned: Planned, counting: Counting, how: ProfileOptions, progress: Progress
) -> MeasuredPlan:
    measured = measure_plan(planned, counting, how, progress)
    plan, outcome, profile = measured.plan, measured.outcome, measured.profile
    code, instructions, stack = measured.firmware.code_bytes, outcome.instructions, outcome.stack_bytes
    assert instructions is not None, "counted on every emulated core"
    assert stack is not None, "measured on every emulated core"
    assert code is not None, "measured on every emulated core"
    return MeasuredPlan(
        settings=settings,
        arena_bytes=plan.arena_bytes,
        state_bytes=plan.state_bytes,
        stack_bytes=stack,
        code_bytes=code,
        predicted=predicted_total(plan),
        instructions=instructions,
        cycles=whole(profile.total.cycles if profile else None),
    )
