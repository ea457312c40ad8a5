"""Kernels of operators with memory and of the signal library, in order of preference."""

from __future__ import annotations

from tinyfuse.kernels.cmsis.lstm import CmsisLstm
from tinyfuse.kernels.cmsis.svdf import CmsisSvdf, CmsisSvdfInt8
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.sequence.computed_memory import ComputedLstm, ComputedSvdf
from tinyfuse.kernels.sequence.lstm import LstmF32, LstmWhole
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
from tinyfuse.kernels.sequence.states import (
    AssignOnce,
    AssignVariable,
    AwaitRows,
    AwaitWindow,
    CircularBufferKernel,
    CopyRingRows,
    MoveSums,
    ReadVariable,
    RingPush,
)
from tinyfuse.kernels.sequence.svdf import SvdfActivatedF32, SvdfF32, SvdfWhole
from tinyfuse.ops.sequence.signal_fft import ARITHMETIC

#: kind -> kernels
SEQUENCE: dict[str, tuple[Kernel, ...]] = {
    "SVDF": (SvdfWhole(), SvdfF32(), SvdfActivatedF32(), CmsisSvdf(), CmsisSvdfInt8()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (LstmWhole("int8"), LstmWhole("int16"), LstmF32(), CmsisLstm()),
    "COMPUTED_SVDF": (ComputedSvdf(SvdfWhole()), ComputedSvdf(SvdfF32()), ComputedSvdf(SvdfActivatedF32())),
    "COMPUTED_LSTM": (ComputedLstm(LstmWhole("int8")), ComputedLstm(LstmWhole("int16")), ComputedLstm(LstmF32())),
    "READ_VARIABLE": (ReadVariable(),),
    "ASSIGN_VARIABLE": (AssignVariable(),),
    "ASSIGN_ONCE": (AssignOnce(),),
    "CUSTOM CIRCULAR_BUFFER": (CircularBufferKernel(),),
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
    "RING_PUSH": (RingPush(),),
    "RING_ROWS": (CopyRingRows(),),
    "MOVE_SUM": (MoveSums("int8"), MoveSums("int16")),
    "AWAIT_WINDOW": (AwaitWindow(),),
    "AWAIT_ROWS": (AwaitRows(),),
}  # fmt: skip
