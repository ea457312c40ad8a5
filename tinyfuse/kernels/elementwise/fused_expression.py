"""What a merged loop computes of an element, and its counts (`tinyfuse.kernels.counts.common` says what counts are)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.counts.common import Counts, calls_of, kept
from tinyfuse.ops.elementwise.merged import Merged, Part, reach

#: how one element of an operator is computed, None where it can't be
ElementOf = Callable[[Op], Element | None]

#: elements that Helium computes together
FOUR = 4


@dataclass(frozen=True)
class Step:
    """One operator of the expression; operands: as `Part.sources`, of those that are values."""

    op: Op
    element: Element
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """reads: of each input that is a value its number, and how it goes over the output (`reach`)."""

    steps: tuple[Step, ...]
    reads: dict[int, str]

    @property
    def dtype(self) -> str:
        """That of the values that are no conditions, int8 where all are."""
        found = {tensor.dtype for step in self.steps for tensor in (*step.op.activations, *step.op.outputs)}
        return next((dtype for dtype in found if dtype != "bool"), "int8")

    @property
    def by_channels(self) -> bool:
        """Whether something is another one for each channel: the loop goes over those of each pixel."""
        tables = (step.element.table for step in self.steps)
        return "channels" in self.reads.values() or any(table is not None and table.ndim > 1 for table in tables)


@lru_cache(maxsize=4096)
def expression_of(element_of: ElementOf, op: Op) -> Expression | None:
    """The expression of a merged operator, or of a single one; None where a part is no function of elements, or where
    loops don't go over the output as an input does."""
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


#: what registers hold beside the values of an element: pointers and the constants of each operator's work
_REGISTERS = 9
_CONSTANTS = {"planes": 2, "sums": 4, "products": 1, "lookups": 1, "channel_lookups": 1, "comparisons": 2}


def _work(expression: Expression) -> dict[str, int]:
    """What a loop does of each element."""
    loads = sum(how != "single" for how in expression.reads.values())
    work, registers = {"loads": loads, "stores": 1}, loads + 2
    for step in expression.steps:
        kind = step.element.work
        work[kind] = work.get(kind, 0) + 1
        for form in _forms(step):
            work[form] = work.get(form, 0) + 1
        registers += _CONSTANTS.get(kind, 0)
    work["spills"] = max(0, registers - _REGISTERS)
    return work


def _forms(step: Step) -> list[str]:
    """What an operator's parameters make of its work: "clamps" of results that don't only saturate, and work that is
    "raised_", whose scaled value isn't shifted to the right."""
    fields = step.element.parameters[1] if step.element.parameters else {}
    limits = RANGE.get(step.op.output.dtype)
    clamps = "act_min" in fields and (fields["act_min"], fields["act_max"]) != limits
    raised = fields.get("out_shift", -1) >= 0
    return ["clamps"] * clamps + [f"raised_{step.element.work}"] * raised


@kept
def fused_loop_code_counts(element_of: ElementOf, op: Op, by_row: bool, unrolled: int) -> Counts:
    """What a loop's code holds: its work, four times where it goes over `unrolled` elements or more, and once more
    where some are left."""
    expression = expression_of(element_of, op)
    assert expression is not None, "a merged loop"
    length = op.output.shape[-1] if expression.by_channels else op.output.elements // calls_of(op, by_row)
    copies = 1 if length < unrolled else 4 + (length % 4 != 0)
    return {"calls": 1, **{name: copies * each for name, each in _work(expression).items()}}


@kept
def fused_loop_counts(element_of: ElementOf, op: Op, by_row: bool, together: int) -> Counts:
    """How often the loop over elements begins ("runs") and goes round, that many elements together, times what the
    expression takes each time. "rests" are elements that are left to be computed one by one, and "rest_works" all that
    is done to them."""
    expression = expression_of(element_of, op)
    assert expression is not None, "a merged loop"
    elements, calls = op.output.elements, calls_of(op, by_row)
    # how often the loop over elements begins, and how long it is
    runs, length = calls, elements // calls
    if expression.by_channels:
        length = op.output.shape[-1]
        runs = elements // length
    work = _work(expression)
    rounds, rests = runs * (length // together), runs * (length % together)
    counts = {name: rounds * each for name, each in work.items()}
    return counts | {"calls": calls, "runs": runs, "rests": rests, "rest_works": rests * sum(work.values())}
