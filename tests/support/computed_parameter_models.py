"""Models with parameters that are computed at run time: weights and biases of LSTM and SVDF, anchors of detections,
tables of signal operators. {name: bytes of a .tflite file, or a function that returns them}."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import stream_models
from cases import NAMED
from cases.common import model_of
from tflite_builder import ModelBuilder


def computing(make: Callable[[], bytes], *words: str) -> bytes:
    """The model that `make` builds, with inputs instead of constants whose names contain one of these words."""

    class Computing(ModelBuilder):
        def tensor(self, name, *args, data=None, **fields):
            given = data is not None and any(word in name for word in words)
            made = super().tensor(name, *args, data=None if given else data, **fields)
            self.given = [*getattr(self, "given", []), *([made] if given else [])]
            return made

        def build(self, inputs, outputs, **fields):
            return super().build([*inputs, *self.given], outputs, **fields)

    with patch.object(stream_models, "ModelBuilder", Computing):
        return make()


def lstm(dtype: str, *words: str, **how) -> bytes:
    return computing(lambda: stream_models.lstm((2, 3, 5), 4, dtype=dtype, **how), *words)


def svdf(state: str, *words: str) -> bytes:
    return computing(lambda: stream_models.svdf(state, (2, 5, 3, 2, 4), 0.02), *words)


def real_svdf(activation: str, *words: str) -> bytes:
    return computing(lambda: stream_models.real_svdf((2, 5, 3, 2, 4), activation), *words)


MEMORY = {
    "lstm int8, all": lambda: lstm("int8", "lstm"),
    "lstm int8, weights of inputs": lambda: lstm("int8", "0.012"),
    "lstm int8, one bias": lambda: lstm("int8", "cell_bias", time_major=True),
    "lstm int16, all": lambda: lstm("int16", "lstm"),
    "lstm int16, one weight": lambda: lstm("int16", "forget_0.02"),
    "lstm float32, all": lambda: lstm("float32", "lstm"),
    "lstm float32, biases": lambda: lstm("float32", "bias"),
    "svdf int16, all": lambda: svdf("int16", "svdf"),
    "svdf int16, time": lambda: svdf("int16", "time"),
    "svdf int8, features": lambda: svdf("int8", "features"),
    "svdf int8, bias": lambda: svdf("int8", "bias"),
    "svdf float32": lambda: real_svdf("RELU", "features", "bias"),
    "svdf float32, tanh": lambda: real_svdf("TANH", "time"),
}


_TABLES = {
    "CUSTOM SignalWindow": [(1,)], "CUSTOM SignalPCAN": [(2,)], "CUSTOM TFLite_Detection_PostProcess": [(2,)],
    "CUSTOM SignalFilterBank": [(1,), (2, 3), (4,), (5,), (1, 2, 3, 4, 5)],
}  # fmt: skip
TABLES = {
    f"{kind}, {name}, inputs {places}": model_of(
        replace(op, inputs=tuple(replace(t, data=None) if i in places else t for i, t in enumerate(op.inputs)))
    )
    for kind, all_places in _TABLES.items()
    for places in all_places
    for name, op in list(NAMED[kind].items())[:2]
}
