"""The graph of a model: quantization, tensors, operators and the graph itself, all frozen.

Tensors and operators compare by identity: two tensors with equal fields are still two tensors. Rewrites build new
objects; nothing is changed in place. `tinyfuse.ir.text` prints a graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from tinyfuse.errors import InternalFault
from tinyfuse.ir.arrays import Array
from tinyfuse.limits import Limit

#: dtype name -> bytes an element
MAX_TENSOR_BYTES = 1 << 25
"""Of one tensor, and of all constants together (which may share a buffer of the file): more than microcontrollers have,
and little enough that compiling takes less than a GiB and 10 s."""

ITEM_BYTES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
}

#: dtypes that only constants have. int4: two values per byte in files, and in weights that are packed for kernels;
#: float16: read only by a DEQUANTIZE
INT4, FLOAT16 = "int4", "float16"


_Attributes = TypeVar("_Attributes")


@dataclass(frozen=True)
class Quant:
    """Affine quantization: real = scale * (stored - zero_point).

    One scale and zero point for a per-tensor quantization; one per index of dimension `axis`
    otherwise. Scales hold the float32 values of the file (as Python floats).
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        return len(self.scale) > 1


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph: a constant (`data`), a state that outlives a run (`initial`: its value
    after a reset), or, with neither, an activation.

    `index` is the tensor's place in the file, -1 for one that is not there: a rewrite made it, or it
    is a resource variable, which a file names only. Shapes are static; an activation of rank 4 is NHWC.

    A state [1, H, W, C] with a `cursor` is a ring: its row r lies in row (cursor + r) % H of its memory. The cursor is
    a state itself, int32 [1]. A `lent` state belongs to a graph that an operator runs (IF, WHILE), so no rewrite may
    change its form.

    The `data` of an int4 tensor is int8, -8 to 7, one value an element.

    An activation [1, H, P, W] of several `planes`, P, lies in memory as [P, H, W]: its row y is line y of every plane
    (ops/movement/planes.py). It is whole, never a ring.

    `open_axes` are dimensions that the file leaves open. Their sizes in `shape` are the file's guess, which
    rewrite/fold_constants.py corrects.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None = None
    data: Array | None = None
    index: int = -1
    initial: Array | None = None
    cursor: Tensor | None = None
    lent: bool = False
    open_axes: tuple[int, ...] = ()
    planes: int = 1

    @cached_property
    def elements(self) -> int:
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    @cached_property
    def bytes(self) -> int:
        """Bytes as stored in the file: a byte holds two int4 values."""
        if self.dtype == INT4:
            return (self.elements + 1) // 2
        return self.elements * (2 if self.dtype == FLOAT16 else ITEM_BYTES[self.dtype])

    @property
    def is_image(self) -> bool:
        """Tell whether the shape is [1, H, W, C], the only layout that is streamed by rows."""
        return len(self.shape) == 4 and self.shape[0] == 1

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def is_state(self) -> bool:
        return self.initial is not None

    @property
    def values(self) -> Array:
        """Values of a constant, in its shape; InternalFault for other tensors."""
        if self.data is None:
            raise _lacks(self, "values: it is not a constant")
        return self.data

    @property
    def initial_values(self) -> Array:
        """Values of a state after a reset, in its shape; InternalFault for other tensors."""
        if self.initial is None:
            raise _lacks(self, "initial values: it is not a state")
        return self.initial

    @property
    def quantization(self) -> Quant:
        """Quantization of a tensor that the rules require to be quantized; InternalFault if there is none."""
        if self.quant is None:
            raise _lacks(self, "quantization")
        return self.quant

    @property
    def scale(self) -> float:
        """Per-tensor scale; InternalFault if there is none."""
        scales = self.quantization.scale
        if len(scales) != 1:
            raise _lacks(self, "scale for all of it")
        return scales[0]

    @property
    def zero_point(self) -> int:
        """Per-tensor zero point; InternalFault if there is none."""
        zero_points = self.quantization.zero_point
        if len(zero_points) != 1:
            raise _lacks(self, "zero point for all of it")
        return zero_points[0]

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"tensor {self.index} {quoted(self.name)} {self.dtype}[{shape}]"


def _lacks(place: Tensor | Op, what: str) -> InternalFault:
    """Return the error for a value that the rules (tinyfuse/ops) guarantee and that is missing."""
    return InternalFault("the graph", f"{place} has no {what}")


def quoted(name: str) -> str:
    """Return a tensor's name in quotes, shortened to fit a line: converters concatenate the names of fused layers."""
    first = name.split(";")[0]
    return repr(first if len(first) <= 60 else first[:57] + "...")


def shown(name: str) -> str:
    """Return a name of the file on one line, without quotes and control characters."""
    return quoted(name)[1:-1]


def type_text(tensor: Tensor) -> str:
    """Return a tensor's dtype and shape, as "int8[1,8,8,3]"."""
    return f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]"


