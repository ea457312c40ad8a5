"""`tinyfuse explain`: explains a plan."""

from __future__ import annotations

import click

from tinyfuse.cli.flags import generation_flags
from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer, progress, show
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.text import explain_text
from tinyfuse.progress import Progress
from tinyfuse.report.report_json import plan_envelope

_EXAMPLES = """\b
Examples:
  tinyfuse explain kws.tflite --target cortex-m4
  tinyfuse explain kws.tflite --target cortex-m55 --optimize ram --json
"""


@click.command("explain", epilog=_EXAMPLES)
@generation_flags
def command(request: Request, as_json: bool) -> int:
    """Explain which operators of MODEL are computed together and which are not, what each choice costs in RAM and
    instructions, and which changes to the model would help."""
    return show(explain(request, progress), as_json)


def explain(request: Request, progress: Progress) -> Answer:
    """Explains the plan of a model. DoesNotFit if the arena exceeds --max-ram."""
    plan, _ = make_plan(request, progress, needs_tree=False)
    data = plan_envelope(plan) | explain_json(plan)
    return Answer(data, explain_text(data).splitlines())
