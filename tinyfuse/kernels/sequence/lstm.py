"""Kernels of UNIDIRECTIONAL_SEQUENCE_LSTM (runtime_c/tinyfuse_lstm*.h)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import reduced_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.counts.common import lstm_counts
from tinyfuse.ops.sequence import lstm_scaling


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
