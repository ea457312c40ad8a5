"""Base class of operator families: the interface that every file of tinyfuse/ops implements.

A family (`OpFamily`) defines the meaning of an operator: how its options are read, the rules that it must meet, its
exact integer reference in numpy, its cost in multiply-accumulates, and its row window. How it is computed in C is
defined in tinyfuse/kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinyfuse.errors import Problem
from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.once import hashed_once
from tinyfuse.ops.core.permute import Order, broadcast_permuted

# --- rules -----------------------------------------------------------------------------------

#: hint of rules that have none of their own
_HINT = "convert the model again with full integer (int8) quantization; the converter then keeps this"


@dataclass(frozen=True)
class Rule:
    """One condition that an operator must meet.

    `broken(op)` returns the offending Tensor, or True, if the rule is broken; None or False if it holds. It is called
    only if every rule before it in the family holds, so a rule may rely on those. `of_kernel`: the rule is a limit of
    TFLM's kernel, not of `OpFamily.reference`; it is not checked for operators that compute shapes.
    """

    text: str
    broken: Callable[[Op], Tensor | bool | None]
    hint: str | None = None
    of_kernel: bool = False

    def problem(self, op: Op) -> Problem | None:
        found = self.broken(op)
        if found is None or found is False:
            return None
        tensor = str(found) if isinstance(found, Tensor) else None
        return Problem(self.text, operator=str(op), tensor=tensor, hint=self.hint or _HINT)


# --- row streaming ---------------------------------------------------------------------------


@hashed_once
@dataclass(frozen=True)
class RowWindow:
    """The input rows that output row y reads: rows y*stride - pad_top to y*stride - pad_top + kernel - 1.

    `kernel` counts rows from the first tap to the last, dilation included. Rows below 0, and from the tensor's height
    on, are padding. If `spread` is not 1, the window slides over the input with spread - 1 empty rows after each of its
    rows (a fractional stride). The window counts these rows too, and input row r is at r * spread.
    """

    kernel: int
    stride: int = 1
    pad_top: int = 0
    spread: int = 1

    @property
    def leaves_rows_out(self) -> bool:
        """Tell whether some rows between two consecutive windows are never read."""
        return self.stride > self.kernel or self.pad_top < 0

    def first(self, y: int) -> int:
        """First row inside the image that output row y reads."""
        return self._rows_before(y, 0)

    def needed(self, y: int, height: int) -> int:
        """Return how many input rows, from row 0, must exist before output row y can be computed."""
        return min(height, self._rows_before(y, self.kernel))

    def reach(self, y: int) -> tuple[int, int]:
        """(start, end): the input rows from start to end - 1 that the window of output row y covers, rows outside the
        image included."""
        start, end = (y * self.stride + self._round_up(place) for place in (0, self.kernel))
        return start // self.spread, end // self.spread

    def first_c(self, row: str) -> str:
        """`first` as a C expression, of an int32_t expression that is not negative."""
        first = self._rows_before_c(row, 0)
        return f"tinyfuse_max({first}, 0)" if self._round_up(0) < 0 and self.stride else first

    def needed_c(self, row: str, height: int) -> str:
        """`needed` as a C expression, of an int32_t expression that is not negative."""
        return f"tinyfuse_rows_within({self._rows_before_c(row, self.kernel)}, {height})"

    def _rows_before(self, y: int, place: int) -> int:
        """Return how many input rows lie before position `place` of output row y's window."""
        return max(0, (y * self.stride + self._round_up(place)) // self.spread)

    def _rows_before_c(self, row: str, place: int) -> str:
        """Return `_rows_before` as a C expression. Where `_rows_before` is 0, its value may be negative, because C
        divides towards zero."""
        if self.stride == 0:
            return str(self._rows_before(0, place))
        least, text = self._round_up(place), row if self.stride == 1 else f"{row} * {self.stride}"
        if least:
            text = f"{text} {'-' if least < 0 else '+'} {abs(least)}"
        if self.spread > 1:
            text = f"({text}) / {self.spread}"
        return text

    def _round_up(self, place: int) -> int:
        """Return the number to add to y * stride so that division by `spread` counts the rows before `place`."""
        return place - self.pad_top + self.spread - 1

    @staticmethod
    def over(rows: Sequence[tuple[int, int]], stride: int = 1, spread: int = 1) -> RowWindow:
        """Smallest window with this stride and spread that covers the (first, last) input row of every output row."""
        pad_top = max(y * stride - first * spread for y, (first, _) in enumerate(rows))
        below = max(last * spread - y * stride for y, (_, last) in enumerate(rows))
        return RowWindow(below + pad_top + 1, stride, pad_top, spread)


#: the window of an elementwise or 1x1 operator
SAME_ROW = RowWindow(1)

# --- tensors inside others -------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Statement that the bytes of `part` are a contiguous piece of those of `whole`, from byte `offset` on."""

    part: Tensor
    whole: Tensor
    offset: int


# --- shapes that files leave open ------------------------------------------------------------


def open_as_inputs(op: Op, output: Tensor) -> tuple[int, ...]:
    """Shape of an output with its open dimensions closed: each gets the size that it has in the activations of the same
    rank (the largest, because smaller ones broadcast). If no activation has this rank, an open batch gets the size of
    the first activation's."""
    shape = list(output.shape)
    for axis in output.open_axes:
        alike = [tensor.shape[axis] for tensor in op.activations if len(tensor.shape) == len(shape)]
        if alike:
            shape[axis] = max(alike)
        elif axis == 0 and op.activations and 0 in op.first_activation.open_axes:
            shape[axis] = op.first_activation.shape[0]
    return tuple(shape)


def constant_numbers(op: Op, index: int) -> list[int] | None:
    """Values of input `index`, a constant vector of integers; None if it is missing, computed, or something else."""
    tensor = op.optional(index)
    good = tensor is not None and tensor.data is not None and tensor.dtype in ("int32", "int64")
    return None if tensor is None or not good or len(tensor.shape) != 1 else [int(n) for n in tensor.values.tolist()]


# --- operators -------------------------------------------------------------------------------


#: dtypes of values with scales of their own; the scales of wider dtypes (biases) follow from other tensors' scales
_SCALED = ("int4", "int8", "uint8", "int16")


class OpFamily(ABC):
    """Description of one operator kind (the schema's name): its traits, rules, exact reference and row windows.

    Code that depends on a property of operators reads these traits and never compares kinds
    (tests/unit/test_operator_traits.py), so that a new operator needs no change elsewhere.
    """

    kind: str
    summary: str  # what it computes, for users: a phrase of one line (`tinyfuse operators`)
    rules: tuple[Rule, ...] = ()

    # in files
    in_files: bool = True  # False: model files never contain it, only rewrites make it
    in_tflm: bool = True  # False: TFLM has no kernel; LiteRT's reference kernel defines the result
    options_table: str | None = None  # the schema's table of its options, if any option is read
    #: sorted keys of the FlexBuffer map with a custom operator's options; None if the options are no FlexBuffer or are
    #: not read
    option_keys: tuple[str, ...] | None = None
    #: the options of a custom operator are a FlexBuffer map of numbers, each read by its key, all of them optional
    named_options: bool = False

    # origin and readers of its outputs
    alias: bool = False  # always a view: the output is the same bytes as input 0 with another shape
    source: bool = False  # it reads nothing: the caller passes the output row by row
    divides: bool = False  # operators before it in a graph run more often than operators after it
    partial: bool = False  # the output is large, and only the next operator reads it, so it is never whole in RAM

    # states, and variables of a file
    updates: tuple[int, ...] = ()  # indexes of inputs that are states and that a run changes
    reads: tuple[int, ...] = ()  # indexes of inputs that may be states and that are only read
    #: indexes of inputs that rewrite/read_states.py may replace by states: kernels read them where they are in memory
    from_states: tuple[int, ...] = ()
    resource: bool = False  # in a file its input 0 is a variable's handle
    #: in a file its output is a variable that it keeps; in our graphs it has a state, and its output is a copy of that
    keeps_output: bool = False

    # time and place of its computation
    folds: bool = True  # if its inputs are constants, it is computed when the model is compiled
    folded: bool = False  # always computed when the model is compiled (rewrite/fold_constants.py), so it has no kernel
    reads_values: bool = True  # False: the outputs depend only on the inputs' shapes
    runs_here: bool = True  # False: an accelerator runs it, so it has no reference and no kernel for the CPU

    # in a uint8 model (tinyfuse/frontend/uint8.py)
    computes_uint8: bool = False  # LiteRT computes uint8 as TFLM does int8, or frontend/uint8.py has a rule for it
    converts: bool = False  # it changes how numbers are stored, not the numbers
    takes_uint8: bool = False  # it only moves or converts elements; not needed if `moves` says so

    # dependence of its output elements
    elementwise: bool = False  # each output element depends only on the same element of input 0
    pointwise: bool = (
        False  # each output element depends on the elements at its position of the inputs, which broadcast
    )
    rows_alike: bool = False  # with row windows: all output rows are computed in the same way
    one_image: bool = False  # each image of a batch is computed independently
    image_input: int = 0  # index of the input that holds the images
    sums: bool = False  # each output element is a sum, or a mean, of elements of input 0
    reduces: bool = False  # some dimensions of input 0 become one value each; its attributes are a Reducer
    extreme: str = ""  # kind that combines the results of two parts of a window, or of reduced dimensions: MAXIMUM, ...
    pools: bool = False  # each output value lies between stored values of its own channel
    #: index of a constant that has one entry per channel in dimension 0, if output channel c depends only on input
    #: channel c and on entry c
    channel_constant: int | None = None
    transposes: bool = False  # the output has the elements of input 0 with the dimensions in another order
    pads: bool = False  # it adds rows, columns, ... of one stored value around input 0; input 1 has their numbers

    # arithmetic in combination with other operators
    commutes: bool = False  # for integers, the order of its two inputs does not matter
    affine: bool = False  # with a constant operand, it scales or shifts the other operand
    fused_as: str | None = None  # name of the fused activation that this operator is equal to

    # layers, which have weights
    data_and_weights: tuple[int, int] | None = None  # indexes of the inputs that are data and weights
    #: indexes of inputs whose scale may be 0 if they are constant: the scale is a factor of a multiplier, or not read
    zero_scales: tuple[int, ...] = ()
    #: for a layer (inputs 0 to 2 are data, weights and bias; each output channel is a sum plus its bias, requantized
    #: and clamped): the dimension of the weights that counts output channels; None for other operators
    channel_axis: int | None = None
    convolution: bool = False  # a layer whose weights slide over an image; its attributes are a Conv2D
    depthwise: bool = False  # a layer whose output channels read one input channel each

    def attributes(self, options: Mapping[str, Any]) -> object:
        """Frozen dataclass with the operator's attributes; None if it has none.

        `options` is the file's option table: it maps snake_case names to numbers or, for enumerations, to the schema's
        names ("SAME", "RELU6"). An absent table is an empty mapping, and a file may leave any field out: use the
        schema's default. A custom operator gets "custom_options", bytes (by convention a FlexBuffer); with
        `option_keys` the integers of that map by their keys; with `named_options` its numbers.
        """
        return None

    def updated(self, op: Op) -> tuple[int, ...]:
        """Indexes of the inputs of this operator that are states and that a run changes."""
        return self.updates

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        """States that the operator keeps although the file has no tensors for them. The reader, which calls this before
        any rule is checked, appends them to the operator's inputs."""
        return ()

    def instead(self, op: Op) -> Mapping[int, Tensor]:
        """Constants that replace inputs, by the inputs' indexes, because TFLM never reads these. The reader, which
        calls this before any rule is checked, puts them there."""
        return {}

    @property
    def puts_constants(self) -> bool:
        """Tell whether `instead` may return constants."""
        return type(self).instead is not OpFamily.instead

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        """Shape of an output that the file leaves open, computed from the inputs' shapes and constants. None if these
        do not determine it; then the file's shape is used. rewrite/fold_constants.py calls this before any rule is
        checked."""
        return open_as_inputs(op, output)

    def computing(self, op: Op) -> Op | None:
        """Return the operator of ours that takes computed operands where `op`, which meets the rules, needs constants.

        Return None if `op` has no such computed operand.
        """
        return None

    @abstractmethod
    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        """Exact outputs, with TFLM's arithmetic, for `inputs` in the order of op.inputs (constants included), with the
        shapes and dtypes of op's tensors. After the outputs come the new values of the states in `updates`. `inputs`
        are not changed."""

    def reference_beside(self, op: Op, outputs: Sequence[Array], *inputs: Array | None) -> tuple[Array, ...]:
        """`reference` for a comparison with an interpreter's `outputs`. An operator that continues from its own earlier
        results continues from `outputs` instead, so that a difference in the last bits does not accumulate."""
        return self.reference(op, *inputs)

    def settled(self, op: Op, outputs: Sequence[Array]) -> Sequence[Array]:
        """An interpreter's outputs, with the parts that it leaves unwritten filled in as `reference` computes them."""
        return outputs

    def warning(self, op: Op) -> str | None:
        """Return a warning for users, one sentence, about an operator that meets the rules; None if there is none."""
        return None

    def awaits(self, op: Op) -> bool:
        """Tell whether some runs end at this operator without a result, because the model waits for more inputs."""
        return False

    def ends_run(self, op: Op, results: Sequence[Array]) -> bool:
        """Tell whether a run ends at an operator that `awaits`, given the `results` of `reference`."""
        return False

    def ulp(self, op: Op) -> int | None:
        """Return the largest difference of float32 results from the interpreter's on the same inputs, in units of the
        last place.

        Only for operators that call functions of libm, whose rounding no standard defines. None if arithmetic defines
        every bit.
        """
        return None

    #: least magnitude whose unit in the last place counts for `ulp`: smaller results, which are differences of larger
    #: numbers, are compared in units of this one
    ulp_of: float = 0.0

    def macs(self, op: Op) -> int:
        """Multiply-accumulates of one inference; 0 for operators that have none."""
        return 0

    def moves(self, op: Op) -> tuple[int, ...]:
        """Return the inputs whose elements the operator copies unchanged to its outputs; () if it computes."""
        return (0,) if self.alias else ()

    def unusable_scale(self, op: Op) -> Tensor | None:
        """First constant input whose scale is 0, if the operator cannot compute with that; else None. It may be called
        before any rule is checked."""
        for i, tensor in enumerate(op.inputs):
            if tensor is None or not tensor.is_constant or tensor.quant is None or 0.0 not in tensor.quant.scale:
                continue
            if tensor.dtype in _SCALED and i not in (*self.zero_scales, *self.moves(op)):
                return tensor
        return None

    def passes_channels(self, op: Op) -> bool:
        """Tell whether output channel c depends on channel c of input 0 alone, for every c."""
        if self.alias:
            # only for a vector with another shape; other tensors would be divided into channels in another way
            return op.input.shape[-1:] == op.output.shape[-1:] == (op.input.elements,)
        return self.pools

    def sums_channels(self, op: Op) -> bool:
        """Tell whether each output channel of a layer is a sum over all channels of input 0, which are the last
        dimension of the weights."""
        return False

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        """Return the (least, greatest) value with which the operator is tested, if input `index` holds indexes that a
        run computes.

        Other values end the run with an error, or act like the nearest of these. None for any other input.
        """
        return None

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        """Return the values with which the operator is tested, if a run computes input `index` and its elements only
        make sense together, such as axes. () for any other input.
        """
        return ()

    def parts(self, op: Op) -> tuple[Part, ...]:
        """Return the parts of an operator that only moves elements: outputs that are pieces of an input, or inputs that
        are pieces of the output.

        Return () if any of them would not be contiguous. The result may list inputs that cannot share memory: a
        constant, or an input used twice.
        """
        return (Part(op.output, op.input, 0),) if self.alias else ()

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        """Return the rows of input `index` that an output row reads, for an output [1, H, W, C].

        Return None if an output row needs the whole input, or there are no rows.
        """
        return None

    def slide_window(self, op: Op, index: int) -> RowWindow | None:
        """Return the rows of input `index` that an output row reads, also for operators that no kernel computes by
        rows. `--slide` uses it."""
        if self.alias:
            return _regrouped(op.operand(index), op.output)
        return SAME_ROW if self.by_vectors(op) and index == 0 else self.row_window(op, index)

    def by_vectors(self, op: Op) -> bool:
        """Tell whether each vector along the output's last dimension depends only on the vector of input 0 at the same
        position."""
        return False

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        """Operator that computes only some adjacent output rows, `output` [1, n, W, C], from `inputs` that contain
        just the rows that these read. None if no operator does that, or if rows are computed in different ways.

        first         number of the first of these output rows
        above, below  number of input rows of their windows that lie outside the image
        """
        if above or below:
            return None
        if self.alias:
            return Op("RESHAPE", inputs[:1], (output,), index=op.index)
        if self.by_vectors(op):
            return replace(op, inputs=inputs, outputs=(output,))
        if not self.rows_alike or any(t is not None and _has_rows(t) for t in op.inputs):
            return None
        return replace(op, inputs=inputs, outputs=(output,))

    def of_sums(self, op: Op, sums: Tensor, output: Tensor) -> Op | None:
        """Return the operator that makes `output` [1, 1, 1, n] from `sums` [1, 1, 1, n] over all rows of the input [1,
        H, W, C].

        Only for operators that add up all rows in any order. Sum j adds the stored values numbered j, j + n, j + 2n,
        ... of each row. None if no operator computes that.
        """
        return None

    def with_axes_swapped(self, op: Op, inputs: tuple[Tensor | None, ...]) -> Op | None:
        """Operator with rows and columns swapped: it reads `inputs` [1, W, H, C] instead of inputs [1, H, W, C]; the
        caller swaps the dimensions of its output. None if no operator computes that."""
        return None

    def permuted(self, op: Op, order: Order) -> Op | None:
        """The operator with the dimensions of all its activations and outputs in another order, as after a TRANSPOSE;
        the caller replaces these tensors. None if the operator has no such form. All activations and outputs must have
        the rank of `order`."""
        free = self.pointwise or (self.elementwise and len(op.inputs) == 1)
        return broadcast_permuted(op, order) if free and len(op.outputs) == 1 else None


def _regrouped(source: Tensor, output: Tensor) -> RowWindow | None:
    """Return the window that relates rows of two images with the same bytes: several source rows make one output
    row."""
    if not (source.is_image and output.is_image) or source.shape[1] % max(1, output.shape[1]):
        return None
    rows = source.shape[1] // output.shape[1]
    return RowWindow(rows, rows)


def _has_rows(tensor: Tensor) -> bool:
    """Tell whether a constant operand, broadcast to an image, differs by image row."""
    return tensor.is_constant and len(tensor.shape) >= 3 and tensor.shape[-3] > 1
