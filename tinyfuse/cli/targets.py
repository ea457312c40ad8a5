"""`tinyfuse targets`: the cores."""

from __future__ import annotations

from dataclasses import asdict

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, show, versioned
from tinyfuse.targets import all_targets


@click.command("targets")
@json_flag()
def command(as_json: bool) -> int:
    """List the cores that code can be generated for."""
    known = all_targets().values()
    width = max(len(target.name) for target in known)
    lines = [f"{target.name:<{width}}  {target.description}" for target in known]
    return show(Answer(versioned(targets=[asdict(target) for target in known]), lines), as_json)
