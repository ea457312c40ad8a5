"""Output of `tinyfuse blame`: JSON, and lines for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tinyfuse.blame.blame import Blame
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.wrapping import wrap_text

#: columns of the bar of a layer's share
_BAR = 16
#: decibels that int16 must gain to be advised
_LEAST_GAIN = 1.0


def blame_json(blame: Blame) -> JsonObject:
    """JSON of a blame, with the keys of docs/json.md."""
    layers = []
    for layer in blame.layers:
        told = asdict(layer)
        if layer.weights is not None:
            told["weights"]["spread"] = layer.weights.spread
        layers.append(told)
    return {
        "samples": blame.samples,
        "snr_db": blame.snr_db,
        "layers": layers,
        "worst": list(blame.worst),
        "unmatched": list(blame.unmatched),
        "warnings": list(blame.warnings),
    }


def blame_lines(data: JsonObject) -> list[str]:
    """Lines for people: a table with a row per layer, then the worst layers in words."""
    lines = [
        f"{data['model']} beside {data['float_model']}, {data['samples']} samples: "
        f"signal to noise of the outputs {decibels_text(data['snr_db'])}",
        "",
        f"{'layer':<44} {'SNR':>6} {'own':>6} {'share':>7}  {'':<{_BAR}} {'beyond':>7} {'range':>6} {'levels':>6}",
    ]
    for layer in data["layers"]:
        bar = "#" * round(_BAR * layer["share"])
        lines.append(
            f"{_shortened(layer['operator'], 44):<44} {_number(layer['snr_db']):>6} {_number(layer['own_snr_db']):>6} "
            f"{percent_text(layer['share']):>7}  {bar:<{_BAR}} {percent_text(layer['saturated']):>7} "
            f"{'-' if layer['range_used'] is None else percent_text(min(9.99, layer['range_used'])):>6} "
            f"{'-' if layer['levels_used'] is None else layer['levels_used']:>6}"
        )
    lines += ["", *wrap_text(
        "SNR: signal to noise of the layer's output in dB; own: of the error that the layer adds itself; share: of the "
        "error at the outputs that the layers cause one by one; beyond: float values outside its range; range: part "
        "of it that float values fill; levels: stored values that occurred.", "")]  # fmt: skip
    for number, place in enumerate(data["worst"], start=1):
        lines += ["", *wrap_text(worst_text(data["layers"], place), "   ", f"{number}. ")]
    for warning in data["warnings"]:
        lines += ["", *wrap_text(f"warning: {warning}", "  ")]
    return lines


def worst_text(layers: list[JsonObject], place: int) -> str:
    """Description of a bad layer: the damage, its cause, and what int16 would change."""
    layer = layers[place]
    more = sum(each["share"] for each in layers if each["due_to"] == layer["tensor"])
    by_others = f", and {percent_text(more)} by layers that its channels spoil" if more else ""
    text = f"{layer['operator']}: {percent_text(layer['share'])} of the error at the outputs{by_others}. "
    advice = f"{layer['advice'][:1].upper()}{layer['advice'][1:]}."
    return f"{text}{advice}{_int16_text(layer)}"


def _int16_text(layer: JsonObject) -> str:
    cost: dict[str, Any] | None = layer["int16"]
    if cost is None:
        return ""
    flags = " ".join(f"--layer '{layer_pattern(name)}=int16x8'" for name in cost["layers"])
    readers = " and its readers" if len(cost["layers"]) > 1 else ""
    instructions = "" if cost["instructions"] is None else f"{cost['instructions']:+,} instructions, "
    price = f"{instructions}{cost['ram_bytes']:+,} bytes of RAM"
    before, after = cost["int8_snr_db"], cost["snr_db"]
    if before is not None and after is not None and after < before + _LEAST_GAIN:
        return f" Int16 for it{readers} would not help ({price}: {decibels_text(before)}, then {decibels_text(after)})."
    return (
        f" In int16 it{readers} would take {price}, and the outputs' signal to noise go from {decibels_text(before)} "
        f"to {decibels_text(after)}: tinyfuse quantize {flags}."
    )


def layer_pattern(name: str) -> str:
    """Pattern for --layer that matches a layer by the start of its name: converters join the names of fused operators,
    and the first one is enough."""
    first, joined, _ = name.partition(";")
    return f"{first};*" if joined else name


def decibels_text(value: float | None) -> str:
    """Text of a ratio in decibels, or "no error"."""
    return "without an error" if value is None else f"{value:.1f} dB"


def percent_text(value: float) -> str:
    """Text of a share in percent."""
    percent = 100 * value
    if percent == 0 or percent >= 10:
        return f"{percent:.0f} %"
    return f"{percent:.1f} %" if percent >= 0.1 else "<0.1 %"


def _number(value: float | None) -> str:
    return "exact" if value is None else f"{value:.1f}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
