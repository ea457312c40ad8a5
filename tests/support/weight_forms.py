"""Float networks whose weights are stored otherwise: int8 that layers read (dynamic range), int8 or float16 behind a
DEQUANTIZE."""

from __future__ import annotations

import numpy as np
from tflite_builder import ModelBuilder

FORMS = ("float32", "dynamic", "weight-only", "float16")


def dense_network(form: str, shared: bool = False, unnamed: bool = False) -> tuple[bytes, dict[str, np.ndarray]]:
    """A file of two dense layers with its weights in one of FORMS, and the float32 weights that these mean, by name.

    shared   both layers read the same weights
    unnamed  all activations have one name
    """
    rng, model = np.random.default_rng(5), ModelBuilder()
    name = (lambda text: "t") if unnamed else (lambda text: text)
    before = first = model.tensor(name("x"), (1, 8), "float32")
    meant: dict[str, np.ndarray] = {}
    weights = -1
    for place in range(2):
        if place == 0 or not shared:
            weights, meant[f"w{place}"] = _weights(model, rng, f"w{place}", form)
        bias = model.tensor(f"b{place}", (8,), "float32", data=rng.standard_normal(8).astype(np.float32))
        output = model.tensor(name(f"y{place}"), (1, 8), "float32")
        model.op(
            "FULLY_CONNECTED", [before, weights, bias], [output], version=1, weights_format="DEFAULT",
            fused_activation_function="RELU" if place == 0 else "NONE", keep_num_dims=False,
        )  # fmt: skip
        before = output
    return model.build([first], [before], metadata={"note": b"kept"}), meant


def _weights(model: ModelBuilder, rng: np.random.Generator, name: str, form: str) -> tuple[int, np.ndarray]:
    """The tensor of 8 by 8 weights that a layer reads, and their values."""
    values = rng.standard_normal((8, 8)).astype(np.float32)
    if form == "float32":
        return model.tensor(name, values.shape, "float32", data=values), values
    if form == "float16":
        halves = values.astype(np.float16)
        stored, meant = model.tensor(f"{name}_half", values.shape, "float16", data=halves), halves.astype(np.float32)
    else:
        scales = (np.abs(values).max(axis=1) / 127).astype(np.float32)
        levels = np.round(values / scales[:, None]).astype(np.int8)
        meant = (scales[:, None].astype(np.float64) * levels).astype(np.float32)
        stored = model.tensor(
            name if form == "dynamic" else f"{name}_levels", values.shape, "int8", scales, data=levels
        )
        if form == "dynamic":
            return stored, meant
    read = model.tensor(name, values.shape, "float32")
    model.op("DEQUANTIZE", [stored], [read])
    return read, meant
