"""TRANSPOSEs cancel, move to where fewer bytes pass, and merge into what reads them.

before   %a = TRANSPOSE(%x, 0 2 3 1);  %b = CONV_2D(%a, ...);  %c = TRANSPOSE(%b, 0 3 1 2);  %d = RELU(%c)
         %e = TRANSPOSE(%d, 0 2 3 1);  %f = CONV_2D(%e, ...);  %g = TRANSPOSE(%f, 0 3 1 2)
         %h[1,C*H*W] = RESHAPE(%g);  %i = FULLY_CONNECTED(%h, weights)
after    %a = TRANSPOSE(%x, 0 2 3 1);  %b = CONV_2D(%a, ...);  %d' = RELU(%b);  %f = CONV_2D(%d', ...)
         %h'[1,H*W*C] = RESHAPE(%f);  %i = FULLY_CONNECTED(%h', weights in the order of %h')

Networks from PyTorch and ONNX have channels before rows and columns, and converters put a TRANSPOSE before and after
each operator that needs channels last. Operators that work in any order of dimensions (`permuted.is_free`) are computed
in the order that leaves the fewest bytes to be transposed. Local search finds these orders: it changes connected
operators together first, then single ones, until no change helps. A TRANSPOSE that only moves dimensions of size 1
becomes a RESHAPE. A fully connected layer that reads a flattened tensor can read it in any order, once its weights are
permuted to match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from tinyfuse import limits
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.movement.transpose import permutation
from tinyfuse.rewrite.permuted import identity, is_free, permuted, permuted_tensor


def cancel_transposes(graph: Graph) -> Graph:
    """Return the graph with the fewest transposed bytes found by local search; limits reached are noted in its
    `limits`."""
    if not any(_is_transpose(op) for op in graph.ops):
        return graph
    sources = _Sources(graph)
    reached = Reached()
    after = _Writer(sources, _chosen(sources, reached)).graph()
    after = graph if [op.kind for op in after.ops] == [op.kind for op in graph.ops] else after
    return replace(after, limits=merge_limits(graph.limits, reached.found)) if reached.found else after


def why_transpose_stays(graph: Graph, op: Op) -> str:
    """Explain to users why a TRANSPOSE is left after `cancel_transposes`."""
    source = op.input
    while (maker := graph.producer.get(source)) is not None and FAMILIES[maker.kind].alias:
        source = maker.input
    if source in graph.inputs:
        return f"the model's input has its dimensions in another order than {_readers(graph, op)} wants"
    readers = graph.consumers.get(op.output, ())
    renamed = next((reader.output for reader in readers if FAMILIES[reader.kind].alias), op.output)
    if op.output in graph.outputs or renamed in graph.outputs:
        return f"the model's output has its dimensions in another order than {maker} makes"
    if op.input.quant != op.output.quant:
        return "its output has another scale or zero point than its input"
    return f"{_readers(graph, op)} wants another order of dimensions than {maker} makes"


def _readers(graph: Graph, op: Op) -> str:
    """Return the name of the operator that reads a TRANSPOSE's output, behind reshapes, for messages."""
    output = op.output
    while (reader := next(iter(graph.consumers.get(output, ())), None)) is not None and FAMILIES[reader.kind].alias:
        output = reader.output
    return "what reads it" if reader is None else str(reader)


def _is_transpose(op: Op) -> bool:
    """Tell whether the operator is a TRANSPOSE that may move: one that also changes the quantization may not."""
    return op.kind == "TRANSPOSE" and not op.input.is_constant and not op.states and op.input.quant == op.output.quant


def _is_renaming(op: Op) -> bool:
    """Tell whether the operator only drops or adds dimensions of size 1, as converters do around layers over time."""
    if not FAMILIES[op.kind].alias or op.input.is_constant or op.input.is_state or op.input.quant != op.output.quant:
        return False
    before, after = ([dim for dim in tensor.shape if dim != 1] for tensor in (op.input, op.output))
    return before == after and op.input.elements > 0


