"""A recurrent layer keeps only its last step if no other step is read.

before   %s[1,T,S] = UNIDIRECTIONAL_SEQUENCE_LSTM(...);  %y[1,S] = STRIDED_SLICE(%s) of step T - 1
after    %s[1,1,S] = UNIDIRECTIONAL_SEQUENCE_LSTM(...) last_step_only;  %y[1,S] = RESHAPE(%s)

Every step then overwrites the one before. The last steps of several batches are contiguous if time is the outermost
dimension; otherwise the layer stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.sequence.lstm_scaling import Lstm


def keep_last_step(graph: Graph) -> Graph:
    """Graph in which LSTMs output only their last step if nothing reads the others."""
    instead: dict[Op, Op] = {}
    for op in graph.ops:
        if op.kind != "UNIDIRECTIONAL_SEQUENCE_LSTM" or op.output in graph.outputs:
            continue
        time = 0 if op.attributes_as(Lstm).time_major else 1
        readers, steps = graph.consumers.get(op.output, ()), op.output.shape[time]
        if steps > 1 and all(_reads_end(reader, op.output, op.output.bytes // steps) for reader in readers):
            shape = tuple(1 if axis == time else dim for axis, dim in enumerate(op.output.shape))
            last = replace(op.output, shape=shape, index=-1)
            attributes = replace(op.attributes_as(Lstm), last_step_only=True)
            instead[op] = replace(op, outputs=(last,), attributes=attributes)
            instead |= {reader: Op("RESHAPE", (last,), reader.outputs, index=reader.index) for reader in readers}
    return replace(graph, ops=tuple(instead.get(op, op) for op in graph.ops)) if instead else graph


def _reads_end(reader: Op, source: Tensor, count: int) -> bool:
    """Tell whether the operator does nothing but return the last `count` bytes of `source`."""
    parts = FAMILIES[reader.kind].parts(reader)
    return [(p.part, p.whole, p.offset) for p in parts] == [(reader.outputs[0], source, source.bytes - count)]
