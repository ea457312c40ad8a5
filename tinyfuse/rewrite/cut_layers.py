"""Divides a layer whose output channels are split into one layer for each part.

before   %y = CONV_2D(%x, %w, %b);  %z = TABLE(%y);  %a, %c = SPLIT(%z)                         along the channels
after    %p = CONV_2D(%x, %w[:n], %b[:n]);  %a = TABLE(%p);  %q = CONV_2D(%x, %w[n:], %b[n:]);  %c = TABLE(%q)

A convolution or fully connected layer computes each channel independently, so every bit stays. The split no longer
copies anything, and all layers can run by rows; a SPLIT cannot, because it has several outputs. In return, each layer
gathers the input's windows again and extends them to int16. For speed, a layer is divided if the target's kernels are
predicted to take fewer instructions (schedule/variants/cut_layers.py). Otherwise it is divided wherever possible, and
both plans are compared.

Gated units, blocks that continue with half of their channels, and attention that computes queries, keys and values in
one layer have this form. rewrite/join_siblings.py is the opposite, for layers that a CONCATENATION joins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.movement import Movement


@dataclass(frozen=True)
class _Section:
    """Channels of another tensor, from `first` on, that become the tensor `tensor`."""

    tensor: Tensor
    first: int

    @property
    def count(self) -> int:
        return self.tensor.shape[-1]


#: called with (operators, their replacement): whether to replace
Wanted = Callable[[Sequence[Op], Sequence[Op]], bool]


def cut_layers(graph: Graph) -> Graph:
    """Return the graph with each layer cut into layers of fewer channels wherever that is possible."""
    return cut_where(graph, lambda ops, cut: True)


def cut_where(graph: Graph, wanted: Wanted) -> Graph:
    """Cut the layers for which `wanted` returns True. It is called with the layer and its dependent operators, and with
    the operators that would replace them."""
    instead: dict[Op, tuple[Op, ...]] = {}
    for op in graph.ops:
        chain = _chain(graph, op) if _is_layer(op) else []
        sections = _sections(graph, chain[-1].output) if chain else []
        if not sections:
            continue
        gone = (*chain, *graph.consumers[chain[-1].output])
        cut = tuple(new for section in sections for new in _of_section(chain, section))
        if wanted(gone, cut):
            instead |= dict.fromkeys(gone, ())
            instead[op] = cut
    return replace(graph, ops=tuple(new for op in graph.ops for new in instead.get(op, (op,)))) if instead else graph


def _is_layer(op: Op) -> bool:
    """Tell whether the operator is a layer whose output channels all read the same input channels."""
    family = FAMILIES[op.kind]
    if (family.data_and_weights, family.channel_axis) != ((0, 1), 0) or op.activations != op.inputs[:1]:
        return False
    return op.operand(1).shape[-1] == op.input.shape[-1] and not op.states


def _chain(graph: Graph, layer: Op) -> list[Op]:
    """Return the layer and the operators after it that process each channel separately, each the only reader of the one
    before; [] if the last result is a model output or has no reader."""
    chain = [layer]
    while True:
        tensor = chain[-1].output
        readers = graph.consumers.get(tensor, ())
        if tensor in graph.outputs or not readers:
            return []
        if len(readers) > 1 or not _keeps_channels(readers[0]):
            return chain
        chain.append(readers[0])


def _keeps_channels(op: Op) -> bool:
    family = FAMILIES[op.kind]
    if op.view or op.states or op.activations != op.inputs[:1] or len(op.outputs) != 1:
        return False
    if op.output.shape[-1:] != op.input.shape[-1:]:
        return False
    return family.elementwise or family.alias or family.channel_constant is not None


def _sections(graph: Graph, tensor: Tensor) -> list[_Section]:
    """Return the channels that readers take out of a tensor, each channel once; [] if a reader does anything else."""
    found: list[_Section] = []
    for reader in graph.consumers[tensor]:
        taken = _taken(reader, tensor)
        if not taken:
            return []
        found += [s for s in taken if s.tensor in graph.outputs or graph.consumers.get(s.tensor)]
    found.sort(key=lambda section: section.first)
    overlap = any(a.first + a.count > b.first for a, b in pairwise(found))
    return [] if overlap or all(section.count == tensor.shape[-1] for section in found) else found


def _taken(reader: Op, tensor: Tensor) -> list[_Section]:
    """Return the channels of `tensor` that an operator that moves elements reads; [] if it reads anything but whole
    channels, or contiguous pieces of memory, which need no copy."""
    family = FAMILIES[reader.kind]
    if not isinstance(family, Movement) or family.parts(reader) or reader.activations != (tensor,) or reader.states:
        return []
    places = np.arange(tensor.elements).reshape(tensor.shape)
    found = []
    for output, view in zip(reader.outputs, family.views(reader, places), strict=True):
        first = int(view.flat[0])
        channels = places[..., first : first + output.shape[-1]] if output.shape else places
        if output.quant != tensor.quant or output.shape != channels.shape or not np.array_equal(view, channels):
            return []
        found.append(_Section(output, first))
    return found


def _of_section(chain: Sequence[Op], section: _Section) -> list[Op]:
    """Return the chain computing only the channels of `section`."""
    made: list[Op] = []
    for op in chain:
        output = section.tensor if op is chain[-1] else _part(op.output, section)
        constants = range(
            1, 1 if FAMILIES[op.kind].alias else len(op.inputs)
        )  # a reshape takes its shape from the output
        inputs = [_of_channels(op, i, section) for i in constants]
        made.append(replace(op, inputs=(made[-1].output if made else op.input, *inputs), outputs=(output,)))
    return made


def _of_channels(op: Op, i: int, section: _Section) -> Tensor | None:
    """Return constant input `i` cut to the channels of `section`."""
    family, constant = FAMILIES[op.kind], op.inputs[i]
    if constant is None or not (family.channel_axis == 0 or family.channel_constant == i):
        return constant
    wanted = slice(section.first, section.first + section.count)
    data = np.ascontiguousarray(constant.values[wanted])
    quant = constant.quant
    if quant is not None and quant.per_channel:
        quant = replace(quant, scale=quant.scale[wanted], zero_point=quant.zero_point[wanted])
    return replace(constant, name=_name(constant, section), shape=data.shape, quant=quant, data=data, index=-1)


def _part(tensor: Tensor, section: _Section) -> Tensor:
    """Return a tensor for the section's channels in the middle of a chain."""
    shape = (*tensor.shape[:-1], section.count)
    return replace(tensor, name=_name(tensor, section), shape=shape, index=-1)


def _name(tensor: Tensor, section: _Section) -> str:
    return f"{tensor.name} (channels from {section.first})"
