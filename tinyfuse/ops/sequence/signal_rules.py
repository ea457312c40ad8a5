"""Rules that the operators of TFLM's signal library share: on the number of inputs and outputs, dtypes and options."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.core.family import Rule

#: how the operators are called in files
PREFIX = "CUSTOM Signal"
_HINT = "TensorFlow Lite Micro has no kernel for anything else: make the front end with its signal library"


def ends(inputs: int, outputs: int, states: int = 0) -> Rule:
    """Return the rule of how many inputs and outputs there are; the states that the reader adds come after the
    inputs."""
    text = f"{_count(inputs, 'input')} and {_count(outputs, 'output')}"
    return Rule(
        text,
        lambda op: len(op.inputs) != inputs + states or None in op.inputs or len(op.outputs) != outputs,
        _HINT,
    )


def _count(number: int, what: str) -> str:
    return f"{('no', 'one', 'two', 'three', 'four', 'five', 'six')[number]} {what}{'' if number == 1 else 's'}"


#: rule that the options could be read; their values are checked by other rules
OPTIONS = Rule("its options are there, a FlexBuffer map", lambda op: op.attributes is None, _HINT)


def dtypes(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Rule:
    """Rule that the operator's inputs and outputs have these dtypes, in order."""
    text = f"inputs are {', '.join(inputs)}, outputs {', '.join(outputs)}"

    def wrong(op: Op) -> Tensor | None:
        pairs = (*zip(op.operands, inputs, strict=False), *zip(op.outputs, outputs, strict=True))
        return next((tensor for tensor, dtype in pairs if tensor.dtype != dtype), None)

    return Rule(text, wrong, _HINT)


#: elements that NumPy can count
_COUNTED = 2**62


def vectors(op: Op) -> Tensor | None:
    """First input or output, except states, that does not have exactly one dimension; None if there is none."""
    tensors = (*(t for t in op.operands if not t.is_state), *op.outputs)
    return next((t for t in tensors if len(t.shape) != 1), None)


def within(text: str, holds: Callable[[Op], bool], hint: str | None = None) -> Rule:
    """Rule with the text `text`, which is broken if `holds` returns False."""
    return Rule(text, lambda op: not holds(op), hint or _HINT)


def hidden_state(op: Op, name: str, shape: tuple[int, ...], dtype: str, value: int = 0) -> Tensor:
    """State whose elements are all `value` after a reset; it has at least one element."""
    owner = op.outputs[0].name if op.outputs else op.kind
    shape = tuple(max(1, dim) for dim in shape)
    if math.prod(shape) > _COUNTED:  # a rule refuses an output of this size
        shape = (1,) * len(shape)
    initial = np.broadcast_to(np.asarray(value).astype(dtype), shape)
    return Tensor(f"{owner}/{name}", shape, dtype, initial=initial)
