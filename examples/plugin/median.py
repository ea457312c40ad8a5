"""A plugin: the median of three values as one operator, for instance of three frames of a sensor that now and then
reports nonsense.

TensorFlow Lite has no such operator. A converter writes two MINIMUMs and two MAXIMUMs, each of which goes through all
values; the pattern below, which has three inputs and reads two of them twice, puts MEDIAN_OF_THREE in their place.
Where other elementwise operators follow, it is computed in one loop with them.
"""

from pathlib import Path

import numpy as np

from tinyfuse.plugin import (
    SAME_ROW,
    Call,
    Element,
    Input,
    Kernel,
    Operator,
    OpFamily,
    Pattern,
    Plugin,
    Rule,
    element_count,
    input_pointer,
)


class MedianRow(Kernel):
    """A row, or the whole tensor; over any of its inputs."""

    name = "median_of_three_s8"
    headers = ("median.h",)
    folder = Path(__file__).parent
    by_row, whole, rings = True, True, True
    in_place = (0, 1, 2)

    def element(self, op):
        return Element("median_of_three", "choices", prefix="", fours=False)

    def call(self, op, site, context):
        pointers = (input_pointer(site, index) for index in range(3))
        return (Call(self.name, (*pointers, site.outputs[0].pointer, element_count(op.output, site))),)


class MedianOfThree(OpFamily):
    kind = "MEDIAN_OF_THREE"
    summary = "the median of three values, element by element"
    in_files = False
    rows_alike = True
    rules = (
        Rule("three int8 inputs and one output, of one shape and one quantization",
             lambda op: len(op.inputs) != 3 or len(op.outputs) != 1
             or len({(t.dtype, t.shape, t.quant) for t in (*op.inputs, op.output)}) != 1 or op.output.dtype != "int8"),
    )  # fmt: skip
    kernels = (MedianRow(),)

    def reference(self, op, *inputs):
        return (np.sort(np.stack(inputs), axis=0)[1],)

    def row_window(self, op, index):
        return SAME_ROW if op.output.is_image else None


A, B, C = Input(), Input(), Input()
LOWER, UPPER = Operator("MINIMUM", A, B), Operator("MAXIMUM", A, B)

PLUGIN = Plugin(
    operators=(MedianOfThree(),),
    patterns=(
        Pattern(
            name="median of three",
            match=Operator("MAXIMUM", LOWER, Operator("MINIMUM", UPPER, C)),
            kind="MEDIAN_OF_THREE",
        ),
    ),
)
