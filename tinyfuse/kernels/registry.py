"""Finds the kernels of an operator in the lists of tinyfuse/kernels/tables/, in order of preference.

A new kernel is a file in this package and a name in one of those lists. The first kernel of a list that accepts an
operator computes it, unless the cost table says that another is surely faster
(tinyfuse/schedule/kernel_choice/select.py).
"""

from __future__ import annotations

from functools import cache, lru_cache

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.cmsis.common import CmsisRows
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.core.wrapper import EachImage
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks, columns_as_rows
from tinyfuse.kernels.tables.elementwise import elementwise_kernels
from tinyfuse.kernels.tables.layers import LAYER_FORMS, LAYERS, layer_dtype
from tinyfuse.kernels.tables.matmul import MATMUL
from tinyfuse.kernels.tables.movement import MOVEMENT
from tinyfuse.kernels.tables.pooling_reduce import POOLING_REDUCE
from tinyfuse.kernels.tables.program import program_kernels
from tinyfuse.kernels.tables.sequence import SEQUENCE
from tinyfuse.ops import FAMILIES


def kernels_of(kind: str) -> tuple[Kernel, ...]:
    """Kernels of an operator kind, the preferred first. Kernels of image operators are for one image."""
    return KERNELS.get(kind, ())


def kernels_for(op: Op) -> tuple[Kernel, ...]:
    """Kernels for `op`, the preferred first: for a layer, those of its dtypes; for a batch of images, those of one
    image in a loop; for a convolution of images with a single column, also forms that make several rows a call."""
    kernels = kernels_of(op.kind)
    if op.kind in LAYERS:
        kernels = _of_dtypes(op.kind, layer_dtype(op), op.operand(1).dtype == INT4)
    if FAMILIES[op.kind].one_image and op.output.shape[0] != 1:
        return tuple(EachImage(kernel, FAMILIES[op.kind].image_input) for kernel in kernels)
    if op.kind == "CONV_2D" and columns_as_rows(op) is not None:
        return (
            *kernels,
            *(ColumnBlocks(k) for k in kernels if k.by_row and not (k.whole or k.indivisible) and k.rows_a_call == 1),
        )
    return (*kernels, *_several_rows(kernels))


@cache
def _of_dtypes(kind: str, dtype: str, int4: bool) -> tuple[Kernel, ...]:
    """Kernels of a layer's `layer_dtype`; those with int4 weights only if `int4`."""
    return tuple(kernel for kernel in LAYERS[kind].get(dtype, ()) if int4 or not kernel.int4_weights)


@lru_cache
def _several_rows(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """CMSIS-NN's kernels, each in the forms that compute several rows per call."""
    rows = [kernel for kernel in kernels if isinstance(kernel, CmsisRows)]
    return tuple(kernel.several(count) for kernel in rows for count in kernel.several_rows)


def element_of(op: Op) -> Element | None:
    """Function that computes one element of `op` in registers; None if `op` cannot be part of a fused loop."""
    kernel = _element_kernel(op) if op.kind not in LAYERS else None  # no layer has a function of one element
    return kernel.element(op) if kernel is not None else None


@lru_cache(maxsize=2048)
def _element_kernel(op: Op) -> Kernel | None:
    """First kernel of `op` that has a C function of one element; None if there is none."""
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
