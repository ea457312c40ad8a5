"""Which kernels serve an operator: look-ups in the lists of tinyfuse/kernels/tables/, in order of preference.

A new kernel is a file in this package and a name in one of those lists. The first of a list that accepts an operator
computes it, unless the cost table finds another surely faster (tinyfuse/schedule/kernel_choice/select.py).
"""

from __future__ import annotations

from functools import cache, lru_cache

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.cmsis.common import CmsisRows
from tinyfuse.kernels.core.each_image import EachImage
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks, lying
from tinyfuse.kernels.tables.elementwise import elementwise_kernels
from tinyfuse.kernels.tables.layers import LAYER_FORMS, LAYERS, layer_dtype
from tinyfuse.kernels.tables.matmul import MATMUL
from tinyfuse.kernels.tables.movement import MOVEMENT
from tinyfuse.kernels.tables.pooling_reduce import POOLING_REDUCE
from tinyfuse.kernels.tables.program import program_kernels
from tinyfuse.kernels.tables.sequence import SEQUENCE
from tinyfuse.ops import FAMILIES


def kernels_of(kind: str) -> tuple[Kernel, ...]:
    """The kernels of an operator kind, the preferred first; those of the families of images for one image."""
    return KERNELS.get(kind, ())


def kernels_for(op: Op) -> tuple[Kernel, ...]:
    """The kernels of `op`'s kind, made fit for it: of a layer those of its dtypes; a batch of images takes those of
    one image in a loop; of images of a single column convolutions may also make several rows a call."""
    kernels = kernels_of(op.kind)
    if op.kind in LAYERS:
        kernels = _of_dtypes(op.kind, layer_dtype(op), op.operand(1).dtype == INT4)
    if FAMILIES[op.kind].one_image and op.output.shape[0] != 1:
        return tuple(EachImage(kernel, FAMILIES[op.kind].image_input) for kernel in kernels)
    if op.kind == "CONV_2D" and lying(op) is not None:
        return (
            *kernels,
            *(ColumnBlocks(k) for k in kernels if k.by_row and not (k.whole or k.indivisible) and k.rows_a_call == 1),
        )
    return (*kernels, *_several_rows(kernels))


@cache
def _of_dtypes(kind: str, dtype: str, int4: bool) -> tuple[Kernel, ...]:
    """Those of a layer's `layer_dtype`, without those of int4 where the weights aren't."""
    return tuple(kernel for kernel in LAYERS[kind].get(dtype, ()) if int4 or not kernel.int4_weights)


@lru_cache
def _several_rows(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Those of CMSIS-NN's in their forms that make several rows a call."""
    rows = [kernel for kernel in kernels if isinstance(kernel, CmsisRows)]
    return tuple(kernel.several(count) for kernel in rows for count in kernel.several_rows)


def element_of(op: Op) -> Element | None:
    """How one element of `op` is computed in registers; None where it can't be a part of a merged loop."""
    kernel = _element_kernel(op) if op.kind not in LAYERS else None  # layers have none
    return kernel.element(op) if kernel is not None else None


@lru_cache(maxsize=2048)
def _element_kernel(op: Op) -> Kernel | None:
    """The kernel that tells."""
    return next((kernel for kernel in kernels_for(op) if kernel.element(op) is not None), None)


#: kind -> kernels; operators that compute nothing at run time (SHAPE, ZEROS_LIKE, VAR_HANDLE, ...) have none
KERNELS: dict[str, tuple[Kernel, ...]] = {
    **elementwise_kernels(element_of, _element_kernel),
    **{kind: tuple(dict.fromkeys(k for kernels in of.values() for k in kernels)) for kind, of in LAYERS.items()},
    **LAYER_FORMS,
    **MATMUL,
    **POOLING_REDUCE,
    **MOVEMENT,
    **SEQUENCE,
    **program_kernels(kernels_for),
}
