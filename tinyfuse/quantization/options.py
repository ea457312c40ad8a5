"""Options of `tinyfuse quantize` and `tinyfuse blame`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyfuse.options import option
from tinyfuse.quantization.recipes import SCHEMES
from tinyfuse.quantization.session import RANGES


def _values() -> Any:
    return option(
        "Real numbers that 0 and 255 of unsigned bytes and pixels stand for, as 0,1 or -1,1.",
        None,
        metavar="LOW,HIGH",
        otherwise="bytes are the numbers themselves",
    )


@dataclass(frozen=True)
class QuantizeOptions:
    """Options of quantization."""

    scheme: str = option(
        "Bits of activations and weights. int8x4: weights of 4 bits in convolutions and dense layers.",
        "int8",
        choices=tuple(SCHEMES),
    )
    float_io: bool = option("Leave the inputs and outputs float32.", False)
    ranges: str = option(
        "Ranges of tensors. full: the smallest and largest value of all samples; average: a moving average of each "
        "sample's, which leaves rare values out.",
        "full",
        choices=RANGES,
    )
    layers: tuple[str, ...] = option(
        "Compute a layer otherwise, by the name of its output, which may hold * and ?: int8, int16x8, int8x4, or "
        "float. Repeat it for more.",
        (),
        flag="--layer",
        metavar="NAME=SCHEME",
    )
    samples: int = option(
        "The most samples of the data that are used, spread evenly.", 500, metavar="N", limits=(1, 1_000_000)
    )
    values: str | None = _values()
    target: str = option("The core for which costs are predicted.", "cortex-m4", metavar="T")
    accuracy_loss: float | None = option(
        "Choose bits for each layer: how much worse than the float model's the metric may be, in percentage points of "
        "a share, else in its unit. Needs --labels.",
        None,
        metavar="POINTS",
        limits=(0.0, None),
    )
    metric: str = option("The metric of --accuracy-loss, as in `tinyfuse evaluate`.", "top1", metavar="METRIC")
    max_ram: str | None = option(
        "With --accuracy-loss: most arena and state: 65536, 64K, 1M.", None, metavar="SIZE", is_size=True
    )
    max_flash: str | None = option("With --accuracy-loss: most weights and code.", None, metavar="SIZE", is_size=True)
    max_instructions: int | None = option(
        "With --accuracy-loss: most predicted instructions of an inference.", None, metavar="N", limits=(1, None)
    )
    pareto: bool = option("With --accuracy-loss: evaluate 20 plans for the front, though fewer are enough.", False)


@dataclass(frozen=True)
class BlameOptions:
    """Options of the comparison of layers."""

    samples: int = option(
        "The most samples of the data that are compared, spread evenly.", 32, metavar="N", limits=(1, 100_000)
    )
    values: str | None = _values()
    target: str = option("The core for which int16 is priced.", "cortex-m4", metavar="T")
