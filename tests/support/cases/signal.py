"""Operators of TFLM's signal library without state: Fourier transforms of every radix and dtype, filter banks."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cases.common import broken_rules, constant, operator, tensor
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.sequence.signal_filter_bank import FilterBank, FilterBankLog, Pcan
from tinyfuse.ops.sequence.signal_spectrum import Energy, Fft, Window


def _plain(shape, dtype: str) -> Tensor:
    return tensor(shape, None, dtype=dtype)


def _window(shape, shift: int, seed: int = 0) -> Op:
    weights = np.random.default_rng(seed).integers(-32768, 32768, shape[-1]).astype(np.int16)
    return operator("CUSTOM SignalWindow", [_plain(shape, "int16"), constant(weights)], _plain(shape, "int16"),
                    Window(shift))  # fmt: skip


def _auto_scale(samples: int) -> Op:
    outputs = [_plain((samples,), "int16"), _plain((), "int32")]
    return operator("CUSTOM SignalFftAutoScale", [_plain((samples,), "int16")], outputs)


def _rfft(length: int, dtype: str = "int16", samples: int | None = None, batch: tuple[int, ...] = ()) -> Op:
    signal = _plain((*batch, samples or length), dtype)
    return operator("CUSTOM SignalRfft", [signal], _plain((*batch, length + 2), dtype), Fft(length, dtype))


def _irfft(length: int, dtype: str = "int16", batch: tuple[int, ...] = ()) -> Op:
    spectrum = _plain((*batch, length + 2), dtype)
    return operator("CUSTOM SignalIrfft", [spectrum], _plain((*batch, length), dtype), Fft(length, dtype))


def _energy(bins: int, start: int = 0, end: int | None = None) -> Op:
    attributes = Energy(start, bins if end is None else end)
    return operator("CUSTOM SignalEnergy", [_plain((2 * bins,), "int16")], _plain((bins,), "uint32"), attributes)


def _filter_bank(bins: int, widths: tuple[int, ...], lowest: int = 0, seed: int = 0) -> Op:
    """A filter bank of adjacent channels; the first width counts energies before them. Weights start at `lowest`."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *widths[:-1]]).astype(np.int16)
    sizes = [rng.integers(lowest, 4097, max(1, sum(widths))).astype(np.int16) for _ in range(2)]
    tables = (*sizes, starts, starts, np.array(widths, np.int16))
    channels = len(widths) - 1
    return operator("CUSTOM SignalFilterBank", [_plain((bins,), "uint32"), *map(constant, tables)],
                    _plain((channels,), "uint64"), FilterBank(channels))  # fmt: skip


def _root(channels: int) -> Op:
    return operator("CUSTOM SignalFilterBankSquareRoot", [_plain((channels,), "uint64"), _plain((), "int32")],
                    _plain((channels,), "uint32"))  # fmt: skip


def _pcan(channels: int, shift: int, seed: int = 0, gains: int = 125) -> Op:
    table = np.random.default_rng(seed).integers(-32768, 32768, gains).astype(np.int16)
    inputs = [_plain((channels,), "uint32"), _plain((channels,), "uint32"), constant(table)]
    return operator("CUSTOM SignalPCAN", inputs, _plain((channels,), "uint32"), Pcan(shift))


def _log(channels: int, scale: int = 64, correction: int = 3) -> Op:
    return operator("CUSTOM SignalFilterBankLog", [_plain((channels,), "uint32")], _plain((channels,), "int16"),
                    FilterBankLog(scale, correction))  # fmt: skip


