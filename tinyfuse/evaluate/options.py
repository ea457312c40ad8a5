"""Options of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.errors import UsageError
from tinyfuse.options import COMPILER_OPTS, COMPILERS, ORACLES, option


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of an evaluation, each with a flag."""

    metric: str = option(
        "top1, top5 or another number: share of samples whose label is among the best outputs; auc: area under the ROC "
        "curve, of several classes the mean of each against the others; map: mean average precision; mae: mean "
        "absolute error; FILE.py:FUNCTION: your own (docs/evaluate.md).",
        "top1",
        metavar="METRIC",
    )
    scores: str | None = option(
        "The output that is scored, by its name.", None, metavar="OUTPUT", otherwise="the model's first output"
    )
    values: str | None = option(
        "Real numbers that 0 and 255 of unsigned bytes stand for, as 0,1 or -1,1: for pictures and arrays of uint8.",
        None,
        metavar="LOW,HIGH",
        otherwise="pixels fill the range of an int8 input",
    )
    emulator: str = option(
        "Where the generated code runs. host: natively, without sanitizers; qemu, renode: on the emulated core.",
        "host",
        choices=("host", "qemu", "renode"),
    )
    oracle: str = option("The interpreter whose outputs must be equal.", "auto", choices=ORACLES)
    at_least: float | None = option(
        "Fail where the metric is below this: a share, as 0.90.", None, metavar="SHARE", limits=(0.0, None)
    )
    at_most: float | None = option(
        "Fail where the metric is above this: for mae, and for errors of your own.",
        None,
        metavar="ERROR",
        limits=(0.0, None),
    )
    compiler: str = option("The compiler of the module.", "gcc", choices=COMPILERS)
    compiler_opt: str = option("The compiler's optimization level.", "O2", choices=COMPILER_OPTS)
    timeout: float = option("The most host time of each batch.", 300.0, metavar="SECONDS", limits=(1.0, None))


def parse_values(text: str | None) -> tuple[float, float] | None:
    """The two numbers of --values. UsageError unless there are two, and they differ."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--values {text}: give what 0 and 255 stand for, as 0,1") from None
    if not abs(low) <= 1e30 or not abs(high) <= 1e30 or low == high:
        raise UsageError(f"--values {text}: give two numbers that differ, as 0,1")
    return low, high
