"""Kernel of ethos-u: lays out the memory of an Ethos-U program and calls a function that the firmware supplies."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import offset_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.program.control_flow import copy_bytes
from tinyfuse.ops.program.ethos_u import EthosU

#: alignment in bytes of addresses that the NPU loads from
ALIGN = 16
#: maximum number of base addresses that the driver takes
MOST_BASES = 8


class EthosUProgram(Kernel):
    """Kernel of a program for an Ethos-U: copies the inputs to where Vela placed them in scratch, runs the program, and
    copies its outputs. The base addresses are those of TFLM: weights, scratch, fast scratch, inputs, outputs."""

    name, unpredictable = "ethos-u", "an Ethos-U computes it, not this core"

    def scratch(self, op: Op, context: Context) -> int:
        a = op.attributes_as(EthosU)
        return _fast_offset(a) + a.fast if a.fast else a.scratch

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        named = zip(("commands", "weights"), op.operands[:2], strict=True)
        return tuple(Constant(name, np.ascontiguousarray(t.values).reshape(-1), "uint8_t", ALIGN) for name, t in named)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(EthosU)
        weights, scratch = site.constant("weights"), site.scratch
        inputs = [(offset_pointer(scratch, offset), t) for offset, t in zip(a.inputs, op.operands[2:], strict=True)]
        outputs = [(offset_pointer(scratch, offset), t) for offset, t in zip(a.outputs, op.outputs, strict=True)]
        fast = (offset_pointer(scratch, _fast_offset(a)), a.fast) if a.fast else (scratch, a.scratch)
        bases = [(weights, op.operand(1).bytes), (scratch, a.scratch), fast]
        bases += [(pointer, tensor.bytes) for pointer, tensor in (*inputs, *outputs)]
        del bases[MOST_BASES:]
        before = [copy_bytes(place, site.input(i).pointer, t) for i, (place, t) in enumerate(inputs, 2)]
        made = zip(site.outputs, outputs, strict=True)
        after = [copy_bytes(access.pointer, place, t) for access, (place, t) in made]
        addresses = c_array(f"(uint64_t)(uintptr_t)({pointer})" for pointer, _ in bases)
        sizes = c_array(f"{size}u" for _, size in bases)
        args = (site.constant("commands"), f"{op.input.bytes}u", "bases", "sizes", len(bases))
        return (
            *before,
            Let("uint64_t", f"bases[{len(bases)}]", addresses),
            Let("size_t", f"sizes[{len(bases)}]", sizes),
            Call(f"{site.module}_ethos_u", args, status="0"),
            *after,
        )


def _fast_offset(a: EthosU) -> int:
    """Offset in bytes of the fast scratch in the kernel's scratch."""
    return -(-a.scratch // ALIGN) * ALIGN
