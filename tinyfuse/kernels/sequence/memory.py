"""Kernels of UNIDIRECTIONAL_SEQUENCE_LSTM (runtime_c/tinyfuse_lstm*.h) and SVDF (runtime_c/tinyfuse_svdf*.h).

Those of COMPUTED_LSTM and COMPUTED_SVDF bring computed weights into the form of the kernels for constant ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.ir.fixedpoint import reduced_multiplier
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.rows import KernelOfOperands, constant_operands, operand_pointers, with_constant_input
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.counts.common import lstm_counts, svdf_counts
from tinyfuse.ops.sequence import lstm_scaling
from tinyfuse.ops.sequence.svdf import CLAMPS, SIGN_BIT, Svdf
from tinyfuse.ops.sequence.svdf_scaling import feature_multiplier, time_multiplier


class _Lstm(Kernel):
    """Base of LSTM kernels. The output must not overlap the input."""

    counts = of_calls(lstm_counts)

    def rows(self, op: Op) -> Array:
        """Weights of [units, 4 gates, inputs + units], flat."""
        gates = [[op.operand(i).values for i in gate[:2]] for gate in lstm_scaling.GATES.values()]
        rows: Array = np.stack([np.concatenate(gate, axis=1) for gate in gates], axis=1)
        return rows.reshape(-1)

    def arguments(self, site: CallSite) -> tuple[str, ...]:
        """C arguments: parameters, tensors, weights and biases."""
        inputs = (site.input(i).pointer for i in (0, lstm_scaling.HIDDEN, lstm_scaling.CELL))
        return "&p", *inputs, site.output.pointer, site.constant("weights"), site.constant("bias")


class LstmWhole(_Lstm):
    """LSTM of int8 or int16."""

    def __init__(self, dtype: str):
        self.dtype, suffix = dtype, "" if dtype == "int8" else "_s16"
        self.headers = (f"tinyfuse_lstm{suffix}.h",)
        self.name = f"tinyfuse_lstm{suffix or '_s8'}"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        bias = np.stack([np.stack(folded_biases(op, gate), axis=1) for gate in lstm_scaling.GATES], axis=2)
        return (
            Constant("weights", self.rows(op), "int8_t"),
            Constant("bias", bias.reshape(-1), "int32_t" if self.dtype == "int8" else "int64_t", bias.itemsize),
            *self.tables(),
        )

    def tables(self) -> tuple[Constant, ...]:
        """Constants that are the same for every LSTM: the table of the logistic function."""
        return (Constant("table", lstm_scaling.logistic_table(), "uint16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        forget, entry = lstm_scaling.cell_multipliers(op)
        multiplier, shift = lstm_scaling.tanh_input(op)
        pairs = [lstm_scaling.gate_multipliers(op, gate) for gate in lstm_scaling.GATES]
        params = Let("tinyfuse_lstm", "p", _size_fields(op) | {
            "hidden_zero_point": op.operand(lstm_scaling.HIDDEN).zero_point, "cell_clip": lstm_scaling.cell_clip(op),
            "tanh_multiplier": multiplier, "tanh_shift": shift,
            "of_input": _initializer([self._gate_scale(pair[0]) for pair in pairs]),
            "of_hidden": _initializer([self._gate_scale(pair[1]) for pair in pairs]),
            "forget": _initializer(forget), "entry": _initializer(entry),
            "shown": _initializer(lstm_scaling.hidden_multiplier(op)),
        })  # fmt: skip
        return params, Call(self.name, (*self.arguments(site), site.constant("table")))

    def _gate_scale(self, multiplier: tuple[int, int]) -> tuple[int, int]:
        """Multiplier and shift of a gate's sums as the C takes them: for int16, the multiplier's upper 16 bits
        (tinyfuse_requantize_s64)."""
        return multiplier if self.dtype == "int8" else (int(reduced_multiplier(multiplier[0])), 15 - multiplier[1])


class LstmF32(_Lstm):
    """LSTM of float32."""

    name, dtype = "tinyfuse_lstm_f32", "float32"
    headers = ("tinyfuse_lstm_f32.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        bias = np.stack([op.operand(bias).values for _, _, bias in lstm_scaling.GATES.values()], axis=1)
        return Constant("weights", self.rows(op), "float"), Constant("bias", bias.reshape(-1), "float")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        clip = float(np.float32(max(op.attributes_as(lstm_scaling.Lstm).cell_clip, 0.0)))
        params = Let("tinyfuse_lstm_f32_params", "p", _size_fields(op) | {"cell_clip": clip})
        return params, Call(self.name, self.arguments(site))


def _size_fields(op: Op) -> dict[str, int]:
    """Fields of the sizes and strides."""
    first, second, inputs = op.input.shape
    units, time_major = op.output.shape[2], op.attributes_as(lstm_scaling.Lstm).time_major
    batches, steps = (second, first) if time_major else (first, second)

    def strides(width: int) -> tuple[int, int]:
        """Number of elements between batches, and between time steps, in a tensor whose rows have `width` elements."""
        return (width, second * width) if time_major else (second * width, width)

    out_batch, out_step = strides(units)
    if op.attributes_as(lstm_scaling.Lstm).last_step_only:  # each step overwrites the one before
        out_batch, out_step = units, 0
    return {
        "batches": batches, "steps": steps, "inputs": inputs, "units": units,
        "in_batch": strides(inputs)[0], "in_step": strides(inputs)[1],
        "out_batch": out_batch, "out_step": out_step,
    }  # fmt: skip


def folded_biases(op: Op, gate: str) -> tuple[Array, Array]:
    """Biases of a gate's sums over the input and over the hidden state, with zero points folded in. int32 [units] each;
    int64 for int16 data."""
    weights, recurrent, bias = (op.operand(i).values.astype(np.int64) for i in lstm_scaling.GATES[gate])
    of_input = bias - op.input.zero_point * weights.sum(axis=1)
    of_hidden = -op.operand(lstm_scaling.HIDDEN).zero_point * recurrent.sum(axis=1)
    dtype = np.int32 if op.input.dtype == "int8" else np.int64
    return of_input.astype(dtype), of_hidden.astype(dtype)  # wrap, like the sums


def _initializer(value: int | Sequence[int] | Sequence[tuple[int, int]]) -> str:
    """C initializer of nested sequences of numbers."""
    return str(value) if isinstance(value, int) else c_array(map(_initializer, value))


#: index of an operand -> name of its constant: weights and bias in the file's order
SVDF_OPERANDS = {1: "features", 2: "time", 3: "bias"}


class _Svdf(KernelOfOperands):
    """Base of SVDF kernels. The output must not overlap the input."""

    operands = SVDF_OPERANDS
    counts = of_calls(svdf_counts)

    def sizes(self, op: Op) -> dict[str, int]:
        """Fields of the sizes."""
        (batches, inputs), (filters, memory), rank = op.input.shape, op.operand(2).shape, op.attributes_as(Svdf).rank
        return {"batches": batches, "inputs": inputs, "units": filters // rank, "rank": rank, "memory": memory}


class SvdfWhole(_Svdf):
    """SVDF of int8 data."""

    headers = ("tinyfuse_svdf.h",)
    name, dtype = "tinyfuse_svdf", "int8"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "s16" if op.operand(4).dtype == "int16" else "s8"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *super().constants(op, context), self.offsets(op)

    def offsets(self, op: Op) -> Constant:
        """Offsets that replace the input's zero point, from constant feature weights: int32 [filters]."""
        offsets = -op.input.zero_point * op.operand(1).values.sum(axis=1, dtype=np.int64)
        return Constant("offsets", offsets.astype(np.int32), "int32_t")  # wraps, like the sums

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        feature, time = feature_multiplier(op), time_multiplier(op)
        params = Let("tinyfuse_svdf", "p", {
            **self.sizes(op),
            "state_zero_point": op.operand(4).zero_point,
            "out_zero_point": op.output.zero_point,
            "feature_multiplier": feature[0], "feature_shift": feature[1],
            "time_multiplier": time[0], "time_shift": time[1],
        })  # fmt: skip
        arguments = (
            "&p", site.input(0).pointer, site.input(4).pointer, site.output.pointer,
            site.constant("features"), site.constant("offsets"), site.constant("time"), site.constant("bias"),
        )  # fmt: skip
        return params, Call(f"{self.name}_{self.path(op, False, context)}", arguments)


