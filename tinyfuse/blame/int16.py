"""What computing single layers with int16 would change: quantized so, planned, and compared with the float model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tinyfuse.blame.blame import Blame, Int16Cost, LayerErrors, output_snr
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Array, Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.quantize.convert import FloatModel, calibrate
from tinyfuse.quantize.recipes import recipe
from tinyfuse.quantize.session import Quantizer, Refused
from tinyfuse.targets import Target

Batches = Callable[[], Iterator[Mapping[str, Array]]]


def with_int16_costs(
    blame: Blame, model: FloatModel, batches: Batches, count: int, target: Target, options: Options, progress: Progress
) -> Blame:
    """Return the blame with an Int16Cost for each of its worst layers that is int8.

    The float model is quantized to int8 with the ranges of `batches`, once as it is and once with each of these layers
    in int16: the differences of both plans are told, whatever made the model that is blamed.
    """
    layers = list(blame.layers)
    wanted = [place for place in blame.worst if layers[place].dtype == "int8"]
    if not wanted:
        return blame
    with Quantizer(model.data, recipe("int8"), "full") as quantizer:
        calibrate(quantizer, model, batches(), count, progress)
        base = _planned(quantizer, model, None, target, options)
        for number, place in enumerate(wanted):
            progress(f"pricing int16: layer {number + 1} of {len(wanted)}")
            other = _planned(quantizer, model, layers[place], target, options)
            if base is not None and other is not None:
                snr = output_snr(other[1], model, batches(), count, progress)
                layers[place] = replace(layers[place], int16=_difference(base[0], other[0], snr))
    return replace(blame, layers=tuple(layers))


def _planned(
    quantizer: Quantizer, model: FloatModel, layer: LayerErrors | None, target: Target, options: Options
) -> tuple[Plan, Graph] | None:
    """Return the plan of the int8 model, with a layer in int16; None where there can be none."""
    layers = [] if layer is None else [(layer.float_tensor, "int16x8")]
    try:
        graph = read_tflite(model.path, quantizer.quantize(recipe("int8", layers=layers)))
        return compile_graph(graph, target, options), graph
    except (Refused, CompileError):
        return None


def _difference(base: Plan, other: Plan, snr: float | None) -> Int16Cost:
    before, after = predicted_total(base), predicted_total(other)
    instructions = None if before is None or after is None else after - before
    return Int16Cost(instructions, other.ram_bytes - base.ram_bytes, snr)
