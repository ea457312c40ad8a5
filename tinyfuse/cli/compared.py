"""JSON of a comparison with the oracle, shared by `verify` and `board validate`."""

from __future__ import annotations

from dataclasses import asdict

from tinyfuse.api.results import OutputComparison
from tinyfuse.report.answer import JsonObject


def comparison_json(found: OutputComparison) -> JsonObject:
    """Keys that both answers have."""
    return {
        "oracle": found.oracle,
        "runs": found.runs,
        "frames": found.frames,
        "seed": found.seed,
        "outputs": found.elements,
        "mismatches": found.mismatches,
        "first_mismatch": asdict(found.first_mismatch) if found.first_mismatch else None,
        "problems": list(found.problems),
        "exact": found.exact,
        "unproven": found.unproven,
        "within_bound": found.within_bound,
        "max_ulp": found.max_ulp,
        "max_step": found.max_step,
        "operator_bounds": {name: {"ulp": ulp, "bound": most} for name, (ulp, most) in found.operator_bounds.items()},
    }
