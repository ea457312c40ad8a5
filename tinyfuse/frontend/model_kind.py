"""Describes in one sentence what kind of model a refused file holds. Most refusals have one cause, which would
otherwise be repeated for every operator."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.errors import Problem
from tinyfuse.frontend.file_formats import SETTINGS
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES

#: prefix of a custom operator's name -> (kind of file, what to do): programs for accelerators, and loops that the
#: converter left to TensorFlow
_COMPILED = {
    "FlexTensorList": (
        "a model with TensorFlow's lists of tensors (SELECT_TF_OPS), as Keras 3's recurrent layers become",
        "give the network a fixed batch, keras.Input(batch_shape=(1, ...)), and convert with built-in operators; for "
        "int8 build the layer with unroll=True, or all of it with TF_USE_LEGACY_KERAS=1 in the environment (tf-keras)",
    ),
    "edgetpu-custom-op": (
        "a program for Google's Edge TPU, which edgetpu_compiler made",
        "give tinyfuse the file that edgetpu_compiler was given: its name lacks _edgetpu",
    ),
    "NeutronGraph": (
        "a program for NXP's eIQ Neutron NPU, which neutron-converter made",
        "give tinyfuse the file that neutron-converter was given",
    ),
    "XC_": (
        "a program for XMOS's xcore, which the converter of xmos-ai-tools made",
        "give tinyfuse the file that xmos-ai-tools was given",
    ),
}
_AGAIN = (
    f"quantize it: tinyfuse quantize MODEL --data INPUTS (docs/quantize.md); or convert the float model with {SETTINGS}"
)
#: (dtype of the data, dtype of the weights) -> kind of model; TFLM doesn't run these either
_SORTS = {
    ("float32", "int8"): "a dynamic-range quantized model: its weights are int8, its data float32",
    ("float32", "uint8"): "a dynamic-range quantized model: its weights are uint8, its data float32",
}


def compiled_for_another(ops: Sequence[Op]) -> Problem | None:
    """Return the single problem of a file that another compiler made for its accelerator; None for others."""
    for op in ops:
        for name, (what, hint) in _COMPILED.items():
            if op.kind.startswith(f"CUSTOM {name}"):
                return Problem(f"this file is {what}", operator=str(op), hint=hint)
    return None


def sort_of(ops: Sequence[Op]) -> Problem | None:
    """Return the problem of a model whose operators have dtypes that no kernel takes; None for others."""
    made = {t: op for op in ops for t in op.outputs}
    pairs = [pair for op in ops if (pair := _dtypes(op, made)) is not None]
    others = [pair for pair in pairs if pair in _SORTS]
    if others:
        what = _SORTS[max(others, key=others.count)]
        if len(others) == len(pairs):
            return Problem(f"this is {what}", hint=_AGAIN)
        share = f"{len(others)} of its {len(pairs)} layers are those of {what}"
        return Problem(f"this model is only partly quantized in one way: {share}", hint=_AGAIN)
    return None


def _dtypes(op: Op, made: dict[Tensor, Op]) -> tuple[str, str] | None:
    """Return (data dtype, weight dtype) of an operator with weights; weights behind a DEQUANTIZE count as stored
    in the file."""
    family = FAMILIES.get(op.kind)
    if family is None or family.data_and_weights is None:
        return None
    data, weights = (op.optional(i) for i in family.data_and_weights)
    if data is None or weights is None:
        return None
    maker = made.get(weights)
    if maker is not None and maker.kind == "DEQUANTIZE":
        weights = maker.optional(0) or weights
    return data.dtype, weights.dtype
