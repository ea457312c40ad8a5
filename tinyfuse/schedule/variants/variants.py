"""Variants of one model, made by rewrites. There are several graphs, because some rewrites depend on the objective, and
because only plans show whether views save RAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tinyfuse.cost.cycles import counted_cycles
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context, Objective, intern_context, with_objective
from tinyfuse.options import CMSIS_NN_VERSIONS, FLASH_PRICES, OPTIMIZE, Options
from tinyfuse.rewrite import Pass, Rewritten, rewrite_steps
from tinyfuse.rewrite.cut_layers import cut_layers
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.rewrite.prune_channels import prune_channels, pruning
from tinyfuse.rewrite.tabulate import tabulate, tabulating
from tinyfuse.schedule.kernel_choice.stages import separate_instructions
from tinyfuse.schedule.variants import flash_price
from tinyfuse.schedule.variants.cut_layers import cut_faster_layers
from tinyfuse.schedule.variants.fold_lookups import look_up_in_layers
from tinyfuse.schedule.variants.fuse_elementwise import merge_elementwise
from tinyfuse.targets import Target

#: rows that a call of a library's function may make inside a group, by objective: more rows share more work, and make
#: larger rings. Under `--kernels cmsis-nn` groups are searched with each
_AT_ONCE = {"speed": (8,), "balanced": (4, 2), "ram": (1,)}


def at_once(optimize: str) -> int:
    """Rows that a library call may make, for one of OPTIMIZE."""
    return _AT_ONCE[optimize][0]


class Variant(NamedTuple):
    """A rewritten graph of the model, and the context that decides its kernels."""

    graph: Graph
    context: Context


def _made(op: Op) -> tuple[str, tuple[Tensor | None, ...], tuple[Tensor, ...]]:
    """Kind, inputs and outputs of an operator."""
    return op.kind, op.inputs, op.outputs


def with_least_scratch(variants: Sequence[Variant]) -> list[Variant]:
    """First variant for the least RAM, if any, with kernels of the least scratch; empty for CMSIS-NN, which has no such
    kernels."""
    small = [(graph, context) for graph, context in variants if context.optimize == "ram"]
    min_scratch = [
        Variant(graph, intern_context(with_objective(context, min_scratch=True)))
        for graph, context in small[:1]
        if not context.min_scratch
    ]
    return [variant for variant in min_scratch if variant.context.kernels != "cmsis-nn"]


class Variants:
    """Variants of a checked graph. Common rewrites are done once, so variants may share a graph."""

    def __init__(self, checked: Graph, target: Target, options: Options, price: float | None = None):
        """Takes `price`, the flash_price of core.context.Context; None: that of the options."""
        self._checked, self._target, self._options = checked, target, options
        usual_price = None if options.weights == "compressed" else FLASH_PRICES[options.optimize]
        self._price = usual_price if price is None else price
        self._known: Rewritten = {}
        tables = tabulating(lambda table, ops: flash_price.pays_as_tables(table, ops, self._context("balanced")))
        prune = pruning(lambda ops: separate_instructions(ops, self._context("balanced")))
        self._of_least_ram: dict[Pass, Pass] = {tabulate: tables}
        self._usual: dict[Pass, Pass] = {tabulate: tables, prune_channels: prune}
        self._contexts: dict[str, Context] = {}
        self._cut: dict[Graph, Graph] = {}
        self._loops: dict[tuple[Graph, bool], Graph] = {}
        self._looked_up: dict[tuple[Graph, str], Graph] = {}

    def sparing(self) -> Variants:
        """Variants with kernels that do not trade RAM for speed, even if only speed was asked for."""
        return Variants(self._checked, self._target, replace(self._options, optimize="balanced"), self._price)

    def one(self, optimize: str, with_views: bool = True) -> Variant:
        """Variant for one objective of OPTIMIZE, with views or without."""
        steps = list(self.steps(optimize, with_views))
        return Variant(steps[-1][1] if steps else self._checked, self._context(optimize))

    def _context(self, optimize: str) -> Context:
        if optimize not in self._contexts:
            self._contexts[optimize] = self._new_context(optimize)
        return self._contexts[optimize]

    def _new_context(self, optimize: str) -> Context:
        options = self._options
        version, lacks = CMSIS_NN_VERSIONS[options.cmsis_nn_version], frozenset(options.cmsis_nn_lacks)
        return intern_context(Context(
            self._target, version, options.kernels, lacks, options.weights, self._price, options.step,
            divided=options.max_step is not None, cycles=counted_cycles(self._target, options),
            objective=Objective(optimize, at_once(optimize), limit_ram=options.optimize != "speed"),
        ))  # fmt: skip

    def steps(self, optimize: str, with_views: bool = True) -> Iterator[tuple[str, Graph]]:
        """Yields (name, graph) after each rewrite of a variant that changed something."""
        options, graph = self._options, self._checked
        # a user who feeds rows wants less than all of them kept, even if that were faster
        objective = "balanced" if options.feeds_image and optimize == "speed" else optimize
        for name, rewritten in rewrite_steps(
            graph, options.fusion, options.kernels, objective, with_views, self._known, options.feeds_image,
            self._of_least_ram if objective == "ram" else self._usual,
        ):  # fmt: skip
            yield name, rewritten
            graph = rewritten
        if options.fusion != "none":
            for name, rewritten in self._by_cost(graph, optimize):
                if rewritten is not graph:
                    yield name, rewritten
                graph = rewritten
        if options.feeds_image:
            yield feed_rows.__name__, self._fed(graph)

    def _by_cost(self, graph: Graph, optimize: str) -> Iterator[tuple[str, Graph]]:
        """Yields the rewrites that depend on the target's costs. All but the last are the same for every objective
        except the least RAM, which may fuse more loops."""
        context = self._context("balanced")
        if graph not in self._cut:
            self._cut[graph] = cut_faster_layers(graph, context)
        graph = self._cut[graph]
        yield cut_layers.__name__, graph
        graph = self._merged(graph, context, optimize == "ram")
        yield merge_elementwise.__name__, graph
        if self._options.recompute_limit <= 1:  # otherwise layers may be computed in tiles
            if (graph, optimize) not in self._looked_up:
                self._looked_up[graph, optimize] = look_up_in_layers(graph, self._context(optimize))
            yield look_up_in_layers.__name__, self._looked_up[graph, optimize]

    def _merged(self, graph: Graph, context: Context, for_ram: bool) -> Graph:
        """Graph with fused elementwise loops. If loops are the same for RAM and for speed, both objectives get one
        Graph object, so that it is planned once."""
        if (graph, for_ram) not in self._loops:
            found, other = merge_elementwise(graph, context, for_ram), self._loops.get((graph, not for_ram))
            same = other is not None and [_made(op) for op in other.ops] == [_made(op) for op in found.ops]
            self._loops[graph, for_ram] = other if other is not None and same else found
        return self._loops[graph, for_ram]

    def _fed(self, graph: Graph) -> Graph:
        if (feed_rows, graph) not in self._known:
            self._known[feed_rows, graph] = feed_rows(graph)
        return self._known[feed_rows, graph]

    def with_and_without_views(self, optimize: str) -> list[Variant]:
        """Variant with views and, if it has any, the one without, because only plans tell whether they save RAM."""
        found = self.one(optimize)
        viewed = any(op.view for op in found.graph.ops)
        return [found, *([self.one(optimize, with_views=False)] if viewed else [])]

    def for_every_objective(self) -> list[Variant]:
        """Variants for each of OPTIMIZE; the last, the least RAM, also without views."""
        *others, smallest = OPTIMIZE
        found = [*map(self.one, others), *self.with_and_without_views(smallest)]
        if self._options.kernels != "cmsis-nn":
            return found
        return [
            Variant(graph, intern_context(with_objective(context, at_once=rows)))
            for graph, context in found
            for rows in _AT_ONCE[context.optimize]
        ]
