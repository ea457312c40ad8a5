"""CMSIS-NN's LSTM, step by step, since 6.0, and its SVDF, with a state of int16 or int8."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import RANGE, multiply_by_quantized_multiplier
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel, buffer, dims, int32s, per_tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import constant_operands
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement
from tinyfuse.kernels.sequence.memory import SVDF_OPERANDS, folded_biases
from tinyfuse.ops.sequence import lstm_scaling
from tinyfuse.ops.sequence.svdf import Svdf
from tinyfuse.ops.sequence.svdf_scaling import feature_multiplier, time_multiplier

_LOW, _HIGH = RANGE["int16"]


class CmsisLstm(CmsisKernel):
    """UNIDIRECTIONAL_SEQUENCE_LSTM of int8, by CMSIS-NN's function for one step.

    Its function for whole sequences clears hidden state and cell first. The output must not overlap the input.
    """

    name, since = "arm_nn_lstm_step_s8", (6, 0)
    headers = ("arm_nnfunctions.h", "arm_nnsupportfunctions.h", "tinyfuse_copy.h")

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context) and op.input.dtype == "int8"
        fits = fits and all(_hidden_fits(op, gate) for gate in lstm_scaling.GATES)
        return fits and _entry_fits(op) and lstm_scaling.cell_power(op) <= 0

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = []
        for gate, (from_input, from_hidden, _) in lstm_scaling.GATES.items():
            of_input, of_hidden = folded_biases(op, gate)
            found += [
                Constant(f"{gate}_input", op.operand(from_input).values.reshape(-1), "int8_t"),
                Constant(f"{gate}_hidden", op.operand(from_hidden).values.reshape(-1), "int8_t"),
                int32s(f"{gate}_input_bias", of_input),
                int32s(f"{gate}_hidden_bias", of_hidden),
            ]
        return tuple(found)

    def scratch(self, op: Op, context: Context) -> int:
        """Return the bytes of two gates of int16."""
        return 4 * self._together(op) * op.output.shape[2]

    @staticmethod
    def _together(op: Op) -> int:
        """Return the number of batches that one call computes: all, if the batches of a time step are contiguous, else
        one."""
        return op.input.shape[1] if op.attributes_as(lstm_scaling.Lstm).time_major else 1

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        first, second, inputs = op.input.shape
        units, together = op.output.shape[2], self._together(op)
        steps, batches = (first, 1) if op.attributes_as(lstm_scaling.Lstm).time_major else (second, first)
        source, output = site.input(0).pointer, site.output.pointer
        hidden, cell = site.input(lstm_scaling.HIDDEN).pointer, site.input(lstm_scaling.CELL).pointer
        step = "t"
        if batches > 1:
            hidden, cell = (f"({pointer} + b * {units})" for pointer in (hidden, cell))
            step = f"(b * {steps} + t)"
        made = f"{output} + {step} * {together * units}"
        buffers = Let("cmsis_nn_lstm_context", "buffers", {
            "temp1": site.scratch, "temp2": f"{site.scratch} + {2 * together * units}", "cell_state": cell,
        })  # fmt: skip
        read = f"{source} + {step} * {together * inputs}"
        body = (
            # the parameter is a pointer to non-const, though CMSIS-NN only reads
            Call(self.name, (read, hidden, made, "&params", "(cmsis_nn_lstm_context *)&buffers", 1), SUCCESS),
            Call("tinyfuse_copy", (made, hidden, together * units)),
        )
        each: tuple[Statement, ...] = (buffers, Loop("t", steps, body))
        return self._params(op, site, together, steps), *(each if batches == 1 else (Loop("b", batches, each),))

    @staticmethod
    def _params(op: Op, site: CallSite, together: int, steps: int) -> Let:
        forget, entry = lstm_scaling.cell_multipliers(op)
        shown = lstm_scaling.hidden_multiplier(op)
        fields: dict[str, Any] = {
            "time_major": 1, "batch_size": together, "time_steps": steps,
            "input_size": op.input.shape[2], "hidden_size": op.output.shape[2],
            "input_offset": -op.input.zero_point,
            "forget_to_cell_multiplier": forget[0], "forget_to_cell_shift": forget[1],
            "input_to_cell_multiplier": entry[0], "input_to_cell_shift": entry[1],
            "cell_clip": lstm_scaling.cell_clip(op), "cell_scale_power": lstm_scaling.cell_power(op),
            "output_multiplier": shown[0], "output_shift": shown[1],
            "output_offset": op.operand(lstm_scaling.HIDDEN).zero_point,
        }  # fmt: skip
        for gate in lstm_scaling.GATES:
            of_input, of_hidden = lstm_scaling.gate_multipliers(op, gate)
            fields[f"{gate}_gate"] = {
                "input_multiplier": of_input[0], "input_shift": of_input[1],
                "input_weights": site.constant(f"{gate}_input"),
                "input_effective_bias": site.constant(f"{gate}_input_bias"),
                "hidden_multiplier": of_hidden[0], "hidden_shift": of_hidden[1],
                "hidden_weights": site.constant(f"{gate}_hidden"),
                "hidden_effective_bias": site.constant(f"{gate}_hidden_bias"),
                "activation_type": "ARM_TANH" if gate == "cell" else "ARM_SIGMOID",
            }  # fmt: skip
        return Let("cmsis_nn_lstm_params", "params", fields)


def _hidden_fits(op: Op, gate: str) -> bool:
    """Return whether the hidden state's part of a gate always fits int16.

    TensorFlow Lite Micro clamps this part before it is added; CMSIS-NN clamps only the sum.
    """
    weights = op.operand(lstm_scaling.GATES[gate][1]).values.astype(np.int64)
    low, high = (bound - op.operand(lstm_scaling.HIDDEN).zero_point for bound in RANGE["int8"])
    ends = np.stack([(weights * low).clip(*sign).sum(1) + (weights * high).clip(*sign).sum(1)
                     for sign in ((None, 0), (0, None))])  # fmt: skip
    if np.abs(ends).max() >= 2**31:
        return False
    sums = multiply_by_quantized_multiplier(ends.astype(np.int32), *lstm_scaling.gate_multipliers(op, gate)[1])
    return bool((sums >= _LOW).all() and (sums <= _HIGH).all())


def _entry_fits(op: Op) -> bool:
    """Return whether the input gate's term of the new cell state (input gate * cell gate) always fits int16."""
    largest = np.array([2**30], np.int32)
    return int(multiply_by_quantized_multiplier(largest, *lstm_scaling.cell_multipliers(op)[1])[0]) <= _HIGH