@dataclass(frozen=True)
class _Seen:
    """Describes a tensor of the file as `root` with its dimensions in `order`; -1 is a dimension of size 1 that the
    root lacks."""

    root: Tensor
    order: Order

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(1 if axis < 0 else self.root.shape[axis] for axis in self.order)

    @cached_property
    def memory(self) -> Order:
        """Order of the dimensions that are not 1: the order of the elements in memory."""
        return tuple(axis for axis, dim in zip(self.order, self.shape, strict=True) if dim != 1)

    @property
    def is_whole(self) -> bool:
        """Tell whether every dimension of the root is present."""
        return sorted(self.order) == list(range(len(self.root.shape)))

    def then(self, order: Order) -> _Seen:
        """Return the same tensor with its dimensions permuted by `order`."""
        return _Seen(self.root, tuple(self.order[axis] for axis in order))

    def renamed(self, shape: tuple[int, ...]) -> _Seen:
        """Return the same tensor in a shape with more or fewer dimensions of size 1."""
        long = iter(self.memory)
        ones = (axis for axis, dim in zip(self.order, self.shape, strict=True) if dim == 1)
        return _Seen(self.root, tuple(next(long) if dim != 1 else next(ones, -1) for dim in shape))


class _Sources:
    """Maps each tensor to its root behind TRANSPOSEs, and lists the operators that work in any order of dimensions."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.seen: dict[Tensor, _Seen] = {}
        self.flat: dict[Op, Tensor] = {}  # fully connected layer -> the tensor that it reads flattened
        for op in graph.ops:
            if _is_transpose(op):
                self.seen[op.output] = self.of(op.input).then(permutation(op))
            elif _is_renaming(op):
                self.seen[op.output] = self.of(op.input).renamed(op.output.shape)
            elif (source := _flattened(graph, op)) is not None:
                self.flat[op] = source
        self.free = [op for op in graph.ops if is_free(op)]
        #: operators that the writer makes again on demand: TRANSPOSEs, renamings, and reshapes that only such layers
        #: read
        self.skipped = _only_read_flat(graph, self.flat) | {op for op in graph.ops if set(op.outputs) & set(self.seen)}

    def of(self, tensor: Tensor) -> _Seen:
        return self.seen.get(tensor) or _Seen(tensor, identity(len(tensor.shape)))

    @cached_property
    def makers(self) -> dict[Tensor, Op]:
        """Map each tensor made by an operator that works in any order to that operator."""
        return {t: op for op in self.free for t in op.outputs}

    def regions(self) -> Iterator[tuple[Op, ...]]:
        """Yield groups of free operators that read one another directly, then each free operator alone."""
        root = {op: op for op in self.free}

        def first(op: Op) -> Op:
            while root[op] is not op:
                op = root[op]
            return op

        for op in self.free:
            for tensor in op.activations:
                if tensor in self.makers:
                    root[first(op)] = first(self.makers[tensor])
        members: dict[Op, list[Op]] = {}
        for op in self.free:
            members.setdefault(first(op), []).append(op)
        several = [tuple(region) for region in members.values() if len(region) > 1]
        yield from several
        yield from ((op,) for op in self.free)


def _flattened(graph: Graph, op: Op) -> Tensor | None:
    """Return the tensor that a fully connected layer reads whole through reshapes; None if there is none."""
    if op.kind != "FULLY_CONNECTED" or op.operand(1).quant is None or not op.operand(1).is_constant:
        return None
    source, weights = op.input, op.operand(1)
    if source.dtype == "float32" or len(weights.shape) != 2:  # the order of float terms matters
        return None
    while (maker := graph.producer.get(source)) is not None and FAMILIES[maker.kind].alias:
        source = maker.input
    whole = weights.shape[1] == source.elements and not source.is_constant and not source.is_state
    return source if source is not op.input and whole and len(source.shape) > 1 else None


def _only_read_flat(graph: Graph, flat: Mapping[Op, Tensor]) -> frozenset[Op]:
    """Return the reshapes whose outputs only the layers in `flat` read."""
    found: set[Op] = set()
    for op in reversed(graph.ops):
        readers = graph.consumers.get(op.output, ()) if op.outputs else ()
        unseen = FAMILIES[op.kind].alias and op.output not in graph.outputs and bool(readers)
        if unseen and all(reader in found or reader in flat for reader in readers):
            found.add(op)
    return frozenset(found)


# --- the choice ----------------------------------------------------------------------------------


def _chosen(sources: _Sources, reached: Reached) -> dict[Op, Order]:
    """Choose the order of dimensions in which each free operator is computed.

    Local search starts from the order of what the operator reads and from the file's order; the one that transposes
    fewer bytes wins.
    """
    sunk: dict[Op, Order] = {}
    # a TRANSPOSE after an operator costs no more than one before it, and may cancel another one there
    for op in sources.free:
        seen = sources.of(max(op.activations, key=lambda t: t.bytes))
        sunk[op] = _settled(op, _as_made(seen, sunk, sources))
    as_read = {op: identity(len(op.output.shape)) for op in sources.free}
    return min(
        (_improved(sources, start, reached) for start in (sunk, as_read)), key=lambda orders: _cost(sources, orders)
    )


def _improved(sources: _Sources, orders: dict[Op, Order], reached: Reached) -> dict[Op, Order]:
    """Improve the orders region by region until no change leaves fewer transposed bytes."""
    looks, least, improved = 0, _cost(sources, orders), True
    while improved:
        improved = False
        for region in sources.regions():
            for order in _candidates(sources, region, orders):
                if all(orders[op] == order for op in region):
                    continue
                if looks > limits.TRANSPOSES.most:
                    reached.note(limits.TRANSPOSES)
                    return orders
                tried = orders | {op: _settled(op, order) for op in region}
                cost = _cost(sources, tried)
                looks += len(sources.graph.ops)
                if cost < least:
                    orders, least, improved = tried, cost, True
    return orders


def _as_made(seen: _Seen, orders: Mapping[Op, Order], sources: _Sources) -> Order:
    """Return the order of a tensor's dimensions in which its root is computed."""
    maker = sources.makers.get(seen.root)
    made = orders[maker] if maker is not None else identity(len(seen.root.shape))
    if seen.is_whole:
        return tuple(seen.order.index(axis) for axis in made)
    ones = (place for place, dim in enumerate(seen.shape) if dim == 1)
    return (*ones, *(seen.order.index(axis) for axis in made if axis in seen.memory))


