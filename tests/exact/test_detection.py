"""TFLite_Detection_PostProcess at a model's end: of int8 and of uint8, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases.common import flexbuffer, model_of, options_of
from cases.detection import KIND, NAMED
from executors import plan_of
from flatbuffers import flexbuffers
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import double_math

OP = NAMED[KIND]["by box"]


def detector(dtype: str, options: bytes | None = None) -> bytes:
    """A detection of 20 boxes from two tensors: int8 with DEQUANTIZE, or uint8. Scores are clamped first, so that a
    kernel computes."""
    model, rng = ModelBuilder(), np.random.default_rng(3)
    zero = 128 if dtype == "uint8" else 0
    shapes, scales = ((1, 20, 4), (1, 20, 4)), (0.05, 0.02)
    stored = [model.tensor(f"x{i}", s, dtype, scales[i], zero) for i, s in enumerate(shapes)]
    clamped = model.tensor("clamped", shapes[1], dtype, scales[1], zero)
    model.op("RELU", [stored[1]], [clamped])
    inputs = [stored[0], clamped]
    if dtype == "int8":
        inputs = [model.tensor(f"f{i}", s, "float32") for i, s in enumerate(shapes)]
        for source, result in zip((stored[0], clamped), inputs, strict=True):
            model.op("DEQUANTIZE", [source], [result])
        anchors = model.tensor("anchors", (20, 4), "float32", data=OP.inputs[2].data)
    else:
        anchors = model.tensor(
            "anchors", (20, 4), dtype, 1 / 200, 3, data=rng.integers(30, 200, (20, 4)).astype(np.uint8)
        )
    outputs = [model.tensor(f"y{i}", t.shape, "float32") for i, t in enumerate(OP.outputs)]
    model.op("CUSTOM", [*inputs, anchors], outputs, table=False, custom_code=KIND.removeprefix("CUSTOM "),
             custom_options=flexbuffer(options_of(OP)) if options is None else options)  # fmt: skip
    return model.build(stored, outputs)


def test_an_int8_detector_is_verified(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector("int8"))
    found = tinyfuse.compile(path, "host").verify(runs=8)
    assert (found.exact, found.problems) == (True, ())


def test_a_uint8_detector_is_refused() -> None:
    """LiteRT takes it, but dequantizes by vectors of the machine, whose last bits differ from its scalar code's."""
    with pytest.raises(CompileError, match="not supported on uint8"):
        read_tflite("m.tflite", detector("uint8"))


def test_exp_of_doubles() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-745, 709, 2000), rng.normal(0, 1, 2000), [0.0, -0.0, 710.0, -746.0, np.inf, -np.inf]]
    )
    with np.errstate(over="ignore"):
        wanted = np.exp(x)
    normal = wanted > 1e-300
    np.testing.assert_allclose(double_math.exp(x)[normal], wanted[normal], rtol=2**-51)
    assert double_math.exp(x[-4:]).tolist() == [np.inf, 0.0, np.inf, 0.0]
    assert np.isnan(double_math.exp(np.array([np.nan]))[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_detections": 6}, "hold as many boxes"),
        ({"max_detections": 0}, "one detection or more"),
        ({"max_detections": float("inf")}, "one detection or more"),
        ({"max_classes_per_detection": 2}, "a box has one class"),
        ({"num_classes": 5}, "perhaps with a background"),
        ({"num_classes": 2**31}, "perhaps with a background"),
        ({"nms_iou_threshold": 0.0}, "threshold of overlaps"),
        ({"nms_iou_threshold": 1.5}, "threshold of overlaps"),
        ({"nms_score_threshold": float("nan")}, "thresholds and scales are numbers"),
        ({"y_scale": 0.0}, "no scale is 0"),
        ({"h_scale": float("inf")}, "thresholds and scales are numbers"),
        ({"use_regular_nms": True, "detections_per_class": 0}, "each may have detections"),
    ],
)
def test_options_that_make_no_sense_are_refused(change: dict[str, float], message: str) -> None:
    data = detector("int8", flexbuffer(options_of(OP) | change))
    with pytest.raises(CompileError, match=message):
        plan_of(data)


@pytest.mark.parametrize("written", [5, [1, 2], {"max_detections": "many"}, {"max_detections": [5]}])
def test_options_that_are_no_numbers_are_refused(written) -> None:
    with pytest.raises(CompileError, match="its options: "):
        read_tflite("m.tflite", detector("int8", bytes(flexbuffers.Dumps(written))))


def test_absent_options_are_0() -> None:
    with pytest.raises(CompileError, match="perhaps with a background"):
        plan_of(detector("int8", b""))


def test_quantized_inputs_are_refused_as_in_tflm() -> None:
    stored = replace(OP, inputs=(replace(OP.input, dtype="int8"), *OP.inputs[1:]))
    with pytest.raises(CompileError, match="inputs and outputs are float32"):
        plan_of(model_of(stored))
