"""Operators whose padding value, paddings, block shapes, crops or weights are computed at run time. Only
rewrite/computed_operands.py makes them, from operators of the file. So these operands are constants in all other
operators."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.movement.batch_space import BatchToSpaceFamily, SpaceToBatchFamily
from tinyfuse.ops.movement.mirror_pad import MirrorPadFamily
from tinyfuse.ops.movement.pad import PadV2Family
from tinyfuse.ops.sequence.lstm import LstmFamily
from tinyfuse.ops.sequence.svdf import SvdfFamily


class _Computed(OpFamily):
    """Base of operators with operands that are computed at run time. Inputs and output are those of `known`, the family
    of the operator in the file."""

    in_files = False
    known: OpFamily

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return self.known.reference(replace(op, kind=self.known.kind), *inputs)

    def macs(self, op: Op) -> int:
        return self.known.macs(replace(op, kind=self.known.kind))


class PadWithFamily(_Computed):
    """PAD_WITH: PADV2 whose padding value is computed."""

    kind = "PAD_WITH"
    summary = "a value that is computed at run time around a tensor"
    known = PadV2Family()


class MirrorPadAtFamily(_Computed):
    """MIRROR_PAD_AT: MIRROR_PAD whose paddings are computed. Only the padding before a dimension counts. If it is
    negative, or larger than what can be reflected, the run ends with an error; TFLM reads outside the input."""

    kind = "MIRROR_PAD_AT"
    summary = "a tensor continued by its own reflection, as far as a run says"
    known = MirrorPadFamily()


class SpaceToBatchAtFamily(_Computed):
    """SPACE_TO_BATCH_AT: SPACE_TO_BATCH_ND whose block shape and paddings are computed. The run ends with an error if
    the block gives another number of images than the output has, and for negative paddings."""

    kind = "SPACE_TO_BATCH_AT"
    summary = "every row and column that a run says as an image of its own"
    known = SpaceToBatchFamily()


class BatchToSpaceAtFamily(_Computed):
    """BATCH_TO_SPACE_AT: BATCH_TO_SPACE_ND whose block shape or crops are computed. The run ends with an error if the
    block does not match the number of images, or if the crops leave less than the output; TFLM would leave a part of
    the output unwritten."""

    kind = "BATCH_TO_SPACE_AT"
    summary = "images of a batch as every row and column that a run says"
    known = BatchToSpaceFamily()


class ComputedLstmFamily(_Computed):
    """COMPUTED_LSTM: UNIDIRECTIONAL_SEQUENCE_LSTM whose weights or biases are computed."""

    kind = "COMPUTED_LSTM"
    summary = "an LSTM whose weights are computed at run time"
    known = LstmFamily()
    updates = LstmFamily.updates


class ComputedSvdfFamily(_Computed):
    """COMPUTED_SVDF: SVDF whose weights or bias are computed."""

    kind = "COMPUTED_SVDF"
    summary = "an SVDF whose weights are computed at run time"
    known = SvdfFamily()
    updates = SvdfFamily.updates
