"""Finds operators that a quantized model leaves float32, and predicts their cost."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import plan_stages
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops.real_numbers import converts
from tinyfuse.options import Options
from tinyfuse.targets import Target


@dataclass(frozen=True)
class Island:
    """An operator that stays float32.

    operator      as messages call it
    kind          the schema's name
    tensor        name of its first output
    instructions  predicted, including conversions of its inputs and outputs that only it needs; None if a kernel was
                  not measured
    """

    operator: str
    kind: str
    tensor: str
    instructions: int | None


def float_operators(graph: Graph) -> list[Op]:
    """Return the operators that compute with float32, without conversions to and from it."""
    return [
        op
        for op in graph.ops
        if not converts(op)
        and any(tensor.dtype == "float32" for tensor in (*op.activations, *op.outputs))
    ]  # fmt: skip


def priced_islands(graph: Graph, target: Target) -> tuple[list[Island], int | None]:
    """Return the operators that stay float32, and the predicted instructions of an inference of the model without
    fusion; None where a kernel was not measured. CompileError where the model can't be compiled."""
    plan = compile_graph(graph, target, Options(name="model", fusion="none"))
    by_tensor: dict[int, float | None] = {}
    total: float | None = 0.0
    for group, costs in zip(plan.groups, plan_stages(plan), strict=True):
        for stage, cost in zip(group.stages, costs, strict=True):
            for tensor in stage.op.outputs:
                by_tensor[tensor.index] = cost
            total = None if total is None or cost is None else total + cost
    readers: dict[Tensor, list[Op]] = {}
    for op in graph.ops:
        for tensor in op.activations:
            readers.setdefault(tensor, []).append(op)
    return [_island(graph, op, readers, by_tensor) for op in float_operators(graph)], _whole(total)


def _island(graph: Graph, op: Op, readers: dict[Tensor, list[Op]], costs: dict[int, float | None]) -> Island:
    before = [graph.producer.get(tensor) for tensor in op.activations if readers[tensor] == [op]]
    after = [each for tensor in op.outputs for each in readers.get(tensor, [])]
    conversions = [each for each in (*before, *after) if each is not None and converts(each)]
    parts = [costs.get(each.outputs[0].index) for each in (op, *conversions) if each.outputs]
    known = [part for part in parts if part is not None]
    instructions = _whole(sum(known)) if len(known) == len(parts) else None
    return Island(str(op), op.kind, op.outputs[0].name if op.outputs else "", instructions)


def _whole(cost: float | None) -> int | None:
    return None if cost is None else round(cost)
