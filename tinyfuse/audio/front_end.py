"""What a front end for audio is asked for."""

from __future__ import annotations

from dataclasses import dataclass

#: features are told in units of 1 / 25.6, since micro_speech was trained so
UNIT = 1 / 25.6
#: fraction of a feature of int8 where micro_speech's converter made none of its own: 26 units in 256 steps
DEFAULT_SCALE = 666 / 256 * UNIT


@dataclass(frozen=True)
class FrontEnd:
    """sample_rate in Hz, window and stride in milliseconds; `channels` features from `low` to `high` Hz, of the last
    `frames` frames together, as int8 of that scale and zero point, in `shape` (None: [1, frames * channels])."""

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
        """Samples from one frame to the next: what a run takes."""
        return int(self.stride_ms * self.sample_rate / 1000)

    @property
    def length(self) -> int:
        """Samples of the Fourier transform: the next power of two."""
        return 1 << max(2, (self.window - 1).bit_length())
