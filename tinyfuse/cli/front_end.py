"""`tinyfuse front-end`: writes a model that computes a network's features from 16-bit samples."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tinyfuse.audio.front_end import DEFAULT_SCALE, FrontEnd
from tinyfuse.cli.files import FileCommand, OutputFile
from tinyfuse.cli.flags import Decorator, NumberRange, json_flag
from tinyfuse.cli.terminal import Answer, show, versioned
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import read_tflite

_EXAMPLES = """\b
Examples:
  tinyfuse front-end -o mel.tflite --for speech.tflite
  tinyfuse verify speech.tflite --target cortex-m4 --front-end mel.tflite
  tinyfuse front-end -o mel.tflite --window 32 --stride 16 --shape 1,61,40,1
"""
_DEFAULTS = FrontEnd()


def _number(flag: str, kind: Any, default: float, metavar: str, help: str) -> Decorator:
    return click.option(flag, type=kind, default=default, show_default=True, metavar=metavar, help=help)


@click.command("front-end", cls=FileCommand, epilog=_EXAMPLES)
@click.option("-o", "--output", type=OutputFile(), required=True, metavar="FILE", help="Write the model to this file.")
@_number("--sample-rate", click.IntRange(1000, 192000), _DEFAULTS.sample_rate, "HZ", "Samples per second.")
@_number("--window", NumberRange(min=0), _DEFAULTS.window_ms, "MS", "Length of a frame.")
@_number("--stride", NumberRange(min=0), _DEFAULTS.stride_ms, "MS", "Time from the start of a frame to the next one's.")
@click.option(
    "--channels",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Features per frame.  "
    f"[default: {_DEFAULTS.channels}; with --for or --shape: the last of the two dimensions other than 1]",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10000),
    metavar="N",
    help="Frames in the network's input.  "
    "[default: 1; with --for or --shape: the first of the two dimensions other than 1]",
)
@_number("--low", NumberRange(), _DEFAULTS.low, "HZ", "Lowest frequency of the first feature.")
@_number("--high", NumberRange(), _DEFAULTS.high, "HZ", "Highest frequency of the last feature.")
@click.option(
    "--scale", type=NumberRange(), metavar="X", help=f"Scale of the int8 features.  [default: {DEFAULT_SCALE:.9g}]"
)
@click.option(
    "--zero-point", type=click.IntRange(-128, 127), metavar="N", help="Zero point of the features.  [default: -128]"
)
@click.option("--shape", metavar="N,N,...", help="Shape of the features.  [default: 1,FRAMES*CHANNELS]")
@click.option(
    "--for",
    "network",
    type=click.Path(),
    metavar="MODEL",
    help="Take scale, zero point and shape from this network's input.",
)
@json_flag("Print only JSON.")
def command(output: str, network: str | None, as_json: bool, **given: Any) -> int:
    """Write a model that computes a network's input features from 16-bit audio samples, for `tinyfuse gen --front-end`.

    It is the audio preprocessor of TensorFlow Lite Micro: window, Fourier transform, mel filter bank, noise reduction,
    gain control, logarithm. Each run takes the samples of one stride.
    """
    return show(front_end(output, network, **given), as_json)


def front_end(
    output: str, network: str | None, *, sample_rate: int, window: float, stride: float, channels: int | None,
    frames: int | None, low: float, high: float, scale: float | None, zero_point: int | None, shape: str | None,
) -> Answer:  # fmt: skip
    """Writes the model of a front end. UsageError for numbers that are impossible together, CompileError if the network
    cannot be read."""
    from tinyfuse.audio.model import front_end_model  # loads packages that no other command needs

    like = _like(network) if network is not None else {}
    chosen: dict[str, Any] = {"scale": scale, "zero_point": zero_point, "shape": _shape(shape)}
    frames, channels = frames_and_channels(chosen["shape"] or like.get("shape"), frames, channels)
    wanted = FrontEnd(
        sample_rate, window, stride, channels, frames, low, high,
        **{**like, **{name: value for name, value in chosen.items() if value is not None}},
    )  # fmt: skip
    if wanted.scale <= 0:
        raise UsageError(f"--scale {wanted.scale}: give a positive number")
    data = front_end_model(wanted)
    write_file(Path(output), data)
    told = versioned(output=output, bytes=len(data), samples=wanted.step, **asdict(wanted))
    shown = "x".join(map(str, wanted.shape or (1, frames * channels)))
    features = f"int8 {shown} ({frames} frames of {channels} features)"
    quantized = f"scale {wanted.scale:.9g}, zero point {wanted.zero_point}"
    return Answer(told, [f"{output}: {wanted.step} samples a run -> {features}, {quantized}"])


def frames_and_channels(shape: tuple[int, ...] | None, frames: int | None, channels: int | None) -> tuple[int, int]:
    """Number of frames, and of features per frame; missing ones follow from the features' shape, if there is one.

    Dimensions of 1 do not count. UsageError if the shape does not determine the numbers, or if a frame of `channels`
    features does not fill whole trailing dimensions, because reshaping would mix features of several frames.
    """
    if shape is None:
        return frames or _DEFAULTS.frames, channels or _DEFAULTS.channels
    dims, features = [size for size in shape if size != 1], math.prod(shape)
    wants = f"the shape {list(shape)} has {features} features"
    if channels is None and frames is None:
        if len(dims) != 2:
            raise UsageError(f"{wants}: give --channels, the features of a frame")
        frames, channels = dims
    channels = channels or features // (frames or 1)
    frames = frames or features // channels
    trailing = [math.prod(dims[start:]) for start in range(len(dims))]
    if frames * channels != features or (len(dims) > 1 and channels not in trailing):
        likely = f"; {dims[0]} frames of {dims[1]} would" if len(dims) == 2 else ""
        raise UsageError(f"{wants}: {frames} frames of {channels} features (--frames, --channels) don't fit{likely}")
    return frames, channels


def _like(network: str) -> dict[str, Any]:
    """Scale, zero point and shape of the network's first int8 input."""
    graph = read_tflite(network)
    for tensor in graph.inputs:
        if tensor.dtype == "int8" and tensor.quant is not None and not tensor.quant.per_channel:
            return {"scale": tensor.scale, "zero_point": tensor.zero_point, "shape": tensor.shape}
    raise UsageError(f"--for {network}: it has no quantized int8 input")


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        dims = tuple(int(part) for part in text.split(","))
    except ValueError:
        dims = ()
    if not dims or min(dims) < 1:
        raise UsageError(f"--shape {text}: give positive numbers, separated by commas")
    return dims
