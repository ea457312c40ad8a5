"""`tinyfuse quantize`: makes an int8 or int16 model of a float one and calibration data."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import click

from tinyfuse.api.quantizing import quantize
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, data_flag, json_flag
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.errors import UsageError
from tinyfuse.progress import Progress
from tinyfuse.quantization.options import QuantizeOptions
from tinyfuse.report.wrapping import wrap_text

_EXAMPLES = """\b
Examples:
  tinyfuse quantize float.tflite --data x.npy                        writes float_int8.tflite
  tinyfuse quantize float.tflite --data photos/ --values 0,1 -o net.tflite
  tinyfuse quantize float.tflite --data x.npz --scheme int16x8
  tinyfuse quantize float.tflite --data x.npy --layer 'logits=int16x8'
  tinyfuse gen float.tflite --target cortex-m4 --quantize-with x.npy  C at once

\b
x.npy has real numbers, [samples, ...]: some hundred inputs like those that the firmware will see. Other data: .npz with
an array for each input, .csv, pictures, sounds, and folders of them.
"""


@click.command("quantize", cls=FileCommand, epilog=_EXAMPLES)
@click.argument("model", type=click.Path())
@data_flag("Calibration data; repeat it for several inputs.")
@click.option(
    "-o", "--output", type=OutputFile(), metavar="FILE", help="The .tflite that is written.  [default: MODEL_SCHEME]"
)
@add_flags(QuantizeOptions)
@json_flag()
def command(model: str, data: tuple[str, ...], output: str | None, as_json: bool, how: QuantizeOptions) -> int:
    """Quantize the float MODEL with the ranges that its tensors have on data.

    MODEL is float32, or has weights of int8 or float16 and computes with float32 (dynamic range, weight-only). Google's
    ai-edge-quantizer does it: the extra quantize.
    """
    return show(quantize_file(model, data, output, how, progress), as_json)


def quantize_file(
    model: str, data: tuple[str, ...], output: str | None, how: QuantizeOptions, progress: Progress
) -> Answer:
    """Writes the quantized model. Errors as `tinyfuse.quantize`; nothing is written then."""
    path = Path(model)
    place = path.with_name(f"{path.stem}_{how.scheme}.tflite") if output is None else Path(output)
    if place == path:
        raise UsageError(f"-o {place}: MODEL is this file; give another one")
    found = quantize(
        model, data, scheme=cast(Any, how.scheme), float_io=how.float_io, ranges=cast(Any, how.ranges),
        layers=how.layers, samples=how.samples, values=how.values, target=how.target,
        on_progress=progress,
    )  # fmt: skip
    found.write(place)
    told = versioned(
        model=model,
        output=str(place),
        output_sha256=sha256(found.data).hexdigest(),
        bytes=len(found.data),
        scheme=how.scheme,
        samples=found.samples,
        weights_read=found.weights_read,
        target=how.target,
        predicted_instructions=found.instructions,
        float_operators=[asdict(island) for island in found.islands],
        warnings=list(found.warnings),
    )
    lines = [f"{place}: {how.scheme}, {len(found.data):,} bytes, ranges of {found.samples:,} samples"]
    if found.weights_read:
        lines.append(f"weights of {found.weights_read} tensors, stored as integers or float16, became float32 first")
    for warning in found.warnings:
        lines += wrap_text(f"warning: {warning}", "  ")
    return Answer(told, [*lines, f"next: tinyfuse gen {place} --target {how.target}"])
