"""TFLite_Detection_PostProcess: boxes of an object detector, decoded, sorted, and without those that overlap.

Source: Liu et al. 2016, "SSD: Single Shot MultiBox Detector"; arithmetic and order as TFLM's detection_postprocess.cc.
TFLM sorts all boxes by score and goes down the list; here the best of those that are left is searched each time, which
takes the same boxes in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, double_math, given
from tinyfuse.ops.core.family import OpFamily, Rule


@dataclass(frozen=True)
class Detection:
    """Attributes of TFLite_Detection_PostProcess.

    most            most detections.
    per_box         most classes of a box, unless `by_class`.
    each_class      most detections of a class, if `by_class`.
    classes         number of classes without the background.
    by_class        classes are processed one by one.
    score, overlap  thresholds.
    scales          of y, x, h, w.
    """

    most: int
    per_box: int
    each_class: int
    classes: int
    by_class: bool
    score: float
    overlap: float
    scales: tuple[float, float, float, float]


def _f32(value: float | None) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value or 0.0))


def _int(value: float | None) -> int:
    return int(value) if value is not None and math.isfinite(value) else 0


def _bad_dtype(op: Op) -> Tensor | None:
    return next((t for t in (*op.operands, *op.outputs) if t.dtype != "float32"), None)


def _bad_shape(op: Op) -> Tensor | None:
    boxes, scores, anchors = op.operands
    if len(boxes.shape) != 3 or boxes.shape[0] != 1 or boxes.shape[2] < 4:
        return boxes
    count = boxes.shape[1]
    classes = op.attributes_as(Detection).classes
    if len(scores.shape) != 3 or scores.shape[:2] != (1, count) or scores.shape[2] - classes not in (0, 1):
        return scores
    return None if anchors.shape == (count, 4) else anchors


def _bad_output(op: Op) -> Tensor | None:
    most = op.attributes_as(Detection).most
    sizes = zip(op.outputs, (4 * most, most, most, 1), strict=True)
    return next((t for t, elements in sizes if t.elements != elements), None)


def _bad_number(op: Op) -> bool:
    a = op.attributes_as(Detection)
    finite = all(math.isfinite(scale) and scale != 0 for scale in a.scales) and math.isfinite(a.score)
    return not (finite and 0 < a.overlap <= 1 and a.most >= 1 and a.classes >= 1)


def _several_classes(op: Op) -> bool:
    a = op.attributes_as(Detection)
    return a.each_class < 1 if a.by_class else min(a.per_box, a.classes) != 1


class DetectionFamily(OpFamily):
    """TFLite_Detection_PostProcess. Inputs: boxes [1, N, 4 or more] of y, x, h, w relative to their anchors, scores [1,
    N, C], anchors [N, 4]. Outputs: boxes [1, D, 4] of ymin, xmin, ymax, xmax, classes [1, D], scores [1, D], and the
    number of detections [1]. Elements after the last detection are zeros, as TFLM writes them if classes are processed
    one by one; otherwise TFLM leaves them unwritten."""

    kind = "CUSTOM TFLite_Detection_PostProcess"
    summary = "decodes the boxes of an object detector and drops those that overlap better ones"
    named_options = True
    ulp_of = 1.0
    rules = (
        Rule("three inputs and four outputs",
             lambda op: len(op.inputs) != 3 or len(op.outputs) != 4 or None in op.inputs),
        Rule("inputs and outputs are float32", _bad_dtype,
             "TensorFlow Lite Micro takes no others: put a DEQUANTIZE in front"),
        Rule("boxes are [1, N, 4 or more], scores [1, N, classes, perhaps with a background], and anchors "
             "[N, 4]",
             _bad_shape),
        Rule("one detection or more is asked for, thresholds and scales are numbers, no scale is 0, and the threshold "
             "of overlaps is above 0 and at most 1", _bad_number),
        Rule("a box has one class; where classes are taken one by one, each may have detections", _several_classes,
             "TensorFlow Lite Micro writes beyond its outputs: set max_classes_per_detection to 1"),
        Rule("the outputs hold as many boxes, classes and scores as detections may be, and one number", _bad_output),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Detection:
        o: Mapping[str, float | None] = options
        per_class = o.get("detections_per_class")
        scales = [_f32(o.get(f"{axis}_scale")) for axis in ("y", "x", "h", "w")]
        return Detection(
            most=_int(o.get("max_detections")),
            per_box=_int(o.get("max_classes_per_detection")),
            each_class=100 if per_class is None else _int(per_class),
            classes=_int(o.get("num_classes")),
            by_class=bool(o.get("use_regular_nms")),
            score=_f32(o.get("nms_score_threshold")),
            overlap=_f32(o.get("nms_iou_threshold")),
            scales=(scales[0], scales[1], scales[2], scales[3]),
        )

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        """Anchors that have a size: without one TFLM ends the run."""
        if index != 2 or op.operand(2).is_constant:
            return ()
        places = np.arange(op.operand(2).shape[0])
        at = np.stack([places % 5 / 4, places % 3 / 2], axis=1)
        sizes = (np.stack([0.1 * part + places % 4 / 8, 0.6 / part + 0 * places], axis=1) for part in (1, 2, 3))
        return tuple(np.concatenate([at, size], axis=1).astype(np.float32) for size in sizes)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(Detection)
        boxes = decoded(op, given(inputs[0])[0], given(inputs[2]))
        scores = given(inputs[1])[0][:, -a.classes :]
        found = _by_class(a, boxes, scores) if a.by_class else _by_box(a, boxes, scores)
        places, classes = [[f[i] for f in found] for i in (0, 1)]
        results = [np.zeros(size, np.float32) for size in ((a.most, 4), (a.most,), (a.most,))]
        results[0][: len(found)] = boxes[places]
        results[1][: len(found)] = classes
        results[2][: len(found)] = scores[places, classes]
        every = [*results, np.array([len(found)], np.float32)]
        return tuple(r.reshape(t.shape) for r, t in zip(every, op.outputs, strict=True))

    def settled(self, op: Op, outputs: Sequence[Array]) -> Sequence[Array]:
        if op.attributes_as(Detection).by_class:
            return outputs
        *found, count = (np.array(array) for array in outputs)
        for array in found:
            array.reshape(op.attributes_as(Detection).most, -1)[int(count.reshape(-1)[0]) :] = 0
        return *found, count

    def ulp(self, op: Op) -> int | None:
        return 1  # in units of the last place of 1 (`ulp_of`), because corners are differences


def decoded(op: Op, boxes: Array, anchors: Array) -> Array:
    """Boxes as float32 [N, 4]: ymin, xmin, ymax, xmax; computed in double, except for the last operation."""
    scales = np.array(op.attributes_as(Detection).scales)
    with np.errstate(all="ignore"):
        relative, anchor = boxes[:, :4].astype(np.float64) / scales, anchors.astype(np.float64)
        centers = (relative[:, :2] * anchor[:, 2:] + anchor[:, :2]).astype(np.float32)
        halves = (0.5 * double_math.exp(relative[:, 2:]) * anchor[:, 2:]).astype(np.float32)
        return np.concatenate([centers - halves, centers + halves], axis=1)


def _by_box(a: Detection, boxes: Array, scores: Array) -> list[tuple[int, int]]:
    """(box, class), the best first: each box with its best class."""
    best = scores.argmax(axis=1)
    kept = _without_overlaps(a, boxes, scores[np.arange(len(best)), best], a.most)
    return [(place, int(best[place])) for place in kept]


def _by_class(a: Detection, boxes: Array, scores: Array) -> list[tuple[int, int]]:
    """Return the selected boxes, where a box suppresses only boxes of its own class."""
    found: list[tuple[int, int]] = []
    for number in range(a.classes):
        found += [(place, number) for place in _without_overlaps(a, boxes, scores[:, number], a.each_class)]
        found = sorted(found, key=lambda pair: -float(scores[pair]))[: a.most]
    return found


def _without_overlaps(a: Detection, boxes: Array, scores: Array, most: int) -> Sequence[int]:
    """Return the boxes that non-maximum suppression keeps, the best first; ties keep the input order."""
    left = scores >= np.float32(a.score)
    kept: list[int] = []
    while left.any() and len(kept) < most:
        place = int(np.where(left, scores, np.float32(-np.inf)).argmax()) if left.any() else 0
        place = place if left[place] else int(left.argmax())
        kept.append(place)
        left &= ~(_overlaps(boxes, place) > np.float32(a.overlap))
        left[place] = False
    return kept


def _overlaps(boxes: Array, place: int) -> Array:
    """Intersection over union of each box with box `place`, float32 [N]."""
    with np.errstate(all="ignore"):
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        low, high = np.maximum(boxes[:, :2], boxes[place, :2]), np.minimum(boxes[:, 2:], boxes[place, 2:])
        sides = np.maximum(high - low, np.float32(0))
        common = sides[:, 0] * sides[:, 1]
        found = common / (area[place] + area - common)
    return np.where((area <= 0) | (area[place] <= 0), np.float32(0), found)
