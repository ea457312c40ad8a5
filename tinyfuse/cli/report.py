"""`tinyfuse report`: prints the memory and instructions that a model needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tinyfuse.api.measured_choice import measured_lines
from tinyfuse.arena.svg import arena_svg
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import generation_flags
from tinyfuse.cli.measured import measure_flag, measured_request
from tinyfuse.cli.planning import make_plan, plan_json
from tinyfuse.cli.request import Request, command_line
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.compiler import compile_graph
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import UsageError
from tinyfuse.html_report.data import page_data
from tinyfuse.html_report.page import html_page
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.buffer_roles import buffer_roles
from tinyfuse.report.costs import costs_json, costs_lines
from tinyfuse.report.limits import limits_json, limits_lines, reached_limits
from tinyfuse.report.pareto import pareto_json, pareto_lines
from tinyfuse.report.passes import passes_json, passes_lines
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.report.rows_svg import rows_svg as rows_picture
from tinyfuse.report.text import report_text

_EXAMPLES = """\b
Examples:
  tinyfuse report kws.tflite --target cortex-m4
  tinyfuse report kws.tflite --target cortex-m4 --html kws.html
  tinyfuse report kws.tflite --target cortex-m4 --fusion none --json
  tinyfuse report kws.tflite --target cortex-m4 --pareto
  tinyfuse report kws.tflite --target cortex-m4 --measure
  tinyfuse report kws.tflite --target cortex-m4 --svg arena.svg --rows-svg rows.svg
  tinyfuse report kws.tflite --target cortex-m4 --dump-passes | less
"""


@click.command("report", cls=FileCommand, epilog=_EXAMPLES)
@generation_flags
@click.option(
    "--pareto",
    is_flag=True,
    help="Also list all plans that are best for some trade-off between RAM and instructions, with their options.",
)
@click.option(
    "--html",
    type=OutputFile(),
    metavar="FILE",
    help="Also write an HTML page: layers, graph, a map of the arena, an animation of each group's rows.",
)
@click.option("--svg", type=OutputFile(), metavar="FILE", help="Also draw which buffers the arena holds over time.")
@click.option(
    "--rows-svg",
    type=OutputFile(),
    metavar="FILE",
    help="Also draw the order in which the largest group computes its layers' rows.",
)
@click.option(
    "--dump-passes",
    is_flag=True,
    help="Also print the model's graph as it was read, the graph after each rewrite that changed it, and the groups of "
    "operators that are computed together.",
)
@click.option(
    "--costs",
    is_flag=True,
    help="Also print the terms that the predicted instructions add up from: coefficients of the target's cost table, "
    "times loop counts.",
)
@measure_flag
def command(request: Request, as_json: bool, **also: Any) -> int:
    """Print the RAM, flash, predicted instructions and groups of MODEL. No C is written; --html, --svg and --rows-svg
    write a page and pictures."""
    return show(report(request, progress, **also), as_json)


def report(
    request: Request, progress: Progress, *, pareto: bool = False, html: str | None = None, svg: str | None = None,
    rows_svg: str | None = None, dump_passes: bool = False, costs: bool = False, measure: bool = False,
) -> Answer:  # fmt: skip
    """Reports on a model, and writes the page `html` and the pictures `svg` and `rows_svg`.

    pareto       adds all plans that no other one beats in both RAM and instructions, and those of each --optimize
    dump_passes  adds the graph after each rewrite
    costs        adds the terms of the predicted instructions
    measure      reports on the plan with the best measurements (cli/measured.py), and adds all measured plans

    Raises DoesNotFit if a limit is exceeded.
    """
    request, measured = measured_request(request, progress) if measure else (request, None)
    plan, tree = make_plan(request, progress, needs_tree=False)
    data = (
        plan_envelope(plan)
        | plan_json(plan, tree, progress, request.device)
        | {"pareto": None, "passes": None, "costs": None, "measured": measured}
    )
    if pareto:
        if plan.options.fusion != "rows":
            raise UsageError(f"--pareto needs --fusion rows, not {plan.options.fusion}")
        reached = Reached()
        data["pareto"] = pareto_json(plan, progress, reached)
        data["limits"] = limits_json(merge_limits(reached_limits(plan), reached.found))
    lines = report_text(plan, data, cycles=True).splitlines()
    if measured is not None:
        lines += ["", *measured_lines(measured, plan.options.count)]
    if pareto:
        lines += ["", *pareto_lines(data["pareto"], plan.options.count), *limits_lines(data["limits"])]
    if dump_passes:
        data["passes"] = passes_json(plan)
        lines += ["", *passes_lines(data["passes"])]
    if costs:
        data["costs"] = costs_json(plan)
        lines += ["", *costs_lines(data["costs"])]
    if html:
        write_file(Path(html), _page(request, plan, data, progress))
    if svg:
        drawing = arena_svg(plan.buffers, plan.placement, plan.arena_bytes, plan.arena_lower_bound, buffer_roles(plan))
        write_file(Path(svg), drawing)
    if rows_svg:
        write_file(Path(rows_svg), rows_picture(plan))
    return Answer(data, lines)


def _page(request: Request, plan: Plan, data: JsonObject, progress: Progress) -> str:
    """Page of --html. Searches for its Pareto front unless --pareto did."""
    front = data["pareto"]
    if front is None and plan.options.fusion == "rows":
        progress("searching for other plans")
        front = pareto_json(plan, progress)
    progress("planning --fusion none to compare with")
    options = replace(plan.options, fusion="none", feed_rows=False, max_ram=None, memory=())
    unfused = compile_graph(plan.source, plan.context.target, options, progress)
    command = command_line("gen", request.replace(optimize="balanced", max_ram=None))
    return html_page(page_data(plan, unfused, data, front, command))