class SvdfF32(_Svdf):
    """SVDF of float32 with a clamp as activation."""

    headers = ("tinyfuse_svdf_f32.h",)
    name, dtype = "tinyfuse_svdf_f32", "float32"

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.attributes_as(Svdf).activation in CLAMPS

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        high, low = CLAMPS.get(op.attributes_as(Svdf).activation, (None, None))
        params = Let("tinyfuse_svdf_real", "p", {
            **self.sizes(op),
            "has_high": int(high is not None), "has_low": int(low is not None),
            "high": high or 0.0, "low": low or 0.0,
        })  # fmt: skip
        return params, Call(
            self.name,
            ("&p", site.input(0).pointer, site.input(4).pointer, site.output.pointer,
             site.constant("features"), site.constant("time"), site.constant("bias"), *self.activation(op)),
        )  # fmt: skip

    def activation(self, op: Op) -> tuple[int, ...]:
        """Arguments that select the activation."""
        return ()


class SvdfActivatedF32(SvdfF32):
    """SVDF of float32 with an activation that is not a clamp."""

    headers = ("tinyfuse_svdf_activated_f32.h",)
    name = "tinyfuse_svdf_activated_f32"

    def accepts(self, op: Op, context: Context) -> bool:
        return Kernel.accepts(self, op, context) and op.attributes_as(Svdf).activation not in CLAMPS

    def activation(self, op: Op) -> tuple[int, ...]:
        return (int(op.attributes_as(Svdf).activation == SIGN_BIT),)


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

    operands: ClassVar = {i: f"operand{i}" for gate in lstm_scaling.GATES.values() for i in gate}

    def __init__(self, kernel: LstmWhole | LstmF32):
        super().__init__(kernel, "tinyfuse_lstm_parts.h")

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = self.kernel.tables() if isinstance(self.kernel, LstmWhole) else ()
        return *super().constants(op, context), *tables

    def scratch(self, op: Op, context: Context) -> int:
        return self._bias_bytes(op) + sum(op.operand(i).bytes for gate in lstm_scaling.GATES.values() for i in gate[:2])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = dict(zip(self.operands, operand_pointers(site, self.operands), strict=True))
        units, inputs = op.operand(1).shape
        of_input, of_hidden, biases = (
            c_array(pointers[gate[i]] for gate in lstm_scaling.GATES.values()) for i in range(3)
        )
        quantized = op.input.dtype != "float32"
        fields = {
            "inputs": inputs, "units": units, "item": ITEM_BYTES[op.operand(1).dtype],
            "in_zero_point": op.input.zero_point if quantized else 0,
            "hidden_zero_point": op.operand(lstm_scaling.HIDDEN).zero_point if quantized else 0,
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
