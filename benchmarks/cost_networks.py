"""Stages of whole networks as samples: for measure_costs.py.

Where a module calls a kernel a hundred times, the compiler makes one function of it; where a network calls it once or
twice, it knows its constants, so that it takes some percent less. What is measured side by side tells how a kernel's
instructions grow, networks what they are among neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from sized_networks import line_network, sized_network

from tinyfuse.compiler import compile_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.targets import Target

#: the first one's seed: tests/emulated/test_predictions.py has those from 0 on, which are to be predicted
FIRST = 1000


def networks(target: Target, dtype: str, count: int) -> Iterator[Plan]:
    """Plans of random networks of the sizes that models have, and of as many over time, of our kernels; without those
    that TFLM refuses."""
    for seed, draw in itertools.product(range(FIRST, FIRST + count), (sized_network, line_network)):
        try:
            yield compile_graph(
                read_tflite("network.tflite", draw(seed, dtype)), target, Options("grid", kernels="tinyfuse")
            )
        except CompileError:
            continue
