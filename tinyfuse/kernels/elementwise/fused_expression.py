"""Expression that a fused elementwise loop computes, and its counts (see `tinyfuse.kernels.counts.common`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.counts.common import Counts, count_calls, memoized
from tinyfuse.ops.elementwise.merged import Merged, Part, reach

#: returns how one element of an operator is computed; None if it cannot be
ElementOf = Callable[[Op], Element | None]

#: number of elements that Helium computes together
FOUR = 4


@dataclass(frozen=True)
class Step:
    """One operator of an expression. `operands`: numbers of its inputs, as in `Part.sources`, without a table."""

    op: Op
    element: Element
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """Operators of a fused loop. `reads`: index of each input that the loop reads -> how the input broadcasts to the
    output (`reach`)."""

    steps: tuple[Step, ...]
    reads: dict[int, str]

    @property
    def dtype(self) -> str:
        """Dtype of the values that are not conditions; int8 if all are."""
        found = {tensor.dtype for step in self.steps for tensor in (*step.op.activations, *step.op.outputs)}
        return next((dtype for dtype in found if dtype != "bool"), "int8")

    @property
    def by_channels(self) -> bool:
        """True if an input or a table differs from channel to channel. The loop then goes over the channels of each
        pixel."""
        tables = (step.element.table for step in self.steps)
        return "channels" in self.reads.values() or any(table is not None and table.ndim > 1 for table in tables)


@lru_cache(maxsize=4096)
def expression_of(element_of: ElementOf, op: Op) -> Expression | None:
    """Expression of a fused operator, or of a single one. None if a part does not work element by element, or if an
    input does not extend over the output in a way that loops support."""
    steps, reads = [], {}
    alone = Part(op, tuple(range(len(op.inputs))))
    for part in op.attributes.parts if isinstance(op.attributes, Merged) else (alone,):
        element = element_of(part.op)
        if element is None:
            return None
        operands = part.sources[: len(element.values_of(part.op))]
        steps.append(Step(part.op, element, operands))
        reads.update({source: reach(op, op.operand(source)) for source in operands if source < len(op.inputs)})
    return None if "" in reads.values() else Expression(tuple(steps), reads)


#: registers that are free for pointers and constants in a loop, and how many of them an operator's constants take, by
#: its `Element.work`
_REGISTERS = 9
_CONSTANTS = {
    "planes": 2, "sums": 4, "products": 1, "rounded_products": 2, "lookups": 1, "channel_lookups": 1, "comparisons": 2,
}  # fmt: skip


def _work(expression: Expression) -> dict[str, int]:
    """Counts of one element of an expression. "clamps": results with a clamp narrower than their dtype; "raised_...":
    scaled values that are not shifted right."""
    loads = sum(how != "single" for how in expression.reads.values())
    work, registers = Counter({"loads": loads, "stores": 1}), loads + 2
    for step in expression.steps:
        kind, fields = step.element.work, step.element.parameters[1] if step.element.parameters else {}
        work[kind] += 1
        if "act_min" in fields and (fields["act_min"], fields["act_max"]) != RANGE.get(step.op.output.dtype):
            work["clamps"] += 1
        if fields.get("out_shift", -1) >= 0:
            work[f"raised_{kind}"] += 1
        registers += _CONSTANTS.get(kind, 0)
    work["spills"] = max(0, registers - _REGISTERS)
    return work


@memoized
def fused_loop_counts(element_of: ElementOf, op: Op, by_row: bool, together: int) -> Counts:
    """Counts of a fused loop: "runs", how often it starts; its iterations, of `together` elements each, times the work
    of an element; "rests", elements that are computed one by one, and "rest_works", their work."""
    expression = expression_of(element_of, op)
    assert expression is not None, "a fused loop"
    elements, calls = op.output.elements, count_calls(op, by_row)
    runs, length = calls, elements // calls
    if expression.by_channels:
        length = op.output.shape[-1]
        runs = elements // length
    work = _work(expression)
    rounds, rests = runs * (length // together), runs * (length % together)
    counts = {name: rounds * each for name, each in work.items()}
    return counts | {"calls": calls, "runs": runs, "rests": rests, "rest_works": rests * sum(work.values())}
