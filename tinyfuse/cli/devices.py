"""`tinyfuse devices`: lists the microcontrollers that --device knows."""

from __future__ import annotations

from dataclasses import asdict

import click

from tinyfuse.cli.flags import json_flag
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.toolchain.devices import all_devices


@click.command("devices")
@click.argument("part", default="")
@click.option("--update", is_flag=True, help="Download newer data first.")
@json_flag()
def command(part: str, update: bool, as_json: bool) -> int:
    """List the microcontrollers whose name begins with PART, for --device.

    The data is that of CMSIS-Packs in cmsis-pack-manager's cache; it is downloaded if there is none.
    """
    found = all_devices(part, progress, update)
    return show(Answer(versioned(devices=[asdict(device) for device in found]), [str(d) for d in found]), as_json)
