"""Our kernels of operators that take what others have for constants: a part of kernels/registry.py."""

from __future__ import annotations

from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.movement.computed_padding import BatchSpaceAt, MirrorPadAt, PadWith
from tinyfuse.kernels.movement.scatter_gather import SliceFrom
from tinyfuse.kernels.program.computed_layer import computed_layers
from tinyfuse.kernels.sequence.computed_memory import ComputedLstm, ComputedSvdf
from tinyfuse.kernels.sequence.lstm import LstmReal, LstmWhole
from tinyfuse.kernels.sequence.svdf import SvdfActivated, SvdfReal, SvdfWhole

COMPUTED_OPERANDS: dict[str, tuple[Kernel, ...]] = {
    "COMPUTED_LAYER": computed_layers(),
    "SLICE_AT": (SliceFrom(),),
    "COMPUTED_LSTM": (ComputedLstm(LstmWhole("int8")), ComputedLstm(LstmWhole("int16")), ComputedLstm(LstmReal())),
    "COMPUTED_SVDF": (ComputedSvdf(SvdfWhole()), ComputedSvdf(SvdfReal()), ComputedSvdf(SvdfActivated())),
    "PAD_WITH": (PadWith(wide=False), PadWith(wide=True)),
    "MIRROR_PAD_AT": (MirrorPadAt(),),
    "SPACE_TO_BATCH_AT": (BatchSpaceAt("tinyfuse_space_to_batch_at", of_input=True),),
    "BATCH_TO_SPACE_AT": (BatchSpaceAt("tinyfuse_batch_to_space_at", of_input=False),),
}  # fmt: skip
