"""`report --costs`: terms of the predicted instructions and code bytes, entry by entry of the target's tables."""

from __future__ import annotations

from tinyfuse.cost.code import CALL, PlanCode, Sizes, plan_code
from tinyfuse.cost.predict import called_once, group_stream
from tinyfuse.cost.table import CostTable, entry_name, instructions_table, loop_features, reads_ring
from tinyfuse.kernels.counts.common import RINGED, Counts
from tinyfuse.plan import Group, Plan
from tinyfuse.report.answer import JsonObject


def costs_json(plan: Plan) -> JsonObject | None:
    """JSON of --costs; None if the target has no cost table.

    It has the table's name and measurement; for each operator the terms of its kernel and of its group's loop, and its
    code; and the module's code outside operators.
    """
    target = plan.context.target
    table = instructions_table(target)
    if table is None:
        return None
    once, code = called_once(plan), plan_code(plan)
    operators = [
        each
        for group, stages in zip(
            plan.groups, code.stages, strict=False
        )  # code.stages also has the stages of called graphs, at the end
        for each in _group(plan, group, table, once, stages)
    ]
    return {"table": target.cost_table, "about": table.about, "operators": operators, "code": _code(code)}


def _code(code: PlanCode) -> JsonObject:
    return {
        "bytes": code.total,
        "module_bytes": code.module,
        "functions": [{"name": name, "bytes": size} for name, size in code.functions.items()],
        "guessed_bytes": code.guessed,
    }


def _group(
    plan: Plan, group: Group, table: CostTable, once: frozenset[str], codes: tuple[Sizes, ...]
) -> list[JsonObject]:
    loops = loop_features(group.stages, group_stream(plan, group))
    shares = (table.share(stage, plan.context, once) for stage in group.stages)
    return [
        _operator(plan, group, number, table, share, loop)
        | {"code_bytes": code.get(CALL), "functions": [name for name in code if name != CALL]}
        for number, (share, loop, code) in enumerate(zip(shares, loops, codes, strict=True))
    ]


def _operator(plan: Plan, group: Group, number: int, table: CostTable, share: float, loop: Counts) -> JsonObject:
    stage = group.stages[number]
    entry = entry_name(stage.op, stage.kernel, stage.by_row, plan.context)
    more = [stage.kernel.costs_with] if stage.kernel.costs_with else []
    every = [table.kernels.get(name) for name in (entry, *more)]
    counts = stage.kernel.counts(stage.op, stage.by_row)
    if not reads_ring(group.stages, number, loop):
        counts = {name: count for name, count in counts.items() if not name.startswith(RINGED)}
    terms = None if None in every else [term for factors in every for term in _terms(factors or {}, counts)]
    in_loop = _terms(table.loop, loop)
    total = None if terms is None else share * _sum(terms) + _sum(in_loop)
    return {
        "group": group.index,
        "operator": str(stage.op),
        "entry": entry,
        "instructions": None if total is None else round(total),
        "terms": terms,
        "share": share,
        "loop": in_loop,
    }


def _sum(terms: list[JsonObject]) -> float:
    return sum(float(term["count"] * term["factor"]) for term in terms)


def _terms(factors: dict[str, float], counts: Counts) -> list[JsonObject]:
    """Terms of the counts that are not zero."""
    return [
        {"feature": name, "count": counts[name], "factor": factor}
        for name, factor in factors.items()
        if counts.get(name)
    ]


def costs_lines(costs: JsonObject | None) -> list[str]:
    """Text of the costs for a terminal, line by line."""
    if costs is None:
        return ["this target has no cost table: its instructions are not predicted"]
    about = costs["about"]
    lines = [
        f"costs of {costs['table']}, measured {about['date']} with {about['compiler']}: count x instructions for each"
    ]
    for each in costs["operators"]:
        total = "not measured" if each["instructions"] is None else f"{each['instructions']:,} instructions"
        lines.append(f"group {each['group']}, {each['operator']}: {each['entry']}: {total}")
        lines += map(_line, each["terms"] or ())
        if each["share"] != 1:
            less = (each["share"] - 1) * _sum(each["terms"] or [])
            lines.append(f"  {'only call, inlined':<22} {'':>11}   {each['share']:>9,g}  {less:>14,.0f}")
        lines += map(_line, each["loop"])
        lines.append(f"  code: {_code_line(each)}")
    code = costs["code"]
    lines.append(f"code: about {code['bytes']:,} bytes, of which {code['module_bytes']:,} belong to no operator")
    lines += [f"  {each['name']:<44} {each['bytes']:>6,}" for each in code["functions"]]
    if code["guessed_bytes"]:
        lines.append(f"  {'functions not measured, estimated':<44} {code['guessed_bytes']:>6,}")
    return lines


def _code_line(operator: JsonObject) -> str:
    if operator["code_bytes"] is None:
        return "not measured"
    shared = ", ".join(operator["functions"])
    return f"{operator['code_bytes']:,} bytes" + (f", and functions that operators share: {shared}" if shared else "")


def _line(term: JsonObject) -> str:
    value = term["count"] * term["factor"]
    return f"  {term['feature']:<22} {term['count']:>11,} x {term['factor']:>9,g}  {value:>14,.0f}"