@lru_cache(maxsize=4096)
def _settled(op: Op, order: Order) -> Order:
    """Return `order`, or the file's order if the operator can't be computed in it."""
    rank = len(op.output.shape)
    if len(order) != rank:
        return identity(rank)
    instead = {t: permuted_tensor(t, order) for t in (*op.activations, *op.outputs)}
    return identity(rank) if permuted(op, order, instead) is None else order


def _candidates(sources: _Sources, region: tuple[Op, ...], orders: Mapping[Op, Order]) -> Iterable[Order]:
    """Return the orders that tensors next to the region have: candidates for the region itself."""
    found: dict[Order, None] = {}
    for op in region:
        found[identity(len(op.output.shape))] = None
        for tensor in op.activations:
            found[_as_made(sources.of(tensor), orders, sources)] = None
        for tensor in op.outputs:
            for reader in sources.graph.consumers.get(tensor, ()):
                if _is_transpose(reader):
                    found[permutation(reader)] = None
    return found


def _cost(sources: _Sources, orders: Mapping[Op, Order]) -> tuple[int, int]:
    """Return (bytes that TRANSPOSEs move, number of TRANSPOSEs) for a choice of dimension orders."""
    wanted: dict[tuple[Tensor, Order], None] = {}
    for op in sources.graph.ops:
        if op in sources.flat or op in sources.skipped:
            continue
        for tensor in op.activations:
            seen = sources.of(tensor)
            seen = seen.then(orders[op]) if op in orders else seen
            wanted[seen.root, seen.memory] = None
    for tensor in sources.graph.outputs:
        seen = sources.of(tensor)
        wanted[seen.root, seen.memory] = None
    sizes = [root.bytes for root, memory in wanted if _made_as(sources, orders, root).memory != memory]
    return sum(sizes), len(sizes)


def _made_as(sources: _Sources, orders: Mapping[Op, Order], root: Tensor) -> _Seen:
    """Return a root in the order in which its maker leaves it."""
    maker = sources.makers.get(root)
    return _Seen(root, orders[maker] if maker is not None else identity(len(root.shape)))


# --- the graph -----------------------------------------------------------------------------------


