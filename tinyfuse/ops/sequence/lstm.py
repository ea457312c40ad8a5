"""UNIDIRECTIONAL_SEQUENCE_LSTM, int8 or int16 with a cell of int16, or float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import RANGE, multiply_by_quantized_multiplier, multiply_by_reduced_multiplier
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.sequence.lstm_real import real_step
from tinyfuse.ops.sequence.lstm_scaling import (
    CELL,
    GATES,
    HIDDEN,
    INPUTS,
    PRESENT,
    Lstm,
    cell_clip,
    cell_multipliers,
    cell_power,
    gate_multipliers,
    hidden_multiplier,
    logistic_table,
    tanh_input,
)

_WEIGHTS, _BIASES = range(1, 9), range(12, 16)
#: dtype of the data (input, output, hidden state) -> that of the biases
_BIAS_DTYPE = {"int8": "int32", "int16": "int64"}
_LOW, _HIGH = RANGE["int16"]


def batches_and_steps(op: Op) -> tuple[int, int]:
    """(B, T) of the input."""
    first, second, _ = op.input.shape
    return (second, first) if op.attributes_as(Lstm).time_major else (first, second)


def _bad_dtype(op: Op) -> Tensor | None:
    data = op.input.dtype
    if data == "float32":
        return next((t for t in (*(op.operand(i) for i in PRESENT), op.output) if t.dtype != data), None)
    if data not in _BIAS_DTYPE:
        return op.input

    def dtype(index: int) -> str:
        if index in _BIASES:
            return _BIAS_DTYPE[data]
        return "int16" if index == CELL else "int8" if index in _WEIGHTS else data

    wrong = (op.operand(i) for i in PRESENT if op.operand(i).dtype != dtype(i))
    return next(wrong, None) or (op.output if op.output.dtype != data else None)


def _bad_shape(op: Op) -> Tensor | None:
    if len(op.input.shape) != 3:
        return op.input
    hidden, inputs = op.operand(HIDDEN), op.input.shape[2]
    if len(hidden.shape) != 2:
        return hidden
    units = hidden.shape[1]
    expected = {i: (units, inputs if i < 5 else units) for i in _WEIGHTS} | dict.fromkeys(_BIASES, (units,))
    for i, shape in expected.items():
        if op.operand(i).shape != shape:
            return op.operand(i)
    elements = batches_and_steps(op)[0] * units
    wrong = next((op.operand(i) for i in (HIDDEN, CELL) if op.operand(i).elements != elements), None)
    time = 0 if op.attributes_as(Lstm).time_major else 1
    steps = 1 if op.attributes_as(Lstm).last_step_only else op.input.shape[time]
    shown = (*op.input.shape[:time], steps, *op.input.shape[time + 1 : 2], units)
    return wrong or (op.output if op.output.shape != shown else None)


def _is_real(op: Op) -> bool:
    return op.input.dtype == "float32"


def _unquantized(op: Op) -> Tensor | None:
    if _is_real(op):
        return None
    tensors = [op.operand(i) for i in PRESENT if i not in _BIASES]
    return next((t for t in tensors if t.quant is None or t.quant.per_channel), None)


def _nonzero_point(op: Op) -> Tensor | None:
    symmetric = () if _is_real(op) else (*_WEIGHTS, CELL)
    return next((op.operand(i) for i in symmetric if op.operand(i).zero_point), None)


def _bad_cell_scale(op: Op) -> Tensor | None:
    return None if _is_real(op) or -40 <= cell_power(op) <= 2 else op.operand(CELL)


def _shift_too_large(op: Op) -> bool:
    if _is_real(op):
        return False
    of_gates = max(shift for gate in GATES for _, shift in gate_multipliers(op, gate))
    of_cell = max(shift for _, shift in (*cell_multipliers(op), hidden_multiplier(op)))
    return of_gates > (30 if op.input.dtype == "int8" else 7) or of_cell > 30


def _rescaled_sum(op: Op, values: Array, multiplier: tuple[int, int]) -> Array:
    """A gate's sums of products, rescaled and saturated to int16: with two roundings for int8 data, with one for
    int16."""
    if op.input.dtype == "int8":
        return _requantized(values, multiplier)
    return np.clip(multiply_by_reduced_multiplier(values, *multiplier), _LOW, _HIGH)


def _requantized(values: Array, multiplier: tuple[int, int]) -> Array:
    """Products of int16 stored with int16, or sums of int8's, rescaled and saturated to int16."""
    wrapped = values.astype(np.int32)
    return np.clip(multiply_by_quantized_multiplier(wrapped, *multiplier), _LOW, _HIGH)