_DTYPES = ("int16", "int32", "float32")
NAMED = {
    "CUSTOM SignalWindow": {
        "of one frame": _window((480,), 12),
        "of frames": _window((1, 3, 17), 15),
        "that saturates": _window((2, 33), 0),
        "far shift": _window((5,), 31),
    },
    "CUSTOM SignalFftAutoScale": {"samples": _auto_scale(512), "few": _auto_scale(3), "one": _auto_scale(1)},
    "CUSTOM SignalRfft": {
        **{f"512 of {dtype}": _rfft(512, dtype) for dtype in _DTYPES},
        **{f"radices 2, 3, 4 and 5 of {dtype}": _rfft(240, dtype) for dtype in _DTYPES},
        **{f"zeros after {dtype}": _rfft(64, dtype, 37) for dtype in _DTYPES},
        **{f"three of {dtype}": _rfft(18, dtype, batch=(3,)) for dtype in _DTYPES},
        **{f"odd points of {dtype}": _rfft(30, dtype, batch=(1, 2)) for dtype in _DTYPES},
        "shortest": _rfft(4),
        "only fives": _rfft(50),
        "only threes": _rfft(54, "int32"),
        "radix 2 at the end": _rfft(16, "float32"),
    },
    "CUSTOM SignalIrfft": {
        **{f"512 of {dtype}": _irfft(512, dtype) for dtype in _DTYPES},
        **{f"radices 2, 3, 4 and 5 of {dtype}": _irfft(240, dtype) for dtype in _DTYPES},
        **{f"odd points of {dtype}": _irfft(30, dtype, batch=(2,)) for dtype in _DTYPES},
        "shortest": _irfft(4),
    },
    "CUSTOM SignalEnergy": {"all bins": _energy(257)},
    "CUSTOM SignalFilterBank": {
        "channels": _filter_bank(257, (4, 0, 8, 12, 16, 24)),
        "negative weights": _filter_bank(40, (1, 7, 9, 20), -4096),
        "channels without bins": _filter_bank(9, (0, 0, 4, -1, 5)),
    },
    "CUSTOM SignalFilterBankSquareRoot": {"channels": _root(40), "one": _root(1)},
    "CUSTOM SignalPCAN": {
        "channels": _pcan(40, 6),
        "no shift": _pcan(33, 0),
        "far shift": _pcan(9, 40),
        "longer table": _pcan(5, 12, gains=130),
    },
    "CUSTOM SignalFilterBankLog": {
        "channels": _log(40),
        "no correction": _log(33, 1600, 0),
        "that saturates": _log(70, 1 << 16, 0),
        "that wraps": _log(70, -3, 5),
    },
}

_lengths = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)).map(
    lambda powers: 4 * 2 ** powers[0] * 3 ** powers[1] * 5 ** powers[2]
)
_seeds = st.integers(0, 99)


@st.composite
def _random_rfft(draw) -> Op:
    length = draw(_lengths)
    return _rfft(length, draw(st.sampled_from(_DTYPES)), draw(st.integers(1, length)), (draw(st.integers(1, 3)),))


@st.composite
def _random_filter_bank(draw) -> Op:
    widths = tuple(draw(st.lists(st.integers(0, 9), min_size=2, max_size=12)))
    return _filter_bank(sum(widths) + 1, widths, draw(st.sampled_from([0, -4096])), draw(_seeds))


RANDOM = {
    kind: strategy.filter(lambda op: not broken_rules(op))
    for kind, strategy in {
        "CUSTOM SignalWindow": st.builds(
            _window, st.tuples(st.integers(1, 3), st.integers(1, 40)), st.integers(0, 31), _seeds
        ),
        "CUSTOM SignalFftAutoScale": st.integers(1, 99).map(_auto_scale),
        "CUSTOM SignalRfft": _random_rfft(),
        "CUSTOM SignalIrfft": st.builds(_irfft, _lengths, st.sampled_from(_DTYPES)),
        "CUSTOM SignalEnergy": st.integers(1, 99).map(_energy),
        "CUSTOM SignalFilterBank": _random_filter_bank(),
        "CUSTOM SignalFilterBankSquareRoot": st.integers(1, 99).map(_root),
        "CUSTOM SignalPCAN": st.builds(_pcan, st.integers(1, 50), st.integers(0, 40), _seeds),
        "CUSTOM SignalFilterBankLog": st.builds(
            _log, st.integers(1, 50), st.integers(-100, 1 << 17), st.integers(0, 9)
        ),
    }.items()
}
