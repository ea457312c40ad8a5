"""The intermediate representation: graphs of operators and tensors, and the fixed-point arithmetic that both
references and kernels mean."""

from tinyfuse.ir.graph import (
    ITEM_BYTES,
    Graph,
    Op,
    Quant,
    Saving,
    Tensor,
    quoted,
)

__all__ = [
    "ITEM_BYTES",
    "Graph",
    "Op",
    "Quant",
    "Saving",
    "Tensor",
    "quoted",
]
