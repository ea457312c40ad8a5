"""Plans a model that does not fit with other options, so that the message says how much these would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.options import Options
from tinyfuse.plan import Plan

#: largest models that are planned again: operators, and rows of all their outputs; each plan takes seconds
MOST_OPERATORS = 60
MOST_ROWS = 1 << 13

_NOTHING = "; neither --optimize ram nor --feed-rows takes less"
_NOTHING_IN_STEPS = "; --optimize ram does not take less"


def fitting_hint(plan: Plan, progress: Callable[[str], None]) -> str:
    """End of the message that a plan exceeds --max-ram: the RAM that other options would take. For models that take
    long to plan, only a hint."""
    window = plan.source.window
    source, ops = plan.source if window is None else window.whole, plan.source.ops
    rows = sum(t.shape[1] for op in ops for t in op.outputs if len(t.shape) == 4)
    if len(ops) > MOST_OPERATORS or rows > MOST_ROWS:
        return "" if plan.options.optimize == "ram" else "; --optimize ram may take less"
    told, least = [], plan.ram_bytes
    for options in _smaller(plan.options):
        progress(f"trying {_flags(plan.options, options)}")
        try:
            other = compile_graph(source, plan.context.target, options)
        except (CompileError, UsageError):  # --feed-rows does not work for this model
            continue
        if other.ram_bytes < least:
            least = other.ram_bytes
            told.append(f"{_flags(plan.options, options)} takes {least:,} bytes")
    nothing = _NOTHING_IN_STEPS if plan.options.step else _NOTHING
    limit = plan.options.max_ram
    beyond = "" if limit is None or least <= limit else f"; nothing that was tried fits: {least:,} is the least"
    return (f"; {'; '.join(told)}" if told else nothing) + beyond


def _smaller(options: Options) -> list[Options]:
    """Options that may take less RAM; milder ones first."""
    least = replace(options, fusion="rows", optimize="ram", memory=())
    if options.kernels == "cmsis-nn":
        least = replace(least, kernels="auto")
    tried = [least] if options.step else [least, replace(least, feed_rows=True)]
    return [other for other in dict.fromkeys(tried) if replace(other, memory=options.memory) != options]


def _flags(given: Options, other: Options) -> str:
    """Flags that a user adds or changes to get from `given` to `other`."""
    flags = ["--feed-rows"] if other.feed_rows and not given.feed_rows else []
    for name in ("kernels", "fusion", "optimize"):
        if getattr(other, name) != getattr(given, name):
            flags.append(f"--{name} {getattr(other, name)}")
    return " ".join(flags)
