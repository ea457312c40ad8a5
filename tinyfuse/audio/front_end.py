"""Parameters of a front end for audio."""

from __future__ import annotations

from dataclasses import dataclass

#: unit of the features with which micro_speech was trained
UNIT = 1 / 25.6
#: default scale of the int8 features, by micro_speech's converter: a range of 26 in 256 steps
DEFAULT_SCALE = 666 / 256 * UNIT


@dataclass(frozen=True)
class FrontEnd:
    """Parameters of a front end.

    sample_rate           Hz.
    window_ms, stride_ms  milliseconds of a frame, and from one frame to the next.
    channels              features per frame, from `low` to `high` Hz.
    frames                frames in one output.
    scale, zero_point     quantization of the int8 features.
    shape                 shape of the output; None for [1, frames * channels].
    """

    sample_rate: int = 16000
    window_ms: float = 30.0
    stride_ms: float = 20.0
    channels: int = 40
    frames: int = 1
    low: float = 125.0
    high: float = 7500.0
    scale: float = DEFAULT_SCALE
    zero_point: int = -128
    shape: tuple[int, ...] | None = None

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return int(self.window_ms * self.sample_rate / 1000)

    @property
    def step(self) -> int:
        """Samples from one frame to the next: the input of a run."""
        return int(self.stride_ms * self.sample_rate / 1000)

    @property
    def length(self) -> int:
        """Length of the Fourier transform in samples: the next power of two."""
        return 1 << max(2, (self.window - 1).bit_length())
