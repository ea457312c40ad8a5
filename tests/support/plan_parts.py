"""Steps of planning for tests that choose the groups themselves."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.compiler import prepare_graph
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.rows import USUAL_RINGS, RingModes
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.variants.variants import Variant, Variants
from tinyfuse.targets import Target


def prepare(source: Graph, target: Target, options: Options, with_views: bool = True) -> Variant:
    """The checked graph after its rewrites, and the context for choosing its kernels."""
    return Variants(prepare_graph(source, target, options), target, options).one(options.optimize, with_views)


def plan_groups(
    source: Graph,
    graph: Graph,
    groups: Sequence[Sequence[Op]],
    context: Context,
    options: Options,
    rings: RingModes = USUAL_RINGS,
) -> Plan:
    """The plan that runs `graph` (the rewritten `source`) in these fusion groups, with the ring layout `rings`."""
    plan = Builder(source, options).plan(Variant(graph, context), groups, rings)
    verify_plan(plan)
    return plan
