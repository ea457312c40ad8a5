"""A plugin: the channel shuffle of ShuffleNet as one operator that streams rows.

TensorFlow Lite has no such operator. Converters write RESHAPE, TRANSPOSE, RESHAPE, which copies the whole
tensor and needs it twice; the pattern below puts CHANNEL_SHUFFLE in their place. Programs that have one as
a custom operator of that name get it too.
"""

from dataclasses import dataclass
from pathlib import Path

from flatbuffers import flexbuffers

from tinyfuse.plugin import SAME_ROW, Call, Kernel, OpFamily, Pattern, Plugin, Rule, chain, element_count, input_pointer


@dataclass(frozen=True)
class ChannelShuffle:
    groups: int


class ShuffleRow(Kernel):
    """A row, or the whole tensor."""

    name = "channel_shuffle_s8"
    headers = ("channel_shuffle.h",)
    folder = Path(__file__).parent
    by_row, whole, rings = True, True, True

    def call(self, op, site, context):
        channels = op.output.shape[-1]
        pixels = element_count(op.output, site) // channels
        groups = op.attributes.groups
        arguments = (input_pointer(site, 0), site.outputs[0].pointer, pixels, groups, channels // groups)
        return (Call(self.name, arguments),)


class ChannelShuffleOperator(OpFamily):
    kind = "CHANNEL_SHUFFLE"
    summary = "channels dealt out over groups"
    in_files = False
    rows_alike = True
    rules = (
        Rule("one int8 input and one int8 output of one shape",
             lambda op: len(op.inputs) != 1 or len(op.outputs) != 1
             or (op.input.dtype, op.output.dtype) != ("int8", "int8") or op.input.shape != op.output.shape),
        Rule("the groups divide the channels",
             lambda op: op.input if op.input.shape[-1] % op.attributes.groups else None),
        Rule("input and output have one quantization",
             lambda op: op.output if op.input.quant != op.output.quant else None),
    )  # fmt: skip
    kernels = (ShuffleRow(),)

    def reference(self, op, *inputs):
        groups = op.attributes.groups
        dealt = inputs[0].reshape(*inputs[0].shape[:-1], groups, -1)
        return (dealt.swapaxes(-1, -2).reshape(inputs[0].shape),)

    def row_window(self, op, index):
        return SAME_ROW if op.output.is_image else None


class CustomChannelShuffle(ChannelShuffleOperator):
    kind = "CUSTOM ChannelShuffle"

    def attributes(self, options):
        return ChannelShuffle(flexbuffers.Loads(options["custom_options"])["groups"])


def _deals_channels(ops) -> bool:
    first, transpose, last = ops
    *outer, groups, size = first.output.shape
    rank = len(outer) + 2
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return (
        first.input.is_image
        and first.input.dtype == "int8"
        and last.output.shape == first.input.shape
        and groups * size == first.input.shape[-1]
        and transpose.inputs[1].data.tolist() == swapped
    )


PLUGIN = Plugin(
    operators=(ChannelShuffleOperator(), CustomChannelShuffle()),
    patterns=(
        Pattern(
            name="channel shuffle",
            match=chain("RESHAPE", "TRANSPOSE", "RESHAPE"),
            kind="CHANNEL_SHUFFLE",
            condition=_deals_channels,
            attributes=lambda ops: ChannelShuffle(ops[0].output.shape[-2]),
        ),
    ),
)
