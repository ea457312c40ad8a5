"""Packages that only some commands need, each of an extra of pyproject.toml: their imports, and how they install."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tinyfuse.errors import ToolMissing


@dataclass(frozen=True)
class Package:
    """name: its name on PyPI; extra: that of tinyfuse which has it; pre: whether PyPI has pre-releases of it alone."""

    name: str
    extra: str
    pre: bool = False

    @property
    def install(self) -> str:
        """How to get it: tinyfuse itself is on no registry, so the extra comes from where tinyfuse came from."""
        alone = f"pip install {'--pre ' if self.pre else ''}{self.name}"
        return f"{alone}; or all that the extra {self.extra} has: {install_extra(self.extra)}"


def install_extra(extra: str) -> str:
    """How an extra of tinyfuse is installed."""
    return f"pip install '.[{extra}]' in tinyfuse's checkout, pip install 'WHEEL[{extra}]' with the path of its wheel"


#: what is imported -> the package that has it
PACKAGES = {
    "elftools": Package("pyelftools", "verify"),
    "tflite_micro": Package("tflite-micro", "verify", pre=True),
    "ai_edge_litert": Package("ai-edge-litert", "litert"),
    "onnxruntime": Package("onnxruntime", "onnx"),
    "executorch": Package("executorch", "executorch"),
    "cmsis_pack_manager": Package("cmsis-pack-manager", "packs"),
    "serial": Package("pyserial", "board"),
    "yaml": Package("PyYAML", "csolution"),
}


def need(module: str) -> None:
    """Does nothing where a module of PACKAGES can be imported; else ToolMissing with its extra."""
    if importlib.util.find_spec(module) is None:
        raise ToolMissing(PACKAGES[module].name, PACKAGES[module].install)


def load(module: str) -> Any:
    """A module of PACKAGES, or a part of one ("elftools.elf.elffile"). ToolMissing, with the extra, where it is not
    installed."""
    need(module.partition(".")[0])
    return import_module(module)
