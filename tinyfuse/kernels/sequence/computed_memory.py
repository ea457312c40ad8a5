"""Kernels of COMPUTED_LSTM and COMPUTED_SVDF. The run brings computed weights into the form of the kernels for constant
ones (runtime_c/tinyfuse_lstm_parts.h, runtime_c/tinyfuse_svdf_offsets.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import constant_operands, operand_pointers, with_constant_input
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.sequence.lstm import LstmF32, LstmWhole
from tinyfuse.kernels.sequence.svdf import SVDF_OPERANDS, SvdfF32, SvdfWhole
from tinyfuse.ops.sequence.lstm_scaling import GATES, HIDDEN


class _Computed(WholeWrapper):
    """Base of kernels that call `kernel`. `operands`: indexes of inputs that may be computed -> names of their
    constants."""

    operands: ClassVar[Mapping[int, str]]

    def __init__(self, kernel: Kernel, header: str):
        super().__init__(kernel, headers=(*kernel.headers, header))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return constant_operands(op, {0: "data", **self.operands})

    def site_with(self, op: Op, site: CallSite, instead: Mapping[str, str]) -> CallSite:
        """Site of the call of `kernel`. `instead`: names of its constants -> C pointers that replace them."""
        given = with_constant_input(op, site)
        return replace(given, constant=lambda name: instead.get(name) or site.constant(name))


class ComputedLstm(_Computed):
    """Kernel of COMPUTED_LSTM; it first copies biases and weights into scratch, in the order that the LSTM kernel
    reads."""

    operands: ClassVar = {i: f"operand{i}" for gate in GATES.values() for i in gate}

    def __init__(self, kernel: LstmWhole | LstmF32):
        super().__init__(kernel, "tinyfuse_lstm_parts.h")

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = self.kernel.tables() if isinstance(self.kernel, LstmWhole) else ()
        return *super().constants(op, context), *tables

    def scratch(self, op: Op, context: Context) -> int:
        return self._bias_bytes(op) + sum(op.operand(i).bytes for gate in GATES.values() for i in gate[:2])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = dict(zip(self.operands, operand_pointers(site, self.operands), strict=True))
        units, inputs = op.operand(1).shape
        of_input, of_hidden, biases = (c_array(pointers[gate[i]] for gate in GATES.values()) for i in range(3))
        quantized = op.input.dtype != "float32"
        fields = {
            "inputs": inputs, "units": units, "item": ITEM_BYTES[op.operand(1).dtype],
            "in_zero_point": op.input.zero_point if quantized else 0,
            "hidden_zero_point": op.operand(HIDDEN).zero_point if quantized else 0,
            "of_input": of_input, "of_hidden": of_hidden, "bias": biases,
        }  # fmt: skip
        offset = self._bias_bytes(op)
        weights = "int8_t" if quantized else "float"
        bias = {"int8": "int32_t", "int16": "int64_t", "float32": "float"}[op.input.dtype]
        instead = {
            "weights": f"(const {weights} *)(const void *)({site.scratch} + {offset})",
            "bias": f"(const {bias} *)(const void *){site.scratch}",
        }
        inner = self.site_with(op, site, instead)
        return (
            Let("tinyfuse_lstm_parts", "parts", fields),
            Call("tinyfuse_lstm_rows", ("&parts", site.scratch, offset)),
            Call(f"tinyfuse_lstm_biases_{SUFFIX[op.input.dtype]}", ("&parts", site.scratch)),
            *self.kernel.call(op, inner, context),
        )

    @staticmethod
    def _bias_bytes(op: Op) -> int:
        """Bytes of the biases in scratch. Integer biases come twice, because zero points are folded in. The result is a
        multiple of 4, which aligns the weights."""
        bias = op.operand(12)
        return 4 * bias.bytes * (1 if bias.dtype == "float32" else 2)


class ComputedSvdf(_Computed):
    """COMPUTED_SVDF. The offsets, from the input's zero point and computed feature weights, are written into
    scratch."""

    operands: ClassVar = SVDF_OPERANDS

    def __init__(self, kernel: SvdfWhole | SvdfF32):
        super().__init__(kernel, "tinyfuse_svdf_offsets.h")

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = super().constants(op, context)
        if op.operand(1).is_constant and isinstance(self.kernel, SvdfWhole):
            found += (self.kernel.offsets(op),)
        return found

    def scratch(self, op: Op, context: Context) -> int:
        return 4 * op.operand(1).shape[0] if self._computes_offsets(op) else 0

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        instead = dict(zip(self.operands.values(), operand_pointers(site, self.operands), strict=True))
        before: tuple[Statement, ...] = ()
        if self._computes_offsets(op):
            filters, inputs = op.operand(1).shape
            args = (instead["features"], filters, inputs, op.input.zero_point, site.scratch)
            before = (Call("tinyfuse_svdf_offsets", args),)
            instead["offsets"] = f"(const int32_t *)(const void *){site.scratch}"
        inner = self.site_with(op, site, instead)
        return *before, *self.kernel.call(op, inner, context)

    def _computes_offsets(self, op: Op) -> bool:
        """Tells whether the run must compute the offsets, because they depend on an input."""
        return isinstance(self.kernel, SvdfWhole) and not op.operand(1).is_constant
