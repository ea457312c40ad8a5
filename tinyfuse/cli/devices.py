"""`tinyfuse devices`: lists the microcontrollers that --device knows."""

from __future__ import annotations

from dataclasses import asdict

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.toolchain.devices import all_devices


@click.command("devices")
@click.argument("part", default="")
@click.option("--update", is_flag=True, help="Download the latest index first.")
@json_flag()
def command(part: str, update: bool, as_json: bool) -> int:
    """List the microcontrollers that --device accepts, with core, RAM and flash. PART is the beginning of their names.

    The data comes from the index of CMSIS-Packs in cmsis-pack-manager's cache, which is downloaded at first use.
    """
    found = all_devices(part, progress, update)
    return show(Answer(versioned(devices=[asdict(device) for device in found]), [str(d) for d in found]), as_json)