class _Writer:
    """Builds the graph in which each operator is computed in its chosen order."""

    def __init__(self, sources: _Sources, orders: Mapping[Op, Order]):
        self.sources, self.orders, self.before = sources, orders, sources.graph
        self.ops: list[Op] = []
        #: tensors made so far for a root, by their order in memory and shape
        self.there: dict[tuple[Tensor, Order], dict[tuple[int, ...], Tensor]] = {}
        self.taken: set[Tensor] = set(self.before.inputs)  # tensors of the file that exist in the new graph
        #: tensors of the file by root and order: outputs of the model first
        self.names: dict[tuple[Tensor, Order, tuple[int, ...]], tuple[Tensor, int]] = {}
        looked_through = [op for op in self.before.ops if op.outputs and op.output in sources.seen]
        for op in sorted(looked_through, key=lambda op: op.output not in self.before.outputs):
            self.names.setdefault(_key(sources.of(op.output)), (op.output, op.index))

    def graph(self) -> Graph:
        for op in self.before.ops:
            if op not in self.sources.skipped:
                self.ops.append(self._flat(op) if op in self.sources.flat else self._written(op))
        for tensor in dict.fromkeys(self.before.outputs):
            self._give(tensor)
        return replace(self.before, ops=tuple(self.ops))

    def _written(self, op: Op) -> Op:
        if op not in self.orders:
            self.taken.update(op.outputs)
            return op.reading({t: self._get(self.sources.of(t), op.index) for t in op.activations})
        order = self.orders[op]
        instead = {t: self._get(self.sources.of(t).then(order), op.index) for t in op.activations}
        instead |= {t: self._put(_Seen(t, order)) for t in op.outputs}
        made = permuted(op, order, instead)
        assert made is not None, "the order was settled"
        return made

    def _put(self, seen: _Seen) -> Tensor:
        """Return a tensor for `seen` that the caller adds to the graph: the file's own tensor if one is still
        unused."""
        natural = seen.root if seen.order == identity(len(seen.root.shape)) else None
        named = self.names.get(_key(seen), (None, -1))[0]
        found = next((t for t in (natural, named) if t is not None and t not in self.taken), None)
        if found is None:
            found = replace(seen.root, name=f"{seen.root.name} (transposed)", shape=seen.shape, index=-1)
        self.taken.add(found)
        self.there.setdefault((seen.root, seen.memory), {})[seen.shape] = found
        return found

    def _made(self, root: Tensor) -> tuple[_Seen, Tensor]:
        """Return a root in the order in which it was computed, and its tensor."""
        made = _made_as(self.sources, self.orders, root)
        return made, self.there.setdefault((root, made.memory), {made.shape: root})[made.shape]

    def _get(self, seen: _Seen, reader: int) -> Tensor:
        """Return the tensor for `seen`, by at most one TRANSPOSE. `reader`: index in the file of the operator that
        reads it."""
        made, source = self._made(seen.root)
        there = self.there.get((seen.root, seen.memory), {})
        if seen.shape in there:
            return there[seen.shape]
        index = self.names.get(_key(seen), (None, reader))[1]
        if there or not seen.is_whole:
            ones = (axis for axis in made.order if axis not in seen.memory)
            source = next(iter(there.values()), None) or self._get(_Seen(seen.root, (*ones, *seen.memory)), reader)
            self.ops.append(Op("RESHAPE", (source,), (self._put(seen),), index=index))
        else:
            order = np.array([made.order.index(axis) for axis in seen.order], np.int32)
            result = self._put(seen)
            constant = Tensor(f"{result.name} (order)", order.shape, "int32", None, order)
            self.ops.append(Op("TRANSPOSE", (source, constant), (result,), index=index))
        return self.there[seen.root, seen.memory][seen.shape]

    def _give(self, tensor: Tensor) -> None:
        """Add the operator that makes a model output from the tensor that replaces it inside the graph; add nothing if
        that is the output itself."""
        found = self._get(self.sources.of(tensor), -1)
        if found is not tensor:
            self.taken.add(tensor)
            self.ops.append(Op("RESHAPE", (found,), (tensor,)))

    def _flat(self, op: Op) -> Op:
        """Return the fully connected layer reading its input in the order it was computed in, with the weights permuted
        to match."""
        seen, weights = self.sources.of(self.sources.flat[op]), op.operand(1)
        made, source = self._made(seen.root)
        self.taken.update(op.outputs)
        # element of the flat tensor -> element of the computed one
        places = np.arange(source.elements).reshape([seen.root.shape[axis] for axis in made.memory])
        places = places.transpose([made.memory.index(axis) for axis in seen.memory]).reshape(-1)
        flat = replace(op.input, index=-1)
        self.ops.append(Op("RESHAPE", (source,), (flat,), index=op.index))
        if np.array_equal(places, np.arange(len(places))):
            return replace(op, inputs=(flat, *op.inputs[1:]))
        data = np.empty_like(weights.values)
        data[:, places] = weights.values
        return replace(op, inputs=(flat, replace(weights, data=data, index=-1), *op.inputs[2:]))


def _key(seen: _Seen) -> tuple[Tensor, Order, tuple[int, ...]]:
    return seen.root, seen.memory, seen.shape
