"""What the readers of ONNX and ExecuTorch files share: refusals, and constants that they make."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Quant, Tensor


class Refused(Exception):
    """An operator of a file that can't be converted: what is wrong, what to do, and the tensor that it concerns."""

    def __init__(self, message: str, hint: str, tensor: str | None = None):
        super().__init__(message)
        self.message, self.hint, self.tensor = message, hint, tensor


def constant_tensor(name: str, array: Array, quant: Quant | None = None) -> Tensor:
    """A constant tensor with those values."""
    data = np.asarray(array, order="C")
    data.setflags(write=False)
    return Tensor(name, data.shape, str(data.dtype), quant, data)