class EstimateMark:
    """Marks the operators of one estimate, and keeps the first operator of each class of operators with equal costs
    (schedule/kernel_choice/alike.py).

    An estimate must not depend on what was estimated before it, so each has its own mark.
    """

    def __init__(self) -> None:
        self._first: dict[Hashable, Op] = {}

    def first(self, likeness: Hashable, op: Op) -> Op:
        """Return the first operator of the class `likeness`; `op` itself if the class was empty."""
        return self._first.setdefault(likeness, op)


@dataclass(frozen=True, eq=False)
class Op:
    """One operator: `kind` is the schema's name (CONV_2D); a missing optional input is None.

    A state among the inputs may be read, or written, or both, as the operator's family says (`OpFamily.updates`);
    operators on one state run in the order of the graph.

    `attributes` is the frozen dataclass that the operator's family reads from the file (tinyfuse/ops). `index` is the
    operator's place in the file, -1 for one that a rewrite made. `view`: nothing runs; the inputs are parts of the
    output's memory, or the outputs parts of the input's, as the family's `parts` says (tinyfuse/rewrite/views.py
    decides). `estimate_mark`: only figures are wanted, never code, so properties that would be proven for all values
    may be tested on some of them (tinyfuse/estimator.py).
    """

    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    attributes: object = None
    index: int = -1
    view: bool = False
    estimate_mark: EstimateMark | None = None

    def operand(self, i: int) -> Tensor:
        """Return input `i`, which the rules require; InternalFault if it is missing."""
        inputs = self.inputs
        tensor = inputs[i] if i < len(inputs) else None
        if tensor is None:
            raise _lacks(self, f"input {i}")
        return tensor

    def optional(self, i: int) -> Tensor | None:
        """Return input `i`; None if it is missing or the operator has fewer inputs."""
        return self.inputs[i] if i < len(self.inputs) else None

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """All inputs of an operator whose rules require every one; InternalFault if one is missing."""
        return tuple(self.operand(i) for i in range(len(self.inputs)))

    @property
    def input(self) -> Tensor:
        """Input 0; InternalFault where it is missing."""
        return self.operand(0)

    @property
    def output(self) -> Tensor:
        """Output 0; InternalFault where there is none."""
        try:
            return self.outputs[0]
        except IndexError:
            raise _lacks(self, "output") from None

    def attributes_as(self, kind: type[_Attributes]) -> _Attributes:
        """Return `attributes`, which the operator's family made as a `kind`; InternalFault if they are of another
        type."""
        if not isinstance(self.attributes, kind):
            raise _lacks(self, f"attributes of {kind.__name__}")
        return self.attributes

    def reading(self, instead: Mapping[Tensor, Tensor]) -> Op:
        """Return the operator with the inputs in `instead` replaced; the operator itself if it has none of them."""
        if not instead:
            return self
        inputs = tuple(t if t is None else instead.get(t, t) for t in self.inputs)
        return self if inputs == self.inputs else replace(self, inputs=inputs)

    @cached_property
    def activations(self) -> tuple[Tensor, ...]:
        """Inputs that are computed in the same run, in order, each once."""
        seen: dict[Tensor, None] = {}
        for tensor in self.inputs:
            if tensor is not None and not tensor.is_constant and not tensor.is_state:
                seen[tensor] = None
        return tuple(seen)

    @property
    def first_activation(self) -> Tensor:
        """First of `activations`; InternalFault if the operator reads only constants and states."""
        if not self.activations:
            raise _lacks(self, "activation among its inputs: it reads constants or states alone")
        return self.activations[0]

    @cached_property
    def states(self) -> tuple[Tensor, ...]:
        """States among the inputs, with the cursors of rings, in order, each once."""
        found = [t for t in self.inputs if t is not None and t.is_state]
        return tuple(dict.fromkeys(t for s in found for t in (s, s.cursor) if t is not None))

    @property
    def reads_ring(self) -> bool:
        """Tell whether input 0 is a ring, which the operator reads row by row."""
        return bool(self.inputs) and self.inputs[0] is not None and self.inputs[0].cursor is not None

    def __str__(self) -> str:
        # an operator without outputs is named after the state that it writes
        name = next((tensor.name for tensor in self.outputs or self.states), "")
        return f"op {self.index} {self.kind} {quoted(name)}"


@dataclass(frozen=True)
class Saving:
    """Records what a rewrite (its function's name) saved.

    Holds the operators that it removed, replaced or split, and how many multiply-accumulates, bytes of the file's
    constants and copied bytes of activations the graph lost.
    """

    rewrite: str
    operators: tuple[Op, ...]
    macs: int
    weight_bytes: int
    copied_bytes: int = 0


@dataclass(frozen=True, eq=False)
class OwnWindow:
    """The parts of a model that keeps its window of frames itself (tinyfuse/slide/own_window.py).

    network  graph that reads the window, its first input.
    front    operators that compute frames from the input of a run, with states of their own.
    frame    tensor that a run adds to the window.
    runs     number of runs of the model per step.
    """

    network: Graph
    front: tuple[Op, ...]
    frame: Tensor
    runs: int


