"""Kernels of operators that move elements and compute nothing from them, in order of preference."""

from __future__ import annotations

from tinyfuse.kernels.cmsis.movement import CmsisPad, CmsisTranspose
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.movement import scatter_gather
from tinyfuse.kernels.movement.batch_space import BatchSpace, BatchSpaceAt
from tinyfuse.kernels.movement.concatenation import BlockCopies
from tinyfuse.kernels.movement.copies import Copy, CopyConstant, IndexedCopy, Indexes, StridedCopy
from tinyfuse.kernels.movement.pad import PADS, MirrorPadAt, PadWith
from tinyfuse.kernels.movement.planes import TO_PLANES, TO_ROWS
from tinyfuse.kernels.movement.resize_bilinear import bilinear_kernels
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.movement import Movement
from tinyfuse.ops.movement.mirror_pad import mirror_indexes
from tinyfuse.ops.movement.resize import bilinear_places, nearest_indexes, real_places


def _indexed(indexes: Indexes) -> tuple[Kernel, ...]:
    return IndexedCopy(indexes, by_row=True), IndexedCopy(indexes, by_row=False)


_MOVED = {
    kind: (StridedCopy(family.data_input, family.views),)
    for kind, family in FAMILIES.items()
    if isinstance(family, Movement)
}

#: kind -> kernels
MOVEMENT: dict[str, tuple[Kernel, ...]] = {
    **_MOVED,
    "RESHAPE": (Copy(),),
    "SQUEEZE": (Copy(),),
    "EXPAND_DIMS": (Copy(),),
    "PAD": (*PADS, CmsisPad()),
    "PADV2": (*PADS, CmsisPad()),
    "MIRROR_PAD": _indexed(mirror_indexes),
    "RESIZE_NEAREST_NEIGHBOR": _indexed(nearest_indexes),
    "RESIZE_BILINEAR": (
        *bilinear_kernels(bilinear_places, "int8"), *bilinear_kernels(real_places, "float32"),
    ),
    "SPACE_TO_BATCH_ND": (BatchSpace("tinyfuse_space_to_batch"),),
    "BATCH_TO_SPACE_ND": (BatchSpace("tinyfuse_batch_to_space"),),
    "GATHER": (scatter_gather.GatherSlices(),),
    "GATHER_ND": (scatter_gather.GatherNd(),),
    "EMBEDDING_LOOKUP": (scatter_gather.EmbeddingLookup(), scatter_gather.EmbeddingLookupF32()),
    "DYNAMIC_UPDATE_SLICE": (scatter_gather.UpdateSlice(),),
    "SCATTER_ND": tuple(map(scatter_gather.ScatterNd, scatter_gather.SCATTERED)),
    "ONE_HOT": (scatter_gather.OneHot(),),
    "REVERSE_SEQUENCE": (scatter_gather.ReverseSequence(),),
    "CONCATENATION": (BlockCopies(by_row=True),),
    "PACK": (BlockCopies(by_row=False),),
    "TRANSPOSE": (*_MOVED["TRANSPOSE"], CmsisTranspose()),
    "CONSTANT_OUTPUT": (CopyConstant(),),
    "BROADCAST_ARGS": (scatter_gather.BroadcastArgs(),),
    "UPDATE_STATE": (scatter_gather.UpdateStateSlice(),),
    "PLANES_TO_ROWS": TO_ROWS,
    "ROWS_TO_PLANES": TO_PLANES,
    "SLICE_AT": (scatter_gather.SliceAt(),),
    "PAD_WITH": (PadWith(wide=False), PadWith(wide=True)),
    "MIRROR_PAD_AT": (MirrorPadAt(),),
    "SPACE_TO_BATCH_AT": (BatchSpaceAt("tinyfuse_space_to_batch_at", of_input=True),),
    "BATCH_TO_SPACE_AT": (BatchSpaceAt("tinyfuse_batch_to_space_at", of_input=False),),
}  # fmt: skip
