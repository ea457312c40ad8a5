"""Models with a program for the Ethos-U NPU, laid out as Vela lays them out."""

from __future__ import annotations

import numpy as np
from tflite_builder import ModelBuilder

SCRATCH, FAST, IMAGE_AT, RESULT_AT = 200, 48, 32, 112
COMMANDS, WEIGHTS = np.arange(24, dtype=np.uint8), np.arange(100, 140, dtype=np.uint8)
SHAPE, RESULT = (1, 4, 4, 2), (1, 8)


def npu_model(
    fast: bool = True,
    image_at: int = IMAGE_AT,
    options: bytes = b"\1\4\1",
    metadata: bytes | None = None,
    inputs: int | None = None,
    scratch_dtype: str = "uint8",
) -> bytes:
    """HARD_SWISH, an NPU program that makes 8 values of 32, HARD_SWISH. `inputs`: number of the program's inputs to
    keep."""
    model = ModelBuilder()
    x, y = (model.tensor(name, SHAPE, scale=0.5, zero_point=3) for name in "xy")
    a, b = (model.tensor(name, RESULT, scale=0.5, zero_point=3) for name in "ab")
    commands = model.tensor("commands", COMMANDS.shape, "uint8", data=COMMANDS)
    weights = model.tensor("weights", WEIGHTS.shape, "uint8", data=WEIGHTS)
    scratch = model.tensor("scratch", (SCRATCH,), scratch_dtype)
    second = model.tensor("scratch_fast", (FAST if fast else SCRATCH,), "uint8")
    model.op("HARD_SWISH", [x], [y])
    given = [commands, weights, scratch, second, y][:inputs]
    model.op("CUSTOM", given, [a], custom_code="ethos-u", custom_options=options)
    model.op("HARD_SWISH", [a], [b])
    offsets = {y: 16 + image_at, a: 16 + RESULT_AT, scratch: 16, second: 400 if fast else 16}
    numbers = [0, 0, 8, *(offsets.get(tensor, -1) for tensor in range(8))]
    told = np.array(numbers, "<i4").tobytes() if metadata is None else metadata
    return model.build([x], [b], metadata={"OfflineMemoryAllocation": told})
