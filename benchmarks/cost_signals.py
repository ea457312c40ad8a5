"""Operators of TFLM's signal library to be measured."""

from __future__ import annotations

import random
from dataclasses import replace

from cases import signal
from cost_tensors import like
from signal_models import SignalNet

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op

_LENGTHS = (32, 64, 128, 256, 512, 96, 160, 240, 480, 50, 54)


def draw_signal(rng: random.Random, kind: str) -> Op:
    """With tensors of its own."""
    op = _DRAWS[kind](rng)
    inputs = tuple(t and like(t) for t in op.inputs)
    return replace(op, inputs=inputs, outputs=tuple(map(like, op.outputs)))


def _transform(rng: random.Random, inverse: bool) -> Op:
    length, dtype, batch = rng.choice(_LENGTHS), rng.choice(["int16", "int32", "float32"]), (rng.choice([1, 1, 2, 3]),)
    return signal._irfft(length, dtype, batch) if inverse else signal._rfft(length, dtype, batch=batch)


def _filter_bank(rng: random.Random) -> Op:
    widths = tuple(rng.choice([1, 2, 4, 8, 12]) for _ in range(rng.choice([4, 10, 20, 40])))
    return signal._filter_bank(sum(widths) + 1, widths)


def _streamed(rng: random.Random, kind: str) -> Op:
    """Of a model of this one operator, which keeps samples."""
    net = SignalNet()
    if kind == "Framer":
        size, step = rng.choice([(40, 16), (480, 320), (100, 50), (64, 64), (160, 80)])
        made = net.framer((step * rng.choice([1, 2, 4]),), size, step, True)
    elif kind == "Stacker":
        made = net.stacker(rng.choice([4, 10, 40]), rng.choice([0, 1, 3]), rng.choice([0, 1]), 1)
    elif kind == "Delay":
        made = net.delay((rng.choice([1, 2]), rng.choice([16, 80, 160])), rng.choice([5, 40, 160]))
    elif kind == "OverlapAdd":
        size, frames = rng.choice([10, 40, 128, 256]), rng.choice([1, 2, 4])
        made = net.overlap_add((frames, size), size // rng.choice([1, 2]), rng.choice(["int16", "float32"]))
    else:
        made = net.spectral_subtraction(rng.choice([4, 10, 20, 40, 80]), rng.random() < 0.3)
    net.show(made)
    (op,) = read_tflite("drawn", net.build()).ops
    return op


_DRAWS = {
    "CUSTOM SignalWindow": lambda rng: signal._window((rng.choice([1, 2, 3]), rng.choice([17, 64, 160, 480])), 12),
    "CUSTOM SignalFftAutoScale": lambda rng: signal._auto_scale(rng.choice([16, 64, 100, 240, 512])),
    "CUSTOM SignalRfft": lambda rng: _transform(rng, False),
    "CUSTOM SignalIrfft": lambda rng: _transform(rng, True),
    "CUSTOM SignalEnergy": lambda rng: signal._energy(rng.choice([9, 33, 65, 129, 257])),
    "CUSTOM SignalFilterBank": _filter_bank,
    "CUSTOM SignalFilterBankSquareRoot": lambda rng: signal._root(rng.choice([4, 10, 20, 40, 80])),
    "CUSTOM SignalPCAN": lambda rng: signal._pcan(rng.choice([4, 10, 20, 40, 80]), 6),
    "CUSTOM SignalFilterBankLog": lambda rng: signal._log(rng.choice([4, 10, 20, 40, 80])),
    "CUSTOM SignalFilterBankSpectralSubtraction": lambda rng: _streamed(rng, "FilterBankSpectralSubtraction"),
    **{
        f"CUSTOM Signal{kind}": lambda rng, kind=kind: _streamed(rng, kind)
        for kind in ("Framer", "Stacker", "Delay", "OverlapAdd")
    },
}
KINDS = tuple(_DRAWS)
