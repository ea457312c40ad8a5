"""`tinyfuse cmsis-nn`: finds or installs CMSIS-NN's sources."""

from __future__ import annotations

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.planning import cmsis_nn_functions
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.errors import ToolMissing
from tinyfuse.report.answer import JsonObject
from tinyfuse.toolchain.cmsis_nn import HOW_TO_GET, Tree, find_cmsis_nn
from tinyfuse.toolchain.cmsis_nn.install import install as install_pack


@click.group("cmsis-nn")
def command() -> None:
    """Find or install the sources of Arm's CMSIS-NN. `verify` and `gen --bundle` need them if the generated code calls
    CMSIS-NN (--kernels)."""


@command.command("where")
@json_flag()
def where(as_json: bool) -> int:
    """Print the CMSIS-NN source tree that is used without --cmsis-nn, its version, and the functions that it lacks."""
    tree = find_cmsis_nn(None)
    if tree is None:
        raise ToolMissing("CMSIS-NN", HOW_TO_GET)
    return show(_answer(tree), as_json)


@command.command("install")
@click.option("--version", metavar="X.Y", help="4.0 to 7.0.  [default: the latest]")
@json_flag()
def install(version: str | None, as_json: bool) -> int:
    """Download Arm's CMSIS-Pack of CMSIS-NN, through cmsis-pack-manager."""
    return show(_answer(install_pack(version, progress)), as_json)


def _answer(tree: Tree) -> Answer:
    data = tree_json(tree)
    lines = [f"CMSIS-NN {data['version']} at {data['path']} ({data['found_by']})"]
    if data["lacks"]:
        lines.append(f"it lacks {', '.join(data['lacks'])}: other kernels are used instead")
    return Answer(data, lines)


def tree_json(tree: Tree) -> JsonObject:
    """JSON of a tree (docs/json.md); `lacks` has the functions that tinyfuse would call."""
    return versioned(
        path=str(tree.path),
        version=".".join(map(str, tree.version)),
        found_by=tree.found_by,
        core_include=str(tree.core_include) if tree.core_include else None,
        lacks=sorted(tree.missing(cmsis_nn_functions())),
    )
