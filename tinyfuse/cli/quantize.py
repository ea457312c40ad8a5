"""`tinyfuse quantize`: makes an int8 or int16 model of a float one and calibration data."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import click

from tinyfuse.api.choosing import choose_bits
from tinyfuse.api.quantizing import quantize
from tinyfuse.bits.search import ChosenBits
from tinyfuse.bits.table import bits_json, bits_lines
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import add_flags, data_flag, json_flag
from tinyfuse.cli.terminal import Answer, progress, show, versioned
from tinyfuse.errors import UsageError
from tinyfuse.options import flags, parse_size
from tinyfuse.progress import Progress
from tinyfuse.quantization.options import QuantizeOptions
from tinyfuse.report.wrapping import wrap_text

#: options that mean nothing without --accuracy-loss
_OF_SEARCH = ("metric", "max_ram", "max_flash", "max_instructions", "pareto")

_EXAMPLES = """\b
Examples:
  tinyfuse quantize float.tflite --data x.npy                        writes float_int8.tflite
  tinyfuse quantize float.tflite --data photos/ --values 0,1 -o net.tflite
  tinyfuse quantize float.tflite --data x.npz --scheme int16x8
  tinyfuse quantize float.tflite --data x.npy --layer 'logits=int16x8'
  tinyfuse quantize float.tflite --data x.npy --accuracy-loss 0.5 --test-data t.npy --labels t_labels.npy
  tinyfuse gen float.tflite --target cortex-m4 --quantize-with x.npy  quantizes and writes C

\b
x.npy has real numbers of shape [samples, ...]: some hundred inputs like those that the firmware will see. Other data:
a .npz file with an array for each input, a .csv file, or a folder of such files, of pictures or of sounds.
"""


@click.command("quantize", cls=FileCommand, epilog=_EXAMPLES)
@click.argument("model", type=click.Path())
@data_flag("Calibration data: sample inputs. Repeat it for several inputs.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="The .tflite file to write.  [default: MODEL_SCHEME.tflite]",
)
@click.option(
    "--labels",
    type=click.Path(),
    metavar="PATH",
    help="With --accuracy-loss: a label for each sample of --test-data, as in `tinyfuse evaluate`.",
)
@click.option(
    "--test-data",
    type=click.Path(),
    multiple=True,
    metavar="[NAME=]PATH",
    help="With --accuracy-loss: samples on which accuracy is measured.  [default: those of --data]",
)
@add_flags(QuantizeOptions)
@json_flag()
def command(
    model: str,
    data: tuple[str, ...],
    output: str | None,
    labels: str | None,
    test_data: tuple[str, ...],
    as_json: bool,
    how: QuantizeOptions,
) -> int:
    """Quantize the float MODEL. Sample inputs show which range of values each tensor has.

    MODEL is a float32 .tflite file; its weights may be int8 or float16 if it computes in float32 (dynamic-range and
    weight-only quantization). Google's ai-edge-quantizer does the work; pip install 'tinyfuse[quantize]' installs it.

    With --accuracy-loss, tinyfuse chooses the scheme of each layer: int16 where accuracy needs it, weights of int4
    where --max-flash needs it. The exit code is 1 if no choice is within the limits.
    """
    return show(quantize_file(model, data, output, labels, test_data, how, progress), as_json)


def quantize_file(
    model: str, data: tuple[str, ...], output: str | None, labels: str | None, test_data: tuple[str, ...],
    how: QuantizeOptions, progress: Progress,
) -> Answer:  # fmt: skip
    """Writes the quantized model. Errors as `tinyfuse.quantize` and `tinyfuse.choose_bits`; nothing is written then,
    and where no choice of bits is within the limits."""
    place = _output_place(model, output, how)
    chosen = _chosen_bits(model, data, labels, test_data, how, progress)
    layers = how.layers
    if chosen is not None:
        best = chosen.plans[chosen.closest[0] if chosen.chosen is None else chosen.chosen]
        layers = tuple(f"{name}={scheme}" for name, scheme in best.layers)
    found = quantize(
        model, data, scheme=cast(Any, how.scheme), float_io=how.float_io, ranges=cast(Any, how.ranges),
        layers=layers, samples=how.samples, values=how.values, target=how.target,
        on_progress=progress,
    )  # fmt: skip
    written = chosen is None or chosen.chosen is not None
    if written:
        found.write(place)
    warnings = list(dict.fromkeys([*found.warnings, *(() if chosen is None else chosen.warnings)]))
    search = None if chosen is None else bits_json(chosen)
    told = versioned(
        model=model,
        output=str(place) if written else None,
        output_sha256=sha256(found.data).hexdigest() if written else None,
        bytes=len(found.data),
        scheme=how.scheme,
        samples=found.samples,
        weights_read=found.weights_read,
        target=how.target,
        predicted_instructions=found.instructions,
        float_operators=[asdict(island) for island in found.islands],
        search=search,
        warnings=warnings,
    )
    lines = [] if search is None else bits_lines(search)
    if written:
        bits = how.scheme if search is None else "bits as chosen"
        lines.append(f"{place}: {bits}, {len(found.data):,} bytes, ranges of {found.samples:,} samples")
    if found.weights_read:
        lines.append(f"weights of {found.weights_read} tensors, stored as integers or float16, became float32 first")
    for warning in warnings:
        lines += wrap_text(f"warning: {warning}", "  ")
    # the plans' costs are those within these limits
    limits = [
        word for name in ("max_ram", "max_flash") for word in flags(QuantizeOptions)[name].words(getattr(how, name))
    ]
    following = ["tinyfuse", "gen", str(place), "--target", how.target, *limits]
    end = f"next: {shlex.join(following)}" if written else "nothing was written"
    return Answer(told, [*lines, end], exact=written)


def _chosen_bits(
    model: str, data: tuple[str, ...], labels: str | None, test_data: tuple[str, ...], how: QuantizeOptions,
    progress: Progress,
) -> ChosenBits | None:  # fmt: skip
    """Result of the search that --accuracy-loss asks for; None without it. UsageError for options that don't go
    together."""
    if how.accuracy_loss is None:
        given = ["--labels"] if labels is not None else ["--test-data"] if test_data else []
        given += [flag.flag for name, flag in flags(QuantizeOptions).items()
                  if name in _OF_SEARCH and getattr(how, name) != flag.default]  # fmt: skip
        if given:
            raise UsageError(f"{given[0]} works only with --accuracy-loss; give both")
        return None
    if labels is None:
        raise UsageError("--accuracy-loss: give --labels too, with a label for each evaluated sample")
    if how.scheme != "int8":
        raise UsageError(f"--scheme {how.scheme}: with --accuracy-loss schemes are chosen; leave out --scheme")
    return choose_bits(
        model, data, labels, accuracy_loss=how.accuracy_loss, test_data=test_data or None, metric=how.metric,
        max_ram=parse_size(how.max_ram), max_flash=parse_size(how.max_flash), max_instructions=how.max_instructions,
        explore=how.pareto, float_io=how.float_io, ranges=cast(Any, how.ranges), layers=how.layers,
        samples=how.samples, values=how.values, target=how.target, on_progress=progress,
    )  # fmt: skip


def _output_place(model: str, output: str | None, how: QuantizeOptions) -> Path:
    path, ending = Path(model), how.scheme if how.accuracy_loss is None else "mixed"
    place = path.with_name(f"{path.stem}_{ending}.tflite") if output is None else Path(output)
    if place == path:
        raise UsageError(f"-o {place}: MODEL is this file; give another one")
    return place