@dataclass(frozen=True, eq=False)
class Window:
    """A sliding window of a step graph (`tinyfuse.slide`): the graph `whole` over the last frames of one of its inputs.

    input   number of the input of `whole` that holds the frames.
    frames  number of frames in the window; frame f is the input's f-th part along `axis`, one piece of memory.
    step    number of new frames in each step.
    axis    time axis of the input in the file.
    again   numbers of operators whose rows are computed again although they could be kept (tinyfuse/slide/front.py).
    own     parts of a model that keeps the window itself; None for others. The input then holds the inputs of all
            runs of a step, and `axis` is that of the first input of `own.network`.
    rows    with --feed-rows: number of rows in which a step's frames are passed; None if they are passed at once.
    by_row  graph that takes one of these rows per run and computes the same, if there are several: only
            a step's last one goes beyond AWAIT_ROWS.
    """

    whole: Graph
    input: int
    frames: int
    step: int
    axis: int
    again: frozenset[int] = frozenset()
    own: OwnWindow | None = None
    rows: int | None = None
    by_row: Graph | None = None

    @property
    def sliding(self) -> tuple[Graph, int]:
        """Return the graph that slides, and the number of its input that holds the frames."""
        return (self.whole, self.input) if self.own is None else (self.own.network, 0)

    @property
    def steps_to_fill(self) -> int:
        """Number of steps up to the first one with a result."""
        return -(-self.frames // self.step)


@dataclass(frozen=True, eq=False)
class Layouts:
    """Relates a graph's inputs and outputs to those of the graph `file` as read: dimension d is the file's dimension
    order[d].

    An order of None means the file's own.
    """

    file: Graph
    inputs: tuple[tuple[int, ...] | None, ...]
    outputs: tuple[tuple[int, ...] | None, ...]


class Digest:
    """Computes the SHA-256 of a file's bytes on first use: an estimate never needs it. Pickled as its text."""

    def __init__(self, data: bytes):
        self._data = data

    @cached_property
    def text(self) -> str:
        return hashlib.sha256(self._data).hexdigest()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.text,)


#: runtimes whose bits a graph computes, by the format of the file that it was read from
TFLM, LITERT, ONNXRUNTIME, EXECUTORCH = ("TensorFlow Lite Micro", "LiteRT", "onnxruntime", "ExecuTorch (CMSIS-NN)")
FORMATS = {TFLM: "tflite", LITERT: "tflite", ONNXRUNTIME: "onnx", EXECUTORCH: "pte"}
#: how these runtimes bring sums of quantized layers to the scale of their outputs
ARITHMETIC = {
    TFLM: "sums are requantized by int32 multipliers and rounded twice",
    LITERT: "sums are requantized by int32 multipliers or doubles",
    ONNXRUNTIME: "sums are requantized by a float32 scale and rounded once, halves to even",
    EXECUTORCH: "sums are requantized by the file's int32 multipliers and rounded twice",
}


@dataclass(frozen=True, eq=False)
class Graph:
    """A model: operators in an order of execution, with its inputs and outputs.

    `path` is the file as the user gave it (for messages only), `digest` the SHA-256 of its bytes.
    `warnings` are what users should know about how the file was read; `notes` on it need no action: JSON and `explain`
    have them.
    `savings` are what rewrites saved; `limits` are those that searches of rewrites reached (tinyfuse/limits.py).
    `window`: the sliding window over another graph of which this graph computes a step; None for other graphs.
    `layouts`: set if inputs or outputs have another order of dimensions than in the file.
    `runtime` is a key of FORMATS, the runtime whose output bits the graph computes.
    """

    path: str
    digest: str | Digest
    ops: tuple[Op, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    warnings: tuple[str, ...] = field(default=())
    savings: tuple[Saving, ...] = field(default=())
    limits: tuple[Limit, ...] = field(default=())
    window: Window | None = None
    layouts: Layouts | None = None
    notes: tuple[str, ...] = ()
    runtime: str = TFLM

    @property
    def sha256(self) -> str:
        return self.digest.text if isinstance(self.digest, Digest) else self.digest

    @cached_property
    def producer(self) -> dict[Tensor, Op]:
        return {tensor: op for op in self.ops for tensor in op.outputs}

    @cached_property
    def states(self) -> tuple[Tensor, ...]:
        """Every state, in the order of first use."""
        return tuple(dict.fromkeys(tensor for op in self.ops for tensor in op.states))

    @cached_property
    def consumers(self) -> dict[Tensor, tuple[Op, ...]]:
        found: dict[Tensor, list[Op]] = {}
        for op in self.ops:
            for tensor in op.activations:
                found.setdefault(tensor, []).append(op)
        return {tensor: tuple(ops) for tensor, ops in found.items()}
