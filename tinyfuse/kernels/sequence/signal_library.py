"""The kernels of TFLM's signal library, by kind."""

from __future__ import annotations

from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.sequence.signal import (
    ComputedFilterBankKernel,
    EnergyKernel,
    FftAutoScaleKernel,
    FftKernel,
    FilterBankKernel,
    FilterBankLogKernel,
    PcanKernel,
    SpectralSubtractionKernel,
    SquareRootKernel,
    WindowKernel,
)
from tinyfuse.kernels.sequence.signal_streams import DelayKernel, FramerKernel, OverlapAddKernel, StackerKernel
from tinyfuse.ops.sequence.signal_fft import ARITHMETIC

SIGNAL_LIBRARY: dict[str, tuple[Kernel, ...]] = {
    "CUSTOM SignalWindow": (WindowKernel(),),
    "CUSTOM SignalFftAutoScale": (FftAutoScaleKernel(),),
    "CUSTOM SignalRfft": tuple(FftKernel(False, dtype) for dtype in ARITHMETIC),
    "CUSTOM SignalIrfft": tuple(FftKernel(True, dtype) for dtype in ARITHMETIC),
    "CUSTOM SignalEnergy": (EnergyKernel(),),
    "CUSTOM SignalFilterBank": (FilterBankKernel(), ComputedFilterBankKernel()),
    "CUSTOM SignalFilterBankSquareRoot": (SquareRootKernel(),),
    "CUSTOM SignalFilterBankSpectralSubtraction": (SpectralSubtractionKernel(),),
    "CUSTOM SignalPCAN": (PcanKernel(),),
    "CUSTOM SignalFilterBankLog": (FilterBankLogKernel(),),
    "CUSTOM SignalFramer": (FramerKernel(),),
    "CUSTOM SignalStacker": (StackerKernel(),),
    "CUSTOM SignalDelay": (DelayKernel(),),
    "CUSTOM SignalOverlapAdd": (OverlapAddKernel("int16"), OverlapAddKernel("float32")),
}
