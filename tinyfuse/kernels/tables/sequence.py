"""Kernels of operators with memory and of the signal library, in order of preference."""

from __future__ import annotations

from tinyfuse.kernels.cmsis.sequence import CmsisLstm, CmsisSvdf, CmsisSvdfInt8
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.sequence import signal, states
from tinyfuse.kernels.sequence.memory import (
    ComputedLstm,
    ComputedSvdf,
    LstmF32,
    LstmWhole,
    SvdfActivatedF32,
    SvdfF32,
    SvdfWhole,
)
from tinyfuse.kernels.sequence.signal import DelayKernel, FramerKernel, OverlapAddKernel, StackerKernel
from tinyfuse.ops.sequence.signal_fft import ARITHMETIC

#: kind -> kernels
SEQUENCE: dict[str, tuple[Kernel, ...]] = {
    "SVDF": (SvdfWhole(), SvdfF32(), SvdfActivatedF32(), CmsisSvdf(), CmsisSvdfInt8()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (LstmWhole("int8"), LstmWhole("int16"), LstmF32(), CmsisLstm()),
    "COMPUTED_SVDF": (ComputedSvdf(SvdfWhole()), ComputedSvdf(SvdfF32()), ComputedSvdf(SvdfActivatedF32())),
    "COMPUTED_LSTM": (ComputedLstm(LstmWhole("int8")), ComputedLstm(LstmWhole("int16")), ComputedLstm(LstmF32())),
    "READ_VARIABLE": (states.ReadVariable(),),
    "ASSIGN_VARIABLE": (states.AssignVariable(),),
    "ASSIGN_ONCE": (states.AssignOnce(),),
    "CUSTOM CIRCULAR_BUFFER": (states.CircularBufferKernel(),),
    "CUSTOM SignalWindow": (signal.WindowKernel(),),
    "CUSTOM SignalFftAutoScale": (signal.FftAutoScaleKernel(),),
    "CUSTOM SignalRfft": tuple(signal.FftKernel(False, dtype) for dtype in ARITHMETIC),
    "CUSTOM SignalIrfft": tuple(signal.FftKernel(True, dtype) for dtype in ARITHMETIC),
    "CUSTOM SignalEnergy": (signal.EnergyKernel(),),
    "CUSTOM SignalFilterBank": (signal.FilterBankKernel(), signal.ComputedFilterBankKernel()),
    "CUSTOM SignalFilterBankSquareRoot": (signal.SquareRootKernel(),),
    "CUSTOM SignalFilterBankSpectralSubtraction": (signal.SpectralSubtractionKernel(),),
    "CUSTOM SignalPCAN": (signal.PcanKernel(),),
    "CUSTOM SignalFilterBankLog": (signal.FilterBankLogKernel(),),
    "CUSTOM SignalFramer": (FramerKernel(),),
    "CUSTOM SignalStacker": (StackerKernel(),),
    "CUSTOM SignalDelay": (DelayKernel(),),
    "CUSTOM SignalOverlapAdd": (OverlapAddKernel("int16"), OverlapAddKernel("float32")),
    "RING_PUSH": (states.RingPush(),),
    "RING_ROWS": (states.CopyRingRows(),),
    "MOVE_SUM": (states.MoveSums("int8"), states.MoveSums("int16")),
    "AWAIT_WINDOW": (states.AwaitWindow(),),
    "AWAIT_ROWS": (states.AwaitRows(),),
}  # fmt: skip
