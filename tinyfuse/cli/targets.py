"""`tinyfuse targets`: lists the cores."""

from __future__ import annotations

from dataclasses import asdict

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, show, versioned
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import timing_json
from tinyfuse.targets import Target, all_targets


@click.command("targets")
@json_flag()
def command(as_json: bool) -> int:
    """List the cores that code can be generated for."""
    known = all_targets().values()
    width = max(len(target.name) for target in known)
    lines = [f"{target.name:<{width}}  {target.description}" for target in known]
    lines += [
        f"{target.name}: --timing {board.name}: {board.description}, {board}"
        for target in known
        if "+" not in target.name
        for board in target.boards
    ]
    return show(Answer(versioned(targets=[_json(target) for target in known]), lines), as_json)


def _json(target: Target) -> JsonObject:
    return asdict(target) | {"boards": [timing_json(board) for board in target.boards]}
