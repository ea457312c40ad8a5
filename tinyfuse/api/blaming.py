"""`Module.blame`: which layers of a quantized model spoil it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from tinyfuse.api.quantizing import float_model
from tinyfuse.api.settings import Model
from tinyfuse.blame.blame import Blame, blame_layers
from tinyfuse.blame.int16 import with_int16_costs
from tinyfuse.data.inputs import input_specs
from tinyfuse.data.samples import AllData, open_samples
from tinyfuse.data.spread import spread_batches
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.options import parse_values
from tinyfuse.ir import Array, Graph
from tinyfuse.options import Options
from tinyfuse.progress import Progress
from tinyfuse.targets import Target
from tinyfuse.toolchain.extras import PACKAGES, require_package


def blame_graph(
    quantized: Graph, floats: Model, data: AllData, samples: int, values: str | None, target: Target,
    options: Options, progress: Progress,
) -> Blame:  # fmt: skip
    """Errors of a quantized graph's layers on samples of data, relative to the float model that it was made from; also
    what int16 would cost on the target, if ai-edge-quantizer is installed. Errors as `Module.blame`."""
    if samples < 1:
        raise UsageError(f"samples={samples!r}: give 1 or more")
    require_package("ai_edge_litert")
    model = float_model(floats)
    given = open_samples(data, input_specs(model.graph.inputs), values=parse_values(values))
    count = min(samples, len(given))

    def batches() -> Iterator[Mapping[str, Array]]:
        return spread_batches(given, samples)

    found = blame_layers(quantized, model, batches(), count, progress)
    doubts = given.doubts()
    if find_spec("ai_edge_quantizer") is None:
        doubts = (*doubts, f"int16 is not priced without ai-edge-quantizer: {PACKAGES['ai_edge_quantizer'].install}")
    else:
        found = with_int16_costs(found, model, batches, count, target, options, progress)
    return replace(found, warnings=(*doubts, *found.warnings))
