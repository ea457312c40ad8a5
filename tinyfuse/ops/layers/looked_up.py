"""LOOKED_UP: a convolution with a fused activation table, made only by schedule/variants/fold_lookups.py.

Each output is replaced by its entry in a table, or in its channel's table, before it is stored. The result is that of
the convolution followed by the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.convolution import Conv2D, clamp_range, geometry
from tinyfuse.ops.core.family import OpFamily, RowWindow
from tinyfuse.ops.elementwise.table import TABLE_VALUES, Table


@dataclass(frozen=True)
class LookedUp:
    """Attributes of a layer with a fused lookup table.

    kinds         kinds of the layer and of the operators that its table replaces
    layer, table  both operators; the layer without a clamp
    """

    kinds: tuple[str, ...]
    layer: Op = field(repr=False)
    table: Op = field(repr=False)


def looked_up(layer: Op, last: Op, results: Array) -> Op:
    """LOOKED_UP for a layer and its only reader, a function of one value. `results`: int8 [256] or [channels, 256], the
    function's results for TABLE_VALUES. Its inputs are the layer's and these results, which include the layer's
    clamp."""
    table = last.attributes if isinstance(last.attributes, Table) else Table((last.kind,))
    data = np.ascontiguousarray(results[..., np.clip(TABLE_VALUES, *clamp_range(layer)).view(np.uint8)])
    constant = Tensor(f"{last.output.name} (table)", data.shape, "int8", None, data)
    kind = "TABLE" if data.ndim == 1 else "CHANNEL_TABLES"
    layer = replace(layer, attributes=replace(layer.attributes_as(Conv2D), activation="NONE", clamp=None))
    attributes = LookedUp((layer.kind, *table.kinds), layer, Op(kind, (layer.output, constant), last.outputs, table))
    return Op(LookedUpFamily.kind, (*layer.inputs, constant), last.outputs, attributes, last.index)


class LookedUpFamily(OpFamily):
    """LOOKED_UP: an int8 convolution or depthwise convolution with a fused lookup table. It can run by rows."""

    kind = "LOOKED_UP"
    summary = "a convolution whose outputs are looked up in tables"
    in_files = False

    def __init__(self, compute: Callable[..., tuple[Array, ...]], macs: Callable[[Op], int]) -> None:
        """`compute`: function from an operator and its inputs to its outputs, the reference of its family; `macs`:
        function that returns its multiply-accumulates."""
        self._compute, self._macs = compute, macs

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(LookedUp)
        (between,) = self._compute(a.layer, *inputs[:-1])
        return self._compute(a.table, between, given(inputs[-1]))

    def macs(self, op: Op) -> int:
        return self._macs(op.attributes_as(LookedUp).layer)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return geometry(op.attributes_as(LookedUp).layer).window if index == 0 else None
