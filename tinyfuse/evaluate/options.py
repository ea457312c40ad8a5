"""Options of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.errors import UsageError
from tinyfuse.options import COMPILER_OPTS, COMPILERS, ORACLES, option


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of an evaluation, each with a flag."""

    metric: str = option(
        "What is measured. topN, such as top1 or top5: share of samples whose label is among the N best outputs; auc: "
        "area under the ROC curve, with several classes the mean over each class against all others; map: mean average "
        "precision; mae: mean absolute error; FILE.py:FUNCTION: a function of yours (docs/evaluate.md).",
        "top1",
        metavar="METRIC",
    )
    scores: str | None = option(
        "Name of the output that the metric is computed from.",
        None,
        metavar="OUTPUT",
        otherwise="the model's first output",
    )
    values: str | None = option(
        "For pictures and uint8 arrays: the real numbers that the bytes 0 and 255 stand for, such as 0,1 or -1,1.",
        None,
        metavar="LOW,HIGH",
        otherwise="pixels fill the range of an int8 input",
    )
    emulator: str = option(
        "Where the generated code runs. host: on this computer, without sanitizers; qemu, renode: on the emulated "
        "core.",
        "host",
        choices=("host", "qemu", "renode"),
    )
    oracle: str = option(
        "The interpreter whose outputs must be equal. auto: the runtime that MODEL was made for.",
        "auto",
        choices=ORACLES,
    )
    at_least: float | None = option(
        "Fail if the metric is below SHARE, a number such as 0.90.", None, metavar="SHARE", limits=(0.0, None)
    )
    at_most: float | None = option(
        "Fail if the metric is above ERROR: for mae, and for a function of yours that returns an error.",
        None,
        metavar="ERROR",
        limits=(0.0, None),
    )
    compiler: str = option("The compiler of the module.", "gcc", choices=COMPILERS)
    compiler_opt: str = option("The compiler's optimization level.", "O2", choices=COMPILER_OPTS)
    timeout: float = option(
        "Give up if a batch of samples takes longer than this on the host.",
        300.0,
        metavar="SECONDS",
        limits=(1.0, None),
    )


def parse_values(text: str | None) -> tuple[float, float] | None:
    """The two numbers of --values. UsageError unless there are two, and they differ."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--values {text}: give the two numbers that 0 and 255 stand for, such as 0,1") from None
    if not abs(low) <= 1e30 or not abs(high) <= 1e30 or low == high:
        raise UsageError(f"--values {text}: give two different numbers, such as 0,1")
    return low, high
