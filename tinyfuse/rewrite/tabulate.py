"""Replaces operators that together compute a function of one int8 value by a table of its 256 results.

before   %a = LOGISTIC(%in);  %b = MUL(%in, %a);  %c = ADD(%b, %k)       %k a constant of one value
after    %c = TABLE(%in, %t)                                             %t[256].

before   %a = MUL(%in, %k[C]);  %b = ADD(%a, %l[C]);  %c = RELU(%b)
after    %c = CHANNEL_TABLES(%in, %t)                                    %t[C, 256].

A region of operators qualifies if it has one int8 input, one output, and no reader outside of the tensors between.
Each operator must compute an element from those at the same place (`OpFamily.pointwise`, `elementwise`). Constants must
be the same everywhere, or within each channel. Regions grow from their last operator backwards, as far as possible.
Per-channel tables of 256 results each must be worth their flash; the caller knows the target's costs and decides
(`tabulating`). The references compute the table, so every bit is kept, and intermediate tensors may have any dtype.
This includes functions of libm, whose C has the references' bits on every core
(docs/decisions/15-bounds-of-libm.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.unary import UnaryFamily
from tinyfuse.ops.elementwise.table import MOST_CHANNEL_BYTES, TABLE_VALUES, Table

#: output dtypes of a table; an int16 table has two bytes for each int8 value
RESULTS = ("int8", "int16")

#: a single operator becomes a table if it has at least as many elements as the table
FEWEST_ELEMENTS = 256

#: flash limit, in bytes, for all per-channel tables of a model
MOST_BYTES_IN_ALL = 1 << 16

#: called with (the operator with per-channel tables, the operators that it replaces): whether its flash pays
Pays = Callable[[Op, tuple[Op, ...]], bool]


def tabulating(pays: Pays) -> Callable[[Graph], Graph]:
    """Return the pass `tabulate` that makes tables of channels only where they pay."""

    def tabulate(graph: Graph) -> Graph:
        return _tabulated(graph, pays)

    return tabulate


def tabulate(graph: Graph) -> Graph:
    """Return the graph in which every largest region of operators that computes a function of one int8 value is a
    table, however many bytes of flash that takes."""
    return _tabulated(graph, lambda _table, _ops: True)


def _tabulated(graph: Graph, pays: Pays) -> Graph:
    instead: dict[Op, Op | None] = {}
    budget, position = MOST_BYTES_IN_ALL, {op: place for place, op in enumerate(graph.ops)}
    for op in reversed(graph.ops):
        if op in instead:
            continue
        for region in reversed(list(_regions(graph, op, position))):
            table = _table_of(region, budget, pays) if _pays(region) else None
            if table is not None:
                if table.kind != "TABLE":
                    budget -= table.operand(1).bytes
                instead |= dict.fromkeys(region.ops)
                instead[op] = table  # in the last one's place
                break
    if not instead:
        return graph
    return replace(graph, ops=tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None))


@dataclass(frozen=True)
class _Region:
    """Operators `ops`, in graph order, that compute the last one's output from `source` alone."""

    source: Tensor
    ops: tuple[Op, ...]


def _regions(graph: Graph, last: Op, position: Mapping[Op, int]) -> Iterator[_Region]:
    """Yield the regions that end with `last`, each larger than the one before. `position`: operators' places in the
    graph."""
    if not last.outputs or last.output.dtype not in RESULTS or not _joins(last, last.output.shape):
        return
    shape, inside, front = last.output.shape, {last}, set(last.activations)
    while True:
        if len(front) == 1:
            (source,) = front
            if source.dtype == "int8" and source.shape == shape:
                yield _Region(source, tuple(sorted(inside, key=position.__getitem__)))
        # the tensor made last: no other tensor of the front depends on it
        made = [op for tensor in front if (op := graph.producer.get(tensor)) is not None]
        op = max(made, key=position.__getitem__, default=None)
        if op is None or not _joins(op, shape) or op.output in graph.outputs:
            return
        if not inside.issuperset(graph.consumers[op.output]):
            return
        inside.add(op)
        front = (front - {op.output}) | set(op.activations)


def _joins(op: Op, shape: tuple[int, ...]) -> bool:
    """Tell whether each element of the operator's output, which has this shape, depends only on the input elements at
    the same position."""
    family = FAMILIES[op.kind]
    tensors = (*op.activations, *op.outputs)
    return (
        (family.pointwise or (family.elementwise and len(op.inputs) == 1))
        and len(op.outputs) == 1
        and not op.states
        and bool(op.activations)
        and all(tensor.shape == shape for tensor in tensors)
    )


def _pays(region: _Region) -> bool:
    """Tell whether a table may be worth its bytes, before constants are looked at: it replaces several operators, or
    one of many elements that kernels would not compute by a table anyway."""
    (*others, last) = region.ops
    if others:
        return True
    # kernels already compute an int8 function of one value by a table
    tabled = isinstance(FAMILIES[last.kind], UnaryFamily) and last.output.dtype == "int8"
    return not tabled and last.output.elements >= FEWEST_ELEMENTS


def _table_of(region: _Region, budget: int, pays: Pays) -> Op | None:
    """Return the operator that replaces the region.

    Return None if a constant varies by more than channel, or if per-channel tables exceed `budget` bytes or don't pay.
    """
    last = region.ops[-1]
    constants: dict[Tensor, Array] = {}
    for tensor in (t for op in region.ops for t in op.operands if t.is_constant):
        values = _of_channels(tensor)
        if values is None:
            return None
        constants[tensor] = values
    channels = max((values.size for values in constants.values()), default=1)
    bytes_needed = 256 * channels * ITEM_BYTES[last.output.dtype]
    if channels > 1 and bytes_needed > min(MOST_CHANNEL_BYTES, budget):
        return None
    tables = _results(region, constants, channels)
    if (tables == tables[:1]).all():
        tables = tables[0]
    data = np.ascontiguousarray(tables)
    constant = Tensor(f"{last.output.name} (table)", data.shape, last.output.dtype, None, data)
    kind = "TABLE" if data.ndim == 1 else "CHANNEL_TABLES"
    table = Op(kind, (region.source, constant), last.outputs, Table(tuple(op.kind for op in region.ops)), last.index)
    return table if data.ndim == 1 or pays(table, region.ops) else None


def _of_channels(constant: Tensor) -> Array | None:
    """Return the constant's values by channel, or one for all; None if they vary along another dimension."""
    data = constant.values
    rows = data.reshape(-1, data.shape[-1] if data.ndim else 1)
    same = len(rows) > 0 and all(row.tobytes() == rows[0].tobytes() for row in rows[1:])
    if not same:
        return None
    row: Array = rows[0]
    return row[:1] if all(value.tobytes() == row[0].tobytes() for value in row) else row


def _results(region: _Region, constants: dict[Tensor, Array], channels: int) -> Array:
    """Return the region's results for TABLE_VALUES, [channels, 256]."""
    shape = (256, channels)
    values = {tensor: np.ascontiguousarray(np.broadcast_to(row, shape)) for tensor, row in constants.items()}
    values[region.source] = np.ascontiguousarray(np.broadcast_to(TABLE_VALUES[:, None], shape))
    known = {tensor: replace(tensor, shape=shape, data=data) for tensor, data in values.items()}
    for op in region.ops:
        probe = replace(op.reading(known), outputs=(replace(op.output, shape=shape),))
        (values[op.output],) = FAMILIES[op.kind].reference(probe, *(values[t] for t in op.operands))
        known[op.output] = replace(probe.output, data=values[op.output])
    return values[region.ops[-1].output].T
