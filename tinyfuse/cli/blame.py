"""`tinyfuse blame`: which layers of a quantized model spoil it, and what would help."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import click

from tinyfuse.api.blaming import blame_graph
from tinyfuse.blame.text import blame_json, blame_lines
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, data_flag, json_flag
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.emit.output_folder import write_file
from tinyfuse.frontend.reader import load_file, read_tflite
from tinyfuse.html_report.blame_page import blame_page
from tinyfuse.options import Options
from tinyfuse.progress import Progress
from tinyfuse.quantization.options import BlameOptions
from tinyfuse.targets import load_target

_EXAMPLES = """\b
Examples:
  tinyfuse blame net_int8.tflite --float net.tflite --data x.npy
  tinyfuse blame net_int8.tflite --float net.tflite --data photos/ --values 0,1 --html blame.html
  tinyfuse blame net_int8.tflite --float net.tflite --data x.npy --json | jq '.layers[.worst[0]]'
"""


@click.command("blame", cls=FileCommand, epilog=_EXAMPLES)
@click.argument("model", type=click.Path())
@click.option(
    "--float",
    "floats",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="The float model that MODEL was made from.",
)
@data_flag("Sample inputs like those that the firmware will see. Repeat it for several inputs.")
@click.option("--html", type=OutputFile(), metavar="FILE", help="Also write an HTML page: each layer's error as a bar.")
@add_flags(BlameOptions)
@json_flag()
def command(model: str, floats: str, data: tuple[str, ...], html: str | None, as_json: bool, how: BlameOptions) -> int:
    """Name the layers whose quantization changes MODEL's outputs most, the reason, and what would help.

    MODEL is quantized. Each of its layers is computed exactly as the generated code computes it, and compared with the
    same layer of the float model, which LiteRT runs. A layer's share is the part of the outputs' error that remains if
    only this layer is quantized.
    """
    return show(blame(model, floats, data, html, how, progress), as_json)


def blame(
    model: str, floats: str, data: tuple[str, ...], html: str | None, how: BlameOptions, progress: Progress
) -> Answer:
    """The errors of a model's layers; writes the page `html`, if any. Errors as `Module.blame`."""
    target = load_target(how.target)
    content = load_file(model)
    graph = read_tflite(model, content)
    found = blame_graph(graph, floats, data, how.samples, how.values, target, Options(name="model"), progress)
    told = versioned(model=model, model_sha256=sha256(content).hexdigest(), float_model=floats, target=target.name)
    told |= blame_json(found)
    if html is not None:
        write_file(Path(html), blame_page(told))
    return Answer(told, blame_lines(told))
