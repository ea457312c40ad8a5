"""Rules on the dtypes of operators that compute, and on the quantization that each dtype requires."""

from __future__ import annotations

from tinyfuse.ir import Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.core.family import Rule


def is_quantized(tensor: Tensor) -> bool:
    """Tell whether the tensor's dtype stores real numbers by a scale and a zero point."""
    return tensor.dtype in RANGE


def computed_dtype(*dtypes: str) -> Rule:
    """Rule that input 0 and output 0 have the same dtype, one of `dtypes`, which are those that TFLM computes in."""
    text = f"have the same dtype, one of {', '.join(dtypes)}" if len(dtypes) > 1 else f"are {dtypes[0]}"
    advice = f"in {' and '.join(dtypes)} alone" if len(dtypes) > 1 else f"in {dtypes[0]} alone"

    def broken(op: Op) -> Tensor | None:
        if op.input.dtype not in dtypes:
            return op.input
        return op.output if op.output.dtype != op.input.dtype else None

    return Rule(f"input and output {text}", broken, f"TensorFlow Lite Micro computes it {advice}")


def _unquantized(op: Op) -> Tensor | None:
    tensors = (tensor for tensor in (op.input, op.output) if is_quantized(tensor))
    return next((t for t in tensors if t.quant is None or t.quant.per_channel), None)


#: rule on the number of scales; that of float32 tensors does not matter, because no operator reads them
ONE_QUANTIZATION = Rule(
    "input and output, unless they are float32, are each quantized by one scale and one zero point", _unquantized
)
