"""Imports packages that only some commands need, each an extra of pyproject.toml, or says how to install them."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tinyfuse.errors import ToolMissing


@dataclass(frozen=True)
class Package:
    """Package that some commands need.

    name   its name on PyPI
    extra  extra of tinyfuse that includes it
    pre    PyPI has only pre-releases of it
    """

    name: str
    extra: str
    pre: bool = False

    @property
    def install(self) -> str:
        """Hint at how to install it. tinyfuse is on no registry, so the extra is installed from a checkout or a
        wheel."""
        alone = f"pip install {'--pre ' if self.pre else ''}{self.name}"
        return f"{alone}; or everything of the extra {self.extra}: {install_extra(self.extra)}"


def install_extra(extra: str) -> str:
    """Commands that install an extra of tinyfuse."""
    return f"pip install '.[{extra}]' in tinyfuse's checkout, pip install 'WHEEL[{extra}]' with the path of its wheel"


#: imported module -> its package
PACKAGES = {
    "elftools": Package("pyelftools", "verify"),
    "tflite_micro": Package("tflite-micro", "verify", pre=True),
    "ai_edge_litert": Package("ai-edge-litert", "litert"),
    "onnxruntime": Package("onnxruntime", "onnx"),
    "executorch": Package("executorch", "executorch"),
    "ai_edge_quantizer": Package("ai-edge-quantizer", "quantize"),
    "cmsis_pack_manager": Package("cmsis-pack-manager", "packs"),
    "serial": Package("pyserial", "board"),
    "yaml": Package("PyYAML", "csolution"),
    "PIL": Package("Pillow", "images"),
    "soundfile": Package("soundfile", "audio"),
}


def require_package(module: str) -> None:
    """Raise ToolMissing, with the extra, if a module of PACKAGES cannot be imported."""
    if importlib.util.find_spec(module) is None:
        raise ToolMissing(PACKAGES[module].name, PACKAGES[module].install)


def import_package(module: str) -> Any:
    """Imports a module of PACKAGES, or a submodule ("elftools.elf.elffile"). ToolMissing, with the extra, if it is not
    installed."""
    require_package(module.partition(".")[0])
    return import_module(module)
