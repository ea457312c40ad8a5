"""tinyfuse compiles quantized TensorFlow Lite, ONNX and ExecuTorch models to C for Cortex-M, ahead of time.

    module = tinyfuse.compile("kws.tflite", "cortex-m4")
    module.ram_bytes, module.predicted_instructions
    module.write("kws_tinyfuse")

The names in `__all__` are the Python API (docs/python.md); everything else below `tinyfuse.` may change with any
version. Names are loaded at their first use, so that reading the version needs no other package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyfuse.api.choosing import choose_bits
    from tinyfuse.api.estimating import Estimate, estimate
    from tinyfuse.api.module import Module, compile
    from tinyfuse.api.quantizing import quantize
    from tinyfuse.api.results import FusionGroup, Outputs, Port, Verification
    from tinyfuse.api.settings import Settings
    from tinyfuse.bits.search import BitPlan, ChosenBits
    from tinyfuse.blame.blame import Blame, Int16Cost, LayerErrors
    from tinyfuse.errors import (
        CompileError,
        DoesNotFit,
        EmulationFailed,
        InternalFault,
        Problem,
        TinyfuseError,
        ToolMissing,
        UsageError,
    )
    from tinyfuse.evaluate.result import ClassScore, Evaluation, Mistake, Threshold
    from tinyfuse.evaluate.statistics import Score
    from tinyfuse.quantization.convert import Quantized
    from tinyfuse.quantization.islands import Island

__version__ = "0.1.0"

#: module -> names of the API in it; loaded on demand, because estimates need no verification, for example
_API = {
    "tinyfuse.api.choosing": ("choose_bits",),
    "tinyfuse.api.estimating": ("Estimate", "estimate"),
    "tinyfuse.api.module": ("Module", "compile"),
    "tinyfuse.api.quantizing": ("quantize",),
    "tinyfuse.api.results": ("FusionGroup", "Outputs", "Port", "Verification"),
    "tinyfuse.api.settings": ("Settings",),
    "tinyfuse.bits.search": ("BitPlan", "ChosenBits"),
    "tinyfuse.blame.blame": ("Blame", "Int16Cost", "LayerErrors"),
    "tinyfuse.quantization.convert": ("Quantized",),
    "tinyfuse.quantization.islands": ("Island",),
    "tinyfuse.evaluate.result": ("ClassScore", "Evaluation", "Mistake", "Threshold"),
    "tinyfuse.evaluate.statistics": ("Score",),
    "tinyfuse.errors": (
        "CompileError", "DoesNotFit", "EmulationFailed", "InternalFault", "Problem", "TinyfuseError", "ToolMissing",
        "UsageError",
    ),
}  # fmt: skip
__all__ = [
    "BitPlan", "Blame", "ChosenBits", "ClassScore", "CompileError", "DoesNotFit", "EmulationFailed", "Estimate",
    "Evaluation", "FusionGroup", "Int16Cost", "InternalFault", "Island", "LayerErrors", "Mistake", "Module",
    "Outputs", "Port", "Problem", "Quantized", "Score", "Settings", "Threshold", "TinyfuseError", "ToolMissing",
    "UsageError", "Verification", "__version__", "choose_bits", "compile", "estimate", "quantize",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # import_module instead of an import statement: all modules import the version from here, which would be circular
    for module, names in _API.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
