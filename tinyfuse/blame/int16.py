"""Measures what int16 for single layers would change: each is quantized, planned, and compared with the float model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tinyfuse.blame.blame import Blame, Int16Cost, output_snr
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Array, Graph
from tinyfuse.ops.real_numbers import converts
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.quantization.convert import FloatModel, calibrate
from tinyfuse.quantization.recipes import recipe
from tinyfuse.quantization.session import Quantizer, Refused
from tinyfuse.targets import Target

Batches = Callable[[], Iterator[Mapping[str, Array]]]


def with_int16_costs(
    blame: Blame, model: FloatModel, batches: Batches, count: int, target: Target, options: Options, progress: Progress
) -> Blame:
    """Return the blame with an Int16Cost for each of its worst layers that is int8.

    The float model is quantized to int8 with the ranges of `batches`, and again for each of these layers with the layer
    and its readers in int16. The costs are differences between these plans, whichever tool made the blamed model.
    """
    layers = list(blame.layers)
    wanted = [place for place in blame.worst if layers[place].dtype == "int8"]
    if not wanted:
        return blame
    with Quantizer(model.data, recipe("int8"), "full") as quantizer:
        calibrate(quantizer, model, batches(), count, progress)
        base = _planned(quantizer, model, (), target, options)
        if base is None:
            return blame
        before = output_snr(base[1], model, batches(), count, progress)
        for number, place in enumerate(wanted):
            progress(f"predicting the cost of int16: layer {number + 1} of {len(wanted)}")
            names = with_readers(base[1], layers[place].float_tensor)
            found = _planned(quantizer, model, names, target, options)
            if found is not None:
                snr = output_snr(found[1], model, batches(), count, progress)
                int16 = _difference(base[0], found[0], names, snr, before)
                layers[place] = replace(layers[place], int16=int16)
    return replace(blame, layers=tuple(layers))


def with_readers(graph: Graph, name: str) -> tuple[str, ...]:
    """Return the names of a tensor and of its readers' outputs. Readers of an output that keeps the tensor's range
    count, too."""
    found, reached = [name], {tensor for op in graph.ops for tensor in op.outputs if tensor.name == name}
    reached |= {tensor for tensor in graph.inputs if tensor.name == name}
    for op in graph.ops:
        read = [tensor for tensor in op.activations if tensor in reached]
        if read and not converts(op):
            found += [tensor.name for tensor in op.outputs]
            if any(op.output.quant == tensor.quant for tensor in read):
                reached |= set(op.outputs)
    return tuple(found)


def _planned(
    quantizer: Quantizer, model: FloatModel, names: Sequence[str], target: Target, options: Options
) -> tuple[Plan, Graph] | None:
    """Return the plan and graph of the int8 model with these layers in int16; None if it cannot be quantized or
    compiled."""
    try:
        data = quantizer.quantize(recipe("int8", layers=[(name, "int16x8") for name in names]))
        graph = read_tflite(model.path, data)
        return compile_graph(graph, target, options), graph
    except (Refused, CompileError):
        return None


def _difference(
    base: Plan, other: Plan, names: tuple[str, ...], snr: float | None, base_snr: float | None
) -> Int16Cost:
    before, after = predicted_total(base), predicted_total(other)
    instructions = None if before is None or after is None else after - before
    return Int16Cost(names, instructions, other.ram_bytes - base.ram_bytes, snr, base_snr)
