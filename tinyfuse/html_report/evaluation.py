"""The page of `evaluate --html`: score, confusion matrix, classes, worst mistakes and thresholds. It has no script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tinyfuse import __version__
from tinyfuse.emit.render import render
from tinyfuse.evaluate.metrics import is_share
from tinyfuse.evaluate.result import Evaluation, Mistake, Threshold
from tinyfuse.evaluate.statistics import Score
from tinyfuse.html_report.names import make_visible
from tinyfuse.html_report.page import content_hash
from tinyfuse.html_report.pictures import png_uri
from tinyfuse.ir import Array
from tinyfuse.report.answer import JsonObject
from tinyfuse.resources import resource_dir

#: classes up to which the matrix is drawn
_MATRIX = 48
#: size of the chart, and its borders
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BELOW, _ABOVE = 620, 280, 54, 24, 34, 14
#: sides of a picture of a mistake, at least
_PICTURE = 120


def evaluation_page(found: Evaluation, name: str, about: str, pictures: Mapping[int, Array]) -> str:
    """HTML page of an evaluation; equal arguments give equal text.

    name, about  the module's name, and a line on model and data.
    pictures     pictures of samples, uint8 [H, W] or [H, W, 3] (pictures.py).

    A content security policy in the page allows only its own style, and nothing to be loaded.
    """
    folder = resource_dir("templates") / "report"
    style = "".join((folder / file).read_text(encoding="utf-8") for file in ("style.css", "evaluation.css"))
    names = [make_visible(each.name) for each in found.classes]
    matrix = _matrix(found, names)
    mistakes = [_mistake(each, names, pictures) for each in found.mistakes]
    chart = _chart(found.thresholds)
    sections = (
        ("score", "Score", True), ("matrix", "Matrix", matrix), ("classes", "Classes", found.classes),
        ("mistakes", "Mistakes", mistakes), ("thresholds", "Thresholds", chart),
    )  # fmt: skip
    context: dict[str, Any] = {
        "policy": f"default-src 'none'; img-src data:; style-src '{content_hash(style)}'; base-uri 'none'",
        "version": __version__,
        "style": style,
        "name": make_visible(name),
        "about": make_visible(about),
        "metric": make_visible(found.metric),
        "found": found,
        "warnings": [*_failures(found), *found.warnings],
        "sections": [(place, text) for place, text, shown in sections if shown],
        "cards": _cards(found),
        "names": names,
        "matrix": matrix,
        "classes": found.classes,
        "mistakes": mistakes,
        "chart": chart,
        "foot": f"tinyfuse {__version__}; ran on {found.emulator}, compiled by {found.compiler} -{found.compiler_opt}",
        "visible": make_visible,
        "percent": _percent,
    }
    return render("report/evaluation.html.j2", context)


def _failures(found: Evaluation) -> list[str]:
    failures = []
    if found.faulty:
        failures.append(
            f"{found.differing:,} samples differ from {found.oracle}, the first is {found.first_difference}: "
            "a fault of tinyfuse"
        )
    if not found.passed:
        failures.append("the metric is beyond --at-least or --at-most")
    return failures


def _cards(found: Evaluation) -> list[JsonObject]:
    cards = [
        _card("Generated code", found.score, found.metric, ""),
        _card("Interpreter", found.interpreter, found.metric, f"{found.oracle}; {_equality(found)}"),
    ]
    if found.float_model is not None:
        agreement = "" if found.agreement is None else f"; same best class for {found.agreement:.2%}"
        cards.append(_card("Float model", found.float_model, found.metric, f"{found.float_by}{agreement}"))
    return cards


def _equality(found: Evaluation) -> str:
    if found.differing:
        return f"{found.differing:,} samples differ"
    return "our own references: unproven" if found.unproven else "every output byte equal"


def _card(label: str, score: Score, metric: str, more: str) -> JsonObject:
    shown: Callable[[float], str] = (lambda v: f"{v:.2%}") if is_share(metric) else (lambda v: f"{v:.5g}")
    interval = ""
    if score.low is not None and score.high is not None:
        interval = f"{shown(score.low)} to {shown(score.high)} with 95 % confidence"
    return {"label": label, "value": shown(score.value), "more": "; ".join(filter(None, (interval, more)))}


def _matrix(found: Evaluation, names: list[str]) -> list[JsonObject]:
    if not found.confusion or len(names) > _MATRIX:
        return []
    return [
        {"name": name, "cells": [_cell(count, sum(row), place == column) for column, count in enumerate(row)]}
        for place, (name, row) in enumerate(zip(names, found.confusion, strict=True))
    ]


def _cell(count: int, total: int, right: bool) -> JsonObject:
    if not count:
        return {"kind": "none", "text": "0" if right else ""}
    return {"kind": f"{'r' if right else 'w'}{1 + min(3, 4 * count // (total + 1))}", "text": f"{count:,}"}


def _mistake(each: Mistake, names: list[str], pictures: Mapping[int, Array]) -> JsonObject:
    pixels = pictures.get(each.sample)
    data: JsonObject = {
        "sample": each.sample, "label": names[each.label], "predicted": names[each.predicted],
        "label_score": f"{each.label_score:.3g}", "predicted_score": f"{each.predicted_score:.3g}", "picture": None,
    }  # fmt: skip
    if pixels is not None:
        times = max(1, -(-_PICTURE // max(pixels.shape[:2])))
        data |= {"picture": png_uri(pixels), "width": pixels.shape[1] * times, "height": pixels.shape[0] * times}
    return data


def _chart(thresholds: tuple[Threshold, ...]) -> JsonObject | None:
    """Curves over thresholds, as paths of SVG."""
    if len(thresholds) < 2 or thresholds[0].threshold == thresholds[-1].threshold:
        return None
    detection = any(each.hits is not None or each.false_alarms is not None for each in thresholds)
    if detection:
        lead = "Samples whose score of class 1 is at least the threshold count as class 1, all others as class 0."
        curves = [
            ("accuracy", [each.accuracy for each in thresholds]),
            ("class 1 found", [each.hits for each in thresholds]),
            ("false alarms", [each.false_alarms for each in thresholds]),
        ]
    else:
        lead = "Only samples whose best score is at least the threshold get a prediction."
        curves = [
            ("accuracy of the answered", [each.accuracy for each in thresholds]),
            ("answered", [each.answered for each in thresholds]),
        ]
    low, high = thresholds[0].threshold, thresholds[-1].threshold

    def across(threshold: float) -> float:
        return _LEFT + (threshold - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    points = [across(each.threshold) for each in thresholds]
    return {
        "lead": lead,
        "width": _WIDTH,
        "height": _HEIGHT,
        "grid": [*_share_lines(), *_threshold_lines(low, high, across)],
        "curves": [{"name": name, "path": _path(points, values)} for name, values in curves],
        "rows": [
            {"threshold": f"{each.threshold:.3g}", "shares": [values[place] for _, values in curves]}
            for place, each in enumerate(thresholds)
        ],
    }


def _down(share: float) -> float:
    return _ABOVE + (1 - share) * (_HEIGHT - _ABOVE - _BELOW)


def _path(points: list[float], values: list[float | None]) -> str:
    known = [(x, _down(value)) for x, value in zip(points, values, strict=True) if value is not None]
    return " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(known))


def _share_lines() -> list[JsonObject]:
    return [
        {
            "path": f"M{_LEFT} {_down(share):.1f} H{_WIDTH - _RIGHT}", "text": f"{share:.0%}", "x": _LEFT - 6,
            "y": f"{_down(share) + 4:.1f}", "anchor": "end",
        }
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]  # fmt: skip


def _threshold_lines(low: float, high: float, across: Callable[[float], float]) -> list[JsonObject]:
    return [
        {
            "path": f"M{across(at):.1f} {_HEIGHT - _BELOW} v5", "text": f"{at:.3g}", "x": f"{across(at):.1f}",
            "y": _HEIGHT - 12, "anchor": "middle",
        }
        for at in (low + (high - low) * part / 5 for part in range(6))
    ]  # fmt: skip


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