class CmsisSvdf(CmsisKernel):
    """SVDF whose state and time weights are int16. The output must not overlap the input."""

    name = "arm_svdf_state_s16_s8"
    state_dtype = "int16"
    constants = of_operator(constant_operands, SVDF_OPERANDS)

    def accepts(self, op: Op, context: Context) -> bool:
        if not super().accepts(op, context) or op.operand(4).dtype != self.state_dtype:
            return False
        # the function shifts left by a multiplication that must not overflow int32; TFLM's shift wraps
        largest = 255 * 128 * op.input.shape[1]
        feature, time = feature_multiplier(op)[1], time_multiplier(op)[1]
        return largest << max(feature, 0) < 2**31 and time <= 0

    def scratch(self, op: Op, context: Context) -> int:
        """Return the bytes of an int32 per filter and one per unit, for all batches."""
        return 4 * (self._filters(op) + op.output.elements)

    @staticmethod
    def _filters(op: Op) -> int:
        """Return the number of filters times the number of batches."""
        return op.input.shape[0] * op.operand(2).shape[0]

    def sums(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """Return the declaration of a further context, for sums of weights, that some variants take."""
        return ()

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (batches, inputs), (filters, memory) = op.input.shape, op.operand(2).shape
        units, split = op.output.shape[1], 4 * self._filters(op)
        low, high = np.iinfo(self.state_dtype).min, np.iinfo(self.state_dtype).max
        sums = self.sums(op, site, context)
        params = {
            "rank": op.attributes_as(Svdf).rank, "input_offset": op.input.zero_point,
            "output_offset": op.output.zero_point,
            "input_activation": {"min": int(low), "max": int(high)},
            "output_activation": {"min": -128, "max": 127},
        }  # fmt: skip
        return (
            *sums,
            buffer("filters", site.scratch, split),
            buffer("units", f"{site.scratch} + {split}", 4 * op.output.elements),
            Let("cmsis_nn_svdf_params", "params", params),
            per_tensor("to_state", feature_multiplier(op)),
            per_tensor("to_output", time_multiplier(op)),
            dims("input", batches, inputs),
            dims("state", batches, memory * filters),
            dims("features", filters, inputs),
            dims("time", filters, memory),
            dims("bias", units),
            dims("output", batches, units),
            Call(
                self.name,
                (*("&sums" for _ in sums), "&filters", "&units", "&params", "&to_state", "&to_output",
                 "&input_dims", site.input(0).pointer, "&state_dims", site.input(4).pointer,
                 "&features_dims", site.constant("features"), "&time_dims", site.constant("time"),
                 "&bias_dims", site.constant("bias"), "&output_dims", site.output.pointer),
                SUCCESS,
            ),
        )  # fmt: skip


class CmsisSvdfInt8(CmsisSvdf):
    """SVDF whose state and time weights are int8 without a zero point, which CMSIS-NN does not support."""

    name = "arm_svdf_s8"
    state_dtype = "int8"

    def accepts(self, op: Op, context: Context) -> bool:
        # 4.0's MVE code writes after the state
        sound = not context.target.mve or context.cmsis_nn > (4, 0)
        return super().accepts(op, context) and sound and op.operand(4).zero_point == 0

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = super().constants(op, context)
        if not context.target.mve or context.cmsis_nn < (5, 0):
            return found
        sums = op.operand(1).values.astype(np.int64).sum(axis=1)
        # since 7.0 the function expects the sums multiplied by the input's offset
        return (*found, int32s("sums", -op.input.zero_point * sums if context.cmsis_nn >= (7, 0) else sums))

    def sums(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """Return the context of the sums of each filter's weights: since 5.0, and read by MVE code alone."""
        if context.cmsis_nn < (5, 0):
            return ()
        if not context.target.mve:
            return (buffer("sums"),)
        # the field is a pointer to non-const, though CMSIS-NN only reads
        return (buffer("sums", f"(void *){site.constant('sums')}", 4 * op.operand(2).shape[0]),)