class LstmFamily(OpFamily):
    """UNIDIRECTIONAL_SEQUENCE_LSTM. 24 inputs: x, 4 weights [S, I] and 4 weights [S, S] of input, forget, cell and
    output gate, no peepholes, 4 biases [S], no projection, hidden and cell state [B, S], no layer normalization.
    Output: the hidden state after every step, [B, T, S]; TFLM ignores the output's quantization.

    Source: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory", with forget gates (Gers et al. 2000).
    """

    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    options_table = "UnidirectionalSequenceLSTMOptions"
    data_and_weights = (0, 1)
    summary = "an LSTM over a sequence; keeps hidden state and cell as state"
    updates = (HIDDEN, CELL)
    rules = (
        Rule("24 inputs and one output", lambda op: len(op.inputs) != INPUTS or len(op.outputs) != 1),
        Rule("all inputs of the plain LSTM",
             lambda op: any(op.inputs[i] is None for i in PRESENT)),
        Rule("no peephole, projection or layer normalization",
             lambda op: next((t for i, t in enumerate(op.inputs) if t is not None and i not in PRESENT), None),
             "TensorFlow Lite Micro refuses it too: use a plain LSTM layer"),
        Rule("input, output and hidden state are int8 with biases of int32, or int16 with biases of int64; weights are "
             "int8, the cell int16; or all are float32", _bad_dtype,
             "quantize the model to int8 (full integer quantization)"),
        Rule("shapes agree: input [B, T, I] or [T, B, I], weights [S, I] and [S, S], biases [S], hidden state "
             "[B, S], a cell as large, output [B, T, S] or [T, B, S]", _bad_shape),
        Rule("every quantized tensor but the biases has one scale and one zero point", _unquantized),
        Rule("quantized weights and cells have zero point 0", _nonzero_point),
        Rule("the cell gate's activation is TANH", lambda op: op.attributes_as(Lstm).activation != "TANH"),
        Rule("a quantized cell's scale is from 2^-40 to 4", _bad_cell_scale),
        Rule("a requantization multiplier is below 2^31; of a gate's sums of int16, below 2^7", _shift_too_large),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Lstm:
        return Lstm(
            options.get("fused_activation_function", "NONE"),
            options.get("cell_clip", 0.0),
            bool(options.get("time_major", False)),
        )

    def computing(self, op: Op) -> Op | None:
        constant = all(op.operand(i).is_constant for i in (*_WEIGHTS, *_BIASES))
        return None if constant else replace(op, kind="COMPUTED_LSTM")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return self._sequence(op, None, inputs)

    def reference_beside(self, op: Op, outputs: Sequence[Array], *inputs: Array | None) -> tuple[Array, ...]:
        return self._sequence(op, outputs[0], inputs)

    def _sequence(self, op: Op, shown: Array | None, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        """(output, hidden state, cell) after all steps. `shown`: hidden states from which steps continue, instead of
        those computed here."""
        batches, steps = batches_and_steps(op)
        axis = 0 if op.attributes_as(Lstm).time_major else 1
        x, hidden, cell = (given(inputs[i]) for i in (0, HIDDEN, CELL))
        hidden, cell = hidden.reshape(batches, -1), cell.reshape(batches, -1)
        if not _is_real(op):
            x, hidden, cell = x.astype(np.int64) - op.input.zero_point, hidden.astype(np.int64), cell.astype(np.int64)
        found = []
        for step in range(steps):
            advance = real_step if _is_real(op) else self._step
            hidden, cell = advance(op, x.take(step, axis), hidden, cell, inputs)
            found.append(hidden)
            hidden = hidden if shown is None else shown.take(step, axis)
        states = (hidden, op.operand(HIDDEN)), (cell, op.operand(CELL))
        kept = (values.astype(tensor.dtype).reshape(tensor.shape) for values, tensor in states)
        found = found[-1:] if op.attributes_as(Lstm).last_step_only else found
        return np.stack(found, axis=axis).astype(op.output.dtype), *kept

    def ulp(self, op: Op) -> int | None:
        # in units of the last place of 1, because a cell may be a difference; the errors of all steps add up
        return 4 + 4 * batches_and_steps(op)[1] if _is_real(op) else None

    ulp_of = 1.0

    @staticmethod
    def _step(op: Op, x: Array, hidden: Array, cell: Array, inputs: Sequence[Array | None]) -> tuple[Array, Array]:
        """Hidden state and cell after one step; x [B, I] without its zero point."""
        sums = {}
        for gate, (from_input, from_hidden, bias) in GATES.items():
            weights, recurrent = (given(inputs[i]).astype(np.int64) for i in (from_input, from_hidden))
            input_multiplier, hidden_multiplier_ = gate_multipliers(op, gate)
            of_input = _rescaled_sum(op, x @ weights.T + given(inputs[bias]), input_multiplier)
            of_hidden = (hidden - op.operand(HIDDEN).zero_point) @ recurrent.T
            sums[gate] = np.clip(of_input + _rescaled_sum(op, of_hidden, hidden_multiplier_), _LOW, _HIGH)
        forget, entry, output = (logistic(sums[gate]) for gate in ("forget", "input", "output"))
        forget_multiplier, entry_multiplier = cell_multipliers(op)
        kept = _requantized(forget * cell, forget_multiplier)
        entered = _requantized(entry * tanh(sums["cell"], 3, 0), entry_multiplier)
        cell = np.clip(kept + entered, _LOW, _HIGH)
        clip = cell_clip(op)
        if clip:
            cell = np.clip(cell, -clip, clip)
        shown = multiply_by_quantized_multiplier(tanh(cell, *tanh_input(op)) * output, *hidden_multiplier(op))
        return np.clip(shown + op.operand(HIDDEN).zero_point, *RANGE[op.output.dtype]), cell

    def macs(self, op: Op) -> int:
        batches, steps = batches_and_steps(op)
        return batches * steps * sum(op.operand(i).elements for i in _WEIGHTS)


# Source of both: TFLM's reference kernels. They interpolate one table, of logistic(x) for x >= 0 in steps
# of 1/24; tanh(x) is 2 * logistic(2x) - 1.


def _interpolated(value: Array, bits: int) -> Array:
    """Return `logistic_table`, interpolated linearly at value / 2^bits and multiplied by 2^bits. Beyond the last entry
    the caller saturates."""
    table = logistic_table().astype(np.int64)
    index = np.minimum(value >> bits, 254)
    between: Array = (table[index] << bits) + (value & ((1 << bits) - 1)) * (table[index + 1] - table[index])
    return between


def logistic(value: Array) -> Array:
    """Logistic function 1 / (1 + exp(-x)), Q0.15, of int16 values in Q3.12."""
    scaled = value.astype(np.int64) * 3
    size = np.abs(scaled)
    result = np.where(size >> 9 >= 255, 0x7FFF << 10, _interpolated(size, 9))
    return np.where(scaled >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh(value: Array, multiplier: int, shift: int) -> Array:
    """tanh in Q0.15 of int16 values; `multiplier` and right `shift` bring them to 3/4 of Q3.12."""
    scaled = (value.astype(np.int64) * multiplier + ((1 << shift) >> 1)) >> shift
    size = np.abs(scaled)
    result = np.where(size >> 8 >= 255, 0xFFFF << 8, _interpolated(size, 8))
    return np.where(scaled >= 0, result - (1 << 23) + (1 << 7), (1 << 23) - result + (1 << 7) - 1) >> 8
