"""TFLite_Detection_PostProcess: by box and by class, with and without a background, few and many detections."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import constant, f32, operator, tensor
from tinyfuse.ir import Op
from tinyfuse.ops.program.detection import Detection

KIND = "CUSTOM TFLite_Detection_PostProcess"


def _detection(
    boxes: int,
    classes: int,
    most: int = 5,
    by_class: bool = False,
    background: int = 1,
    coordinates: int = 4,
    score: float = -10.0,
    overlap: float = 0.3,
    each_class: int = 100,
) -> Op:
    rng = np.random.default_rng(boxes + classes)
    anchors = np.concatenate([rng.uniform(0, 1, (boxes, 2)), rng.uniform(0.1, 0.6, (boxes, 2))], axis=1)
    inputs = [
        tensor((1, boxes, coordinates), None, dtype="float32"),
        tensor((1, boxes, classes + background), None, dtype="float32"),
        constant(anchors.astype(np.float32)),
    ]
    shapes = (1, most, 4), (1, most), (1, most), (1,)
    attributes = Detection(most, 1, each_class, classes, by_class, f32(score), f32(overlap), (10.0, 9.5, 5.0, 4.0))
    return operator(KIND, inputs, [tensor(shape, None, dtype="float32") for shape in shapes], attributes)


NAMED = {
    KIND: {
        "by box": _detection(20, 3),
        "by box, no background": _detection(7, 2, background=0),
        "more coordinates": _detection(9, 2, coordinates=7),
        "one class": _detection(12, 1, overlap=1.0),
        "more than there are": _detection(6, 2, most=9, overlap=0.9),
        "above a threshold": _detection(30, 4, most=20, score=1.25),
        "by class": _detection(20, 3, by_class=True),
        "by class, few of each": _detection(15, 4, most=12, by_class=True, each_class=2),
        "by class, no background": _detection(8, 2, by_class=True, background=0, overlap=0.05),
        "by class, above a threshold": _detection(25, 3, most=30, by_class=True, score=0.5),
        "merged beyond what is kept": _detection(40, 6, most=4, by_class=True, overlap=0.8),
        "many": _detection(120, 3, most=10),
    }
}


@st.composite
def _random(draw) -> Op:
    return _detection(
        draw(st.integers(1, 40)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 12)),
        draw(st.booleans()),
        draw(st.integers(0, 1)),
        draw(st.integers(4, 6)),
        draw(st.sampled_from([-10.0, 0.0, 0.5])),
        draw(st.sampled_from([0.1, 0.5, 1.0])),
        draw(st.integers(1, 6)),
    )


RANDOM = {KIND: _random()}
