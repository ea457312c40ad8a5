"""ethos-u: a program for Arm's Ethos-U NPU, which Vela compiled, among operators of the CPU.

What it computes is in its command stream, which only the NPU runs. What it reads and writes is known: Vela gave
every tensor an offset in one scratch memory (metadata "OfflineMemoryAllocation"), and the program finds its inputs and
leaves its outputs there (TFLM, kernels/ethos_u/ethosu.cc).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.family import OpFamily, Rule

#: the one FlexBuffer that its options are: the integer 1
_OPTIONS = bytes((1, 4, 1))


@dataclass(frozen=True)
class EthosU:
    """Memory of an NPU program: sizes and offsets in bytes.

    scratch  size of the memory in which Vela placed tensors
    fast     size of a second memory, for the most used tensors; 0 if that is the scratch memory itself
    inputs   offset in the scratch memory of each input after command stream and weights
    outputs  offset in the scratch memory of each output
    """

    sound: bool
    scratch: int = 0
    fast: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


def _placed(op: Op) -> bool:
    a, data = op.attributes_as(EthosU), op.operands[2:]
    tensors = [*zip(a.inputs, data, strict=True), *zip(a.outputs, op.outputs, strict=True)]
    return all(offset >= 0 and offset + tensor.bytes <= a.scratch for offset, tensor in tensors)


class EthosUFamily(OpFamily):
    """ethos-u, a program for Arm's NPU. Inputs: command stream, weights, and the tensors that the program reads;
    tinyfuse/frontend/ethos_u.py has removed the scratch memories."""

    kind = "CUSTOM ethos-u"
    summary = "a program for Arm's Ethos-U NPU, as Vela compiles them"
    runs_here = False
    folds = False
    rules = (
        Rule("its options are those that Vela writes", lambda op: not op.attributes_as(EthosU).sound),
        Rule(
            "command stream and weights are constant uint8",
            lambda op: next((t for t in op.operands[:2] if not t.is_constant or t.dtype != "uint8"), None),
        ),
        Rule("its inputs and outputs lie inside the scratch memory", lambda op: not _placed(op)),
    )

    def attributes(self, options: Mapping[str, Any]) -> EthosU:
        return EthosU(options.get("custom_options") == _OPTIONS)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        raise InternalFault(f"{op}", "verify/runnable.py let it be run")
