"""Makes tests/support/onnx_models: networks of twin_networks.py that torch.onnx exports and onnxruntime quantizes.

Needs torch 2.13, onnx and onnxruntime: python tests/support/make_onnx_models.py FOLDER [NAME ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from twin_networks import NETWORKS, calibration, network


class _Inputs(CalibrationDataReader):
    def __init__(self, name: str):
        self.left: Iterator[torch.Tensor] = iter(calibration(name))

    def get_next(self) -> dict[str, np.ndarray] | None:
        x = next(self.left, None)
        return None if x is None else {"x": x.numpy()}


def main(folder: str, *names: str) -> None:
    for name in names or NETWORKS:
        plain, quantized = Path(folder, f"{name}_float.onnx"), Path(folder, f"{name}.onnx")
        inputs = (calibration(name)[0],)
        torch.onnx.export(network(name), inputs, plain, dynamo=False, input_names=["x"])
        quantize_static(
            plain, quantized, _Inputs(name), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        plain.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
