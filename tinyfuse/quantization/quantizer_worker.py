"""Runs ai-edge-quantizer as a process of its own: it prints, and its interpreter may abort. Started by session.py as a
script, so it imports nothing of tinyfuse.

    python quantizer_worker.py MODEL RECIPE RANGES

MODEL: the path of a float model with a signature. RECIPE: the path of its recipe in JSON. RANGES: "average" or
"full". It answers each line of its input with a line of JSON, {"error": null} where all is well:

    {"calibrate": FILE}                  the samples of a .npz file with an array [n, *shape] for each input's name
    {"quantize": FILE, "recipe": FILE}   writes the quantized model into the first file
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


class Session:
    """A model, and the ranges of its tensors so far."""

    def __init__(self, model: str, recipe: str, ranges: str) -> None:
        from ai_edge_quantizer import calibrator, recipe_manager
        from ai_edge_quantizer.utils import qsv_utils

        self._data = Path(model).read_bytes()
        self._rules = recipe_manager.RecipeManager()
        self._rules.load_quantization_recipe(json.loads(Path(recipe).read_text()))
        update = {"full": {"qsv_update_func": qsv_utils.min_max_update}, "average": {}}[ranges]
        # one thread: sums must not depend on the machine's cores
        self._calibrator = calibrator.Calibrator(
            self._data, num_threads=1,
            mode=calibrator.CalibrationMode.CALIBRATION_PRESERVE_ALL_TENSORS, **update,
        )  # fmt: skip

    def calibrate(self, file: str) -> None:
        """Run the model on a file's samples, and extend the ranges of its values accordingly."""
        with np.load(file, allow_pickle=False) as arrays:
            columns = {name: arrays[f"arr_{i}"] for i, name in enumerate(json.loads(str(arrays["names"])))}
        count = len(next(iter(columns.values())))
        samples = [{name: column[i] for name, column in columns.items()} for i in range(count)]
        self._calibrator.calibrate({"serving_default": samples}, self._rules)

    def quantize(self, file: str, recipe: str) -> None:
        """Writes the model, quantized by a recipe with the ranges found so far."""
        from ai_edge_quantizer import quantizer

        made = quantizer.Quantizer(self._data)
        made.load_quantization_recipe(json.loads(Path(recipe).read_text()))
        ranges = self._calibrator.get_model_qsvs()
        result = made.quantize(ranges, enable_progress_bar=False, enable_progress_report=False)
        Path(file).write_bytes(_with_buffers_inside(bytes(result.quantized_model)))


def _with_buffers_inside(data: bytes) -> bytes:
    """Model file with all constants inside its flatbuffer. The quantizer appends those of larger models after it, where
    TensorFlow Lite Micro does not read."""
    from ai_edge_litert.tools import flatbuffer_utils
    from ai_edge_quantizer.utils import tfl_flatbuffer_utils

    model = tfl_flatbuffer_utils.read_model(data)
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def answer(session: Session | None, request: dict[str, Any], arguments: list[str]) -> Session:
    """Carries out a request. The first one starts the session."""
    session = session or Session(*arguments)
    if "calibrate" in request:
        session.calibrate(request["calibrate"])
    else:
        session.quantize(request["quantize"], request["recipe"])
    return session


def serve(arguments: list[str]) -> None:
    """Answers requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library's own output must not mix with the answers
    session = None
    for line in sys.stdin:
        error = None
        try:
            session = answer(session, json.loads(line), arguments)
        except Exception as wrong:
            error = f"{type(wrong).__name__}: {wrong}"
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1:])
