"""The page of `tinyfuse blame --html`: bars along the layers, as one file without a script."""

from __future__ import annotations

import math

from tinyfuse.blame.text import decibels_text, percent_text, worst_text
from tinyfuse.emit.render import render
from tinyfuse.html_report.names import make_visible
from tinyfuse.html_report.page import content_hash
from tinyfuse.report.answer import JsonObject
from tinyfuse.resources import resource_dir

#: decibels that fill a bar
_FULL_DECIBELS = 60.0
_BAR = 120


def blame_page(data: JsonObject) -> str:
    """HTML page for the JSON of `tinyfuse blame`; equal data give equal text. A content security policy allows only the
    page's own style, and nothing to be loaded."""
    style = (resource_dir("templates") / "report" / "style.css").read_text(encoding="utf-8")
    rows = [_row(layer, place in data["worst"]) for place, layer in enumerate(data["layers"])]
    context = {
        "data": {**data, "model": make_visible(data["model"]), "float_model": make_visible(data["float_model"])},
        "rows": rows,
        "worst": [make_visible(worst_text(data["layers"], place)) for place in data["worst"]],
        "warnings": [make_visible(warning) for warning in data["warnings"]],
        "snr": decibels_text(data["snr_db"]),
        "style": style,
        "policy": f"default-src 'none'; style-src '{content_hash(style)}'; base-uri 'none'",
        "bar": _BAR,
    }
    return render("report/blame.html.j2", context)


def _row(layer: JsonObject, is_bad: bool) -> JsonObject:
    weights = layer["weights"]
    return {
        "kind": layer["kind"],
        "name": make_visible(layer["tensor"]),
        "dtype": layer["dtype"],
        "snr": decibels_text(layer["snr_db"]),
        "snr_width": _width(layer["snr_db"]),
        "own": decibels_text(layer["own_snr_db"]),
        "own_width": _width(layer["own_snr_db"]),
        "share": percent_text(layer["share"]),
        "share_width": round(_BAR * layer["share"], 1),
        "saturated": percent_text(layer["saturated"]),
        "used": "-" if layer["range_used"] is None else percent_text(layer["range_used"]),
        "levels": "-" if layer["levels"] is None else f"{layer['levels_used']:,} of {layer['levels']:,}",
        "spread": "-" if weights is None else _times(weights["spread"]),
        "scales": "" if weights is None else _scales(weights),
        "is_bad": is_bad,
    }


def _scales(weights: JsonObject) -> str:
    return f"{weights['channels']} channels, {'a scale each' if weights['per_channel'] else 'one scale'}"


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 100 else f"{factor:.3g} times"


def _width(decibels: float | None) -> float:
    value = _FULL_DECIBELS if decibels is None else decibels
    return 0.0 if math.isnan(value) else round(_BAR * min(1.0, max(0.0, value / _FULL_DECIBELS)), 1)
