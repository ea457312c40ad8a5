"""Samples in pictures (read by Pillow) and sounds (by soundfile), one per file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.data.arrays import first_line
from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.sources import Source
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array
from tinyfuse.toolchain.extras import import_package

#: endings of the files; Pillow and soundfile read more than these
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".webp", ".tif", ".tiff")
SOUNDS = (".wav", ".flac")

#: channels of an input -> Pillow's mode
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
#: formats that are decoded, whatever the file's ending says
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")


@dataclass(frozen=True)
class Picture(Source):
    """A picture: uint8 [1, H, W, C], gray for one channel."""

    height: int
    width: int
    mode: str

    def pieces(self, size: int) -> Iterator[Array]:
        pillow = import_package("PIL.Image")
        try:
            with pillow.open(self.path, formats=_FORMATS) as image:
                _check_size(self, image)
                array = np.asarray(image.convert(self.mode), np.uint8)
        except (OSError, ValueError, SyntaxError, EOFError, pillow.DecompressionBombError) as error:
            raise UsageError(f"{self.path} can't be read as a picture: {first_line(error)}") from None
        yield array.reshape(1, self.height, self.width, -1)


def picture(path: str, spec: InputSpec) -> Picture:
    """Source of the sample in a picture. The picture is decoded when it is read, so a wrong size is reported only then.
    UsageError if the input is not an image; ToolMissing without Pillow."""
    import_package("PIL.Image")
    shape = spec.shape[1:] if len(spec.shape) == 4 and spec.shape[0] == 1 else spec.shape
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) != 3 or shape[2] not in _MODES:
        raise UsageError(f"{path}: the input {spec.name!r} is not an image [1, height, width, 1, 3 or 4]: {spec}")
    return Picture(path, 1, None, np.dtype(np.uint8), True, shape[0], shape[1], _MODES[shape[2]])


def _check_size(source: Picture, image: Any) -> None:
    """Checks a picture's size before it is decoded. UsageError if it differs from the input's."""
    if image.size != (source.width, source.height):
        raise UsageError(
            f"{source.path}: {image.size[0]} x {image.size[1]} pixels, but the input {source.width} x {source.height}: "
            "scale and crop the pictures as for training"
        )


@dataclass(frozen=True)
class Sound(Source):
    """A sound of one channel: int16 for an input of int16, else float32 from -1 to 1."""

    elements: int

    def pieces(self, size: int) -> Iterator[Array]:
        soundfile = import_package("soundfile")
        length = self.elements * (self.frames or 1)
        try:
            with soundfile.SoundFile(self.path) as file:
                data = file.read(length, dtype=self.dtype.name)
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"{self.path} can't be read as a sound: {first_line(error)}") from None
        if data.shape != (length,):
            raise UsageError(f"{self.path}: the sound ends early")
        yield data.reshape(1, -1)


def sound(path: str, spec: InputSpec, streams: bool) -> Sound:
    """Source of the sample in a sound file. It must have as many values as the input, or, with `streams`, a whole
    number of frames. UsageError if the sound has another length, or several channels; ToolMissing without soundfile."""
    soundfile = import_package("soundfile")
    try:
        info = soundfile.info(path)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{path} can't be read as a sound: {first_line(error)}") from None
    if info.channels != 1:
        raise UsageError(f"{path}: {info.channels} channels; give sounds with one channel")
    if info.frames != spec.elements and (not streams or not info.frames or info.frames % spec.elements):
        more = " or a multiple of it" if streams else ""
        raise UsageError(
            f"{path}: {info.frames:,} values at {info.samplerate:,} Hz, but the input {spec.name!r} takes "
            f"{spec.elements:,}{more}: cut or pad the sounds, or make features of them as for training"
        )
    frames = info.frames // spec.elements if streams and info.frames != spec.elements else None
    dtype = np.dtype(np.int16 if spec.dtype == "int16" else np.float32)
    return Sound(path, 1, frames, dtype, False, spec.elements)
