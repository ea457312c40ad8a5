"""The intermediate representation: graphs of operators and tensors, and the fixed-point arithmetic that both
references and kernels mean."""

from tinyfuse.ir.arrays import Array, Float64s, Int64s, all_given, given
from tinyfuse.ir.graph import (
    FLOAT16,
    INT4,
    ITEM_BYTES,
    MAX_TENSOR_BYTES,
    Digest,
    EstimateMark,
    Graph,
    Layouts,
    Op,
    OwnWindow,
    Quant,
    Saving,
    Tensor,
    Window,
    quoted,
    type_text,
)

__all__ = [
    "FLOAT16",
    "INT4",
    "ITEM_BYTES",
    "MAX_TENSOR_BYTES",
    "Array",
    "Digest",
    "EstimateMark",
    "Float64s",
    "Graph",
    "Int64s",
    "Layouts",
    "Op",
    "OwnWindow",
    "Quant",
    "Saving",
    "Tensor",
    "Window",
    "all_given",
    "given",
    "quoted",
    "type_text",
]
