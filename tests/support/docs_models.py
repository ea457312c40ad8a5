"""Small models that stand in for those of the documentation pages, under their names there."""

from __future__ import annotations

import numpy as np
from nchw_networks import planes
from random_graphs import Sketch
from sliding_models import wake_word
from stream_models import add_svdf
from test_plugin import standard
from tflite_builder import ModelBuilder


def image_classifier(size: int = 12) -> bytes:
    """An image "input_1", two convolutions, a depthwise one, and "Identity": the names in MLPerf Tiny's kws."""
    sketch = Sketch(5)
    x = sketch.value((1, size, size, 1), 0.1, -3, name="input_1")
    y = sketch.conv(x, 8, (3, 3), stride=(2, 2), activation="RELU")
    z = sketch.depthwise(y, (3, 3), activation="RELU")
    scores = sketch.fully_connected(sketch.conv(z, 8, (1, 1), activation="RELU"), 4)
    out = sketch.value((1, 4), 1 / 256, -128, name="Identity")
    sketch.model.op("SOFTMAX", [scores.index], [out.index], beta=1.0)
    return sketch.build([x], [out])


def keyword_stream() -> bytes:
    """A frame of features "input_1", an SVDF with state, and "Identity"."""
    model = ModelBuilder()
    x = model.tensor("input_1", (1, 8), scale=0.1, zero_point=-3)
    y = add_svdf(model, x, 0.1, (1, 8, 4, 1, 5), "int8", "svdf", 0.02, 7)
    out = model.tensor("Identity", (1, 4), scale=1 / 256, zero_point=-128)
    model.op("SOFTMAX", [y], [out], beta=1.0)
    return model.build([x], [out])


def write_models(folder) -> None:
    """Writes the files that a page's commands expect in their folder."""
    for name in ("kws.tflite", "model.tflite", "net.tflite"):
        (folder / name).write_bytes(image_classifier())
    (folder / "wakeword.tflite").write_bytes(wake_word())
    (folder / "stream.tflite").write_bytes(keyword_stream())
    (folder / "shufflenet.tflite").write_bytes(standard())
    (folder / "planes.tflite").write_bytes(planes())
    np.save(folder / "x.npy", np.random.default_rng(1).integers(-128, 128, (3, 12, 12, 1)).astype(np.int8))
