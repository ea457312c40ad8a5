"""Options of `tinyfuse quantize` and `tinyfuse blame`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tinyfuse.options import option
from tinyfuse.quantization.recipes import SCHEMES
from tinyfuse.quantization.session import RANGES


def _values() -> Any:
    return option(
        "For pictures and uint8 arrays: the real numbers that the bytes 0 and 255 stand for, such as 0,1 or -1,1.",
        None,
        metavar="LOW,HIGH",
        otherwise="0,255",
    )


@dataclass(frozen=True)
class QuantizeOptions:
    """Options of quantization."""

    scheme: str = option(
        "Formats of activations and weights. int8: both int8; int16x8: activations int16, weights int8; int8x4: "
        "activations int8, weights of convolutions and fully connected layers int4.",
        "int8",
        choices=tuple(SCHEMES),
    )
    float_io: bool = option("Leave the model's inputs and outputs float32.", False)
    ranges: str = option(
        "How a tensor's range follows from the samples. full: from the smallest to the largest value of all samples; "
        "average: a moving average of the samples' ranges, which ignores rare values.",
        "full",
        choices=RANGES,
    )
    layers: tuple[str, ...] = option(
        "Another scheme for some layers. NAME is that of a layer's output, and may contain * and ?; SCHEME is int8, "
        "int16x8, int8x4 or float. Repeat it for more layers.",
        (),
        flag="--layer",
        metavar="NAME=SCHEME",
    )
    samples: int = option(
        "Use at most N samples, evenly spread over the data.", 500, metavar="N", limits=(1, 1_000_000)
    )
    values: str | None = _values()
    target: str = option("The core for which costs are predicted.", "cortex-m4", metavar="T")
    accuracy_loss: float | None = option(
        "Choose each layer's scheme. The quantized model's metric may be worse than the float model's by POINTS: "
        "percentage points of a share, or the unit of another metric. Needs --labels.",
        None,
        metavar="POINTS",
        limits=(0.0, None),
    )
    metric: str = option(
        "With --accuracy-loss: the metric, as for `tinyfuse evaluate --metric`.", "top1", metavar="METRIC"
    )
    max_ram: str | None = option(
        "With --accuracy-loss: limit of arena and state together, such as 65536, 64K or 1M.",
        None,
        metavar="SIZE",
        is_size=True,
    )
    max_flash: str | None = option(
        "With --accuracy-loss: limit of weights and code together.", None, metavar="SIZE", is_size=True
    )
    max_instructions: int | None = option(
        "With --accuracy-loss: limit of an inference's predicted instructions.", None, metavar="N", limits=(1, None)
    )
    pareto: bool = option(
        "With --accuracy-loss: evaluate 20 plans, to show more trade-offs between accuracy and cost, even if fewer "
        "plans suffice for the choice.",
        False,
    )


@dataclass(frozen=True)
class BlameOptions:
    """Options of the comparison of layers."""

    samples: int = option(
        "Compare at most N samples, evenly spread over the data.", 32, metavar="N", limits=(1, 100_000)
    )
    values: str | None = _values()
    target: str = option("The core for which the cost of int16 layers is predicted.", "cortex-m4", metavar="T")
