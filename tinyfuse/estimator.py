"""Estimates a plan, in a fraction of the time that compile_graph takes; for figures, never for code.

It skips what takes most of the time: most groups are not weighed (schedule/quick_estimate/plan.py), operators run in
the order of the file, the arena gets no exact search, rings always slide where they may, no operator runs twice, and
nothing is verified. Operators carry an estimate_mark: a layer's fast form is taken to be exact where it nearly always
is (kernels/requantize/single_rounding.py), a sum's after testing some pairs of operands
(kernels/elementwise/single_rounding.py). Marked operators have their own cache entries, so these never reach
code.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.compiler import graphs_to_plan, prepare_graph
from tinyfuse.ir import EstimateMark, Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.schedule.pick_step import plan_best_step
from tinyfuse.schedule.plan_graph import is_searched
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.rule_based_plan import rule_based_plan
from tinyfuse.schedule.quick_estimate.plan import estimate_plan
from tinyfuse.schedule.variants.variants import Variants
from tinyfuse.targets import Target

#: no search for placements: greedy orders come close
_WORK_LIMIT = 0


def estimated_plan(source: Graph, target: Target, options: Options) -> Plan:
    """Estimates the plan of compile_graph; deterministic. CompileError names every reason why there is none."""
    mark = EstimateMark()
    marked = replace(source, ops=tuple(replace(op, estimate_mark=mark) for op in source.ops))
    steps = graphs_to_plan(marked, options)
    return plan_best_step(steps, options, lambda step: lambda wanted: _estimated_plan(step, target, wanted))


def _estimated_plan(source: Graph, target: Target, options: Options) -> Plan:
    variants = Variants(prepare_graph(source, target, options), target, options)
    builder = Builder(source, options, work_limit=_WORK_LIMIT)
    return estimate_plan(variants, builder) if is_searched(options) else rule_based_plan(variants, builder)
