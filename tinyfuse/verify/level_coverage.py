"""Measures which parts of the layers' output ranges some inputs reach. An end of a range that no run reached was not
tested."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import Array, Graph
from tinyfuse.ops import FAMILIES
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.channel_ends import channel_ends
from tinyfuse.verify.oracle import ReferenceOracle

#: MACs that references may spend on the runs: about a second
_MACS = 600_000_000


@dataclass(frozen=True)
class LayerCoverage:
    """Number of a layer's channels, and of those that reached both ends of their range.

    operator   a layer, as messages name it
    channels   number of its output channels
    reached    number of channels that had their least and their greatest value in some run
    """

    operator: str
    channels: int
    reached: int


def level_coverage(graph: Graph, inputs: list[list[list[Array]]]) -> tuple[LayerCoverage, ...] | None:
    """Return the coverage of each quantized layer with constant weights, in the order of the graph.

    inputs: [stream][frame][index], as of an oracle. A channel's ends are those of its clamp, or what interval
    arithmetic finds for its sums: inside of a network no input may reach these. None where references would take too
    long, and for a step of a sliding window, whose inputs are parts of a window.
    """
    graph = fold_constants(graph)
    ends = channel_ends(graph)
    layers = list(ends)
    macs = sum(FAMILIES[op.kind].macs(op) for op in graph.ops if op.kind in FAMILIES)
    if not layers:
        return ()
    if graph.window is not None or macs * sum(map(len, inputs)) > _MACS:
        return None
    watched = ReferenceOracle(replace(graph, outputs=tuple(op.output for op in layers)))
    least, most = ([np.zeros(len(each[0]), bool) for each in ends.values()] for _ in range(2))
    for frame in (frame for stream in inputs for frame in watched.run_streams([stream])[0]):
        for number, (values, (low, high)) in enumerate(zip(frame, ends.values(), strict=True)):
            pixels = values.reshape(-1, values.shape[-1])
            least[number] |= pixels.min(axis=0) <= low
            most[number] |= pixels.max(axis=0) >= high
    reached = [int((low & high).sum()) for low, high in zip(least, most, strict=True)]
    return tuple(
        LayerCoverage(str(op), len(channels), count) for op, channels, count in zip(layers, least, reached, strict=True)
    )
