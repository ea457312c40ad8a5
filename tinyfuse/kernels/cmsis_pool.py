"""CMSIS-NN's pooling."""

from __future__ import annotations

from tinyfuse.ops.base import Context


def average_scratch(channels: int, context: Context) -> int:
    """Bytes that ctx.buf of an average pooling must have: a sum a channel, on DSP alone."""
    return 4 * channels if context.target.dsp and not context.target.mve else 0
