"""Plans of bits as JSON and as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from hashlib import sha256

from tinyfuse.bits.search import MAX_PLANS, BitPlan, ChosenBits
from tinyfuse.blame.text import layer_pattern
from tinyfuse.evaluate.metrics import is_share
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.wrapping import wrap_text


def bits_json(found: ChosenBits) -> JsonObject:
    """JSON of the result, with the keys of docs/json.md."""
    return {
        "metric": found.metric,
        "float_score": asdict(found.float_score),
        "test_samples": found.samples,
        "plans": [_plan_json(plan) for plan in found.plans],
        "chosen": found.chosen,
        "front": list(found.front),
        "closest": list(found.closest),
    }


def _plan_json(plan: BitPlan) -> JsonObject:
    layers = [{"name": name, "scheme": scheme} for name, scheme in plan.layers]
    figures = {key: value for key, value in vars(plan).items() if key not in ("data", "layers", "score")}
    digest = sha256(plan.data).hexdigest()
    return {**figures, "layers": layers, "score": asdict(plan.score), "bytes": len(plan.data), "sha256": digest}


def bits_lines(data: JsonObject) -> list[str]:
    """Table of the front, with * at the chosen plan, then the layers of that plan. Without a chosen plan: the closest
    plans."""
    plans, chosen = data["plans"], data["chosen"]
    share = is_share(data["metric"])
    lines = [
        f"float model: {data['metric']} {_value(data['float_score']['value'], share)} over "
        f"{data['test_samples']:,} samples; {len(plans)} of at most {MAX_PLANS} plans evaluated, every output byte "
        + ("equal to the interpreter's" if all(plan["exact"] for plan in plans) else "checked (libm within bounds)"),
        f"   {data['metric'][-9:]:>9} {'loss':>7} {'RAM':>9} {'instructions':>13} {'flash':>9}  bits",
    ]
    if chosen is None:
        shown = data["closest"]
        lines.insert(1, "NO PLAN is within all limits; the closest three:")
    else:
        shown = sorted({*data["front"], chosen}, key=lambda place: plans[place]["instructions"] or 0)
    lines += [_row("*" if place == chosen else " ", plans[place], share) for place in shown]
    if chosen is not None and plans[chosen]["layers"]:
        flags = [f"--layer '{layer_pattern(each['name'])}={each['scheme']}'" for each in plans[chosen]["layers"]]
        lines += wrap_text(f"* is what `tinyfuse quantize` makes with {' '.join(flags)}", "  ")
    return lines


def _row(mark: str, plan: JsonObject, share: bool) -> str:
    instructions = "?" if plan["instructions"] is None else f"{plan['instructions']:,}"
    counts = Counter(layer["scheme"] for layer in plan["layers"])
    bits = ", ".join(f"{scheme}: {count}" for scheme, count in sorted(counts.items())) or "int8 alone"
    over = f"  beyond {', '.join(map(_flag, plan['exceeds']))}" if plan["exceeds"] else ""
    return (
        f"{mark}  {_value(plan['score']['value'], share):>9} {plan['loss']:>7.2f} {plan['ram_bytes']:>9,} "
        f"{instructions:>13} {plan['flash_bytes']:>9,}  {bits}{over}"
    )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _value(value: float, share: bool) -> str:
    return f"{value:.2%}" if share else f"{value:.5g}"
