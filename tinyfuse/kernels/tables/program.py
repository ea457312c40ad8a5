"""Kernels of operators that run other ones or another processor, in order of preference."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.movement.at_axes import at_axes_kernels
from tinyfuse.kernels.program.control_flow import If, While
from tinyfuse.kernels.program.detection import DetectionKernel
from tinyfuse.kernels.program.ethos_u import EthosUProgram
from tinyfuse.kernels.program.feed_rows import FeedRow
from tinyfuse.kernels.program.tiled import TiledRows
from tinyfuse.kernels.tables.movement import MOVEMENT
from tinyfuse.kernels.tables.pooling_reduce import POOLING_REDUCE
from tinyfuse.ops.layers.tiled import TILE_ROWS


def program_kernels(kernels_for: Callable[[Op], tuple[Kernel, ...]]) -> dict[str, tuple[Kernel, ...]]:
    """Kernels by operator kind, the preferred first. `kernels_for` gives those of an operator inside a TILED."""
    return {
        "CUSTOM TFLite_Detection_PostProcess": (DetectionKernel(),),
        "CUSTOM ethos-u": (EthosUProgram(),),
        "IF": (If(),),
        "WHILE": (While(),),
        "FEED_ROWS": (FeedRow(),),
        "TILED": tuple(TiledRows(rows, kernels_for) for rows in TILE_ROWS),
        "AT_AXES": at_axes_kernels({**POOLING_REDUCE, **MOVEMENT}),
    }
