"""Models of TFLM's signal library that keep state, built in code: a name -> the .tflite's bytes.

Operators stand side by side in one model, so that few programs test many of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tflite
from cases.common import TENSOR_TYPES, flexbuffer
from tflite_builder import ModelBuilder


class SignalNet:
    """Operators of the signal library, each with its own input or on tensors of others."""

    def __init__(self) -> None:
        self.model = ModelBuilder()
        self.rng = np.random.default_rng(11)
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.made = 0

    def tensor(self, shape: Sequence[int], dtype: str, data: np.ndarray | None = None) -> int:
        self.made += 1
        return self.model.tensor(f"t{self.made}", shape, dtype, data=data)

    def constant(self, data: np.ndarray) -> int:
        return self.tensor(data.shape, str(data.dtype), data)

    def input(self, shape: Sequence[int], dtype: str = "int16") -> int:
        self.inputs.append(self.tensor(shape, dtype))
        return self.inputs[-1]

    def add(self, name: str, inputs: Sequence[int], outputs: Sequence[tuple], **options) -> list[int]:
        """Adds an operator with outputs of these (shape, dtype)."""
        made = [self.tensor(*output) for output in outputs]
        written = flexbuffer(options) if options else None
        code = name if name.isupper() else f"Signal{name}"
        self.model.op("CUSTOM", inputs, made, table=False, custom_code=code, custom_options=written)
        return made

    def show(self, tensors: Sequence[int]) -> None:
        self.outputs += tensors

    def build(self) -> bytes:
        return self.model.build(self.inputs, self.outputs)

    # --- operators --------------------------------------------------------------------------

    def framer(self, shape: tuple[int, ...], size: int, step: int, prefill: bool) -> list[int]:
        frames = (*shape[:-1], shape[-1] // step, size)
        return self.add("Framer", [self.input(shape)], [(frames, "int16"), ((), "bool")], frame_size=size,
                        frame_step=step, prefill=prefill)  # fmt: skip

    def stacker(self, channels: int, left: int, right: int, step: int) -> list[int]:
        stack = (channels * (left + right + 1),)
        return self.add("Stacker", [self.input((channels,))], [(stack, "int16"), ((), "bool")], num_channels=channels,
                        stacker_left_context=left, stacker_right_context=right, stacker_step=step)  # fmt: skip

    def delay(self, shape: tuple[int, ...], length: int) -> list[int]:
        return self.add("Delay", [self.input(shape)], [(shape, "int16")], delay_length=length)

    def overlap_add(self, shape: tuple[int, ...], step: int, dtype: str = "int16") -> list[int]:
        out = (*shape[:-2], shape[-2] * step)
        return self.add("OverlapAdd", [self.input(shape, dtype)], [(out, dtype)], T=TENSOR_TYPES[dtype],
                        frame_step=step)  # fmt: skip

    def spectral_subtraction(self, channels: int, clamping: bool, x: int | None = None, bits: int = 14,
                             smoothing_bits: int = 10) -> list[int]:  # fmt: skip
        one = 1 << bits
        x = self.input((channels,), "uint32") if x is None else x
        return self.add(
            "FilterBankSpectralSubtraction", [x], [((channels,), "uint32")] * 2, num_channels=channels,
            smoothing=one // 40, one_minus_smoothing=one - one // 40, alternate_smoothing=one // 16,
            alternate_one_minus_smoothing=one - one // 16, smoothing_bits=smoothing_bits,
            min_signal_remaining=one // 20, clamping=clamping, spectral_subtraction_bits=bits,
        )  # fmt: skip


def streams() -> bytes:
    """Every operator that keeps samples, with frames that are complete from the beginning."""
    net = SignalNet()
    net.show(net.framer((160,), 40, 16, True))
    net.show(net.framer((2, 24), 12, 12, True))
    net.show(net.framer((24,), 5, 12, False))
    net.show(net.stacker(4, 3, 0, 1))
    net.show(net.stacker(3, 0, 0, 1))
    net.show(net.delay((3, 8), 5))
    net.show(net.delay((8,), 19))
    net.show(net.delay((6,), 0))
    net.show(net.overlap_add((4, 10), 4))
    net.show(net.overlap_add((2, 3, 7), 7))
    net.show(net.overlap_add((2, 3, 9), 2, "float32"))
    return net.build()


def noise() -> bytes:
    """Noise estimates, with and without clamp and fraction bits."""
    net = SignalNet()
    net.show(net.spectral_subtraction(11, False))
    net.show(net.spectral_subtraction(4, True))
    net.show(net.spectral_subtraction(5, True, bits=20, smoothing_bits=0))
    return net.build()


def incomplete() -> bytes:
    """Frames and stacks that are not complete in every run: pairs of outputs, of which the second one is the flag."""
    net = SignalNet()
    net.show(net.framer((32,), 40, 16, False))
    net.show(net.framer((2, 10), 25, 10, False))
    net.show(net.framer((9,), 27, 3, False))
    net.show(net.stacker(4, 3, 0, 2))
    net.show(net.stacker(5, 1, 2, 3))
    net.show(net.stacker(3, 0, 4, 5))
    net.show(net.stacker(2, 2, 2, 1))
    return net.build()


def windows(cycles: tuple[int, ...] = (2, 3), shown: bool = True) -> bytes:
    """Two layers of a streaming model: convolutions over the last frames, each of which waits for new ones, between two
    sums over frames."""
    net = SignalNet()
    model, quant = net.model, {"scale": 0.05, "zero_point": -6}
    x = model.tensor("frame", (1, 1, 4, 3), **quant)
    net.inputs.append(x)
    for number, (slots, cycle) in enumerate(zip((4, 3), cycles, strict=True)):
        window = model.tensor(f"window{number}", (1, slots, 4, 3), is_variable=True, **quant)
        model.op("CUSTOM", [x], [window], table=False, custom_code="CIRCULAR_BUFFER",
                 custom_options=flexbuffer({"cycles_max": cycle}))  # fmt: skip
        data = net.rng.integers(-60, 60, (3, slots, 1, 3)).astype(np.int8)
        weights = model.tensor(f"weights{number}", data.shape, scale=0.02, zero_point=0, data=data)
        bias = model.tensor(f"bias{number}", (3,), "int32", data=net.rng.integers(-900, 900, 3).astype(np.int32))
        x = model.tensor(f"conv{number}", (1, 1, 4, 3), **quant)
        model.op("CONV_2D", [window, weights, bias], [x], padding="VALID", stride_h=1, stride_w=1,
                 dilation_h_factor=1, dilation_w_factor=1, fused_activation_function="RELU")  # fmt: skip
        net.show([window] if shown else [])
    net.show([x])
    return net.build()


def guessed_cycles() -> bytes:
    """CIRCULAR_BUFFERs without options: TFLM takes one frame for each result with 5 slots, and two with 4."""
    net = SignalNet()
    x = net.model.tensor("frame", (1, 1, 1, 6), scale=0.1, zero_point=3)
    net.inputs.append(x)
    for slots in (5, 4):
        window = net.model.tensor(f"window{slots}", (1, slots, 1, 6), scale=0.1, zero_point=3, is_variable=True)
        net.model.op("CUSTOM", [x], [window], table=False, custom_code="CIRCULAR_BUFFER")
        net.show([window])
    return net.build()


SIGNAL_MODELS = {
    "signal streams": streams(),
    "signal noise": noise(),
    "incomplete frames": incomplete(),
    "windows that await frames": windows(),
    "windows of convolutions alone": windows((1, 4), shown=False),
    "windows of guessed cycles": guessed_cycles(),
}

#: operators that are tested here alone: kinds that keep state
STATE_KINDS = (
    "CUSTOM CIRCULAR_BUFFER", "CUSTOM SignalFramer", "CUSTOM SignalStacker", "CUSTOM SignalDelay",
    "CUSTOM SignalOverlapAdd", "CUSTOM SignalFilterBankSpectralSubtraction",
)  # fmt: skip


def of_kinds() -> dict[str, int]:
    """Kind of operator -> how many of it the models have."""
    found = dict.fromkeys(STATE_KINDS, 0)
    for data in SIGNAL_MODELS.values():
        model = tflite.Model.GetRootAs(data, 0)
        graph = model.Subgraphs(0)
        for i in range(graph.OperatorsLength()):
            code = model.OperatorCodes(graph.Operators(i).OpcodeIndex()).CustomCode()
            kind = f"CUSTOM {(code or b'').decode()}"
            if kind in found:
                found[kind] += 1
    return found
