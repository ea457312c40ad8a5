"""Parts of what makes a plan, for tests that choose the groups themselves."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.compiler import prepare_graph
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.kernel import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.rows import USUAL_RINGS, RingModes
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.variants.variants import Variant, Variants
from tinyfuse.targets import Target


def prepare(source: Graph, target: Target, options: Options, with_views: bool = True) -> Variant:
    """What the rewrites make of a graph, once it is checked, and what decides about its kernels."""
    return Variants(prepare_graph(source, target, options), target, options).one(options.optimize, with_views)


def plan_groups(
    source: Graph,
    graph: Graph,
    groups: Sequence[Sequence[Op]],
    context: Context,
    options: Options,
    rings: RingModes = USUAL_RINGS,
) -> Plan:
    """The plan that runs `graph` (what the rewrites made of `source`) in these fusion groups, whose rings lie as
    `rings` has it."""
    plan = Builder(source, options).plan(Variant(graph, context), groups, rings)
    verify_plan(plan)
    return plan
