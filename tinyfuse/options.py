"""The options that change what is generated. `gen`, `report` and `verify` share them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinyfuse.errors import UsageError

KERNELS = ("auto", "cmsis-nn", "tinyfuse")
FUSION = ("none", "basic", "rows")
WEIGHTS = ("packed", "unpacked")
OPTIMIZE = ("speed", "balanced", "ram")
#: levels of optimization that the generated code is compiled at; the flag without its dash
COMPILER_OPTS = ("O0", "Og", "O1", "O2", "O3", "Os", "Oz")
CMSIS_NN_VERSIONS = {"4.0": (4, 0), "4.1": (4, 1), "5.0": (5, 0), "6.0": (6, 0), "7.0": (7, 0)}


@dataclass(frozen=True)
class Options:
    """name: prefix of the module's C names (already safe); max_ram, max_flash: bytes or None;
    plugins: names of plugin files; cmsis_nn_lacks: functions that the tree at hand has not, though its version does."""

    name: str
    kernels: str = "auto"
    fusion: str = "rows"
    optimize: str = "balanced"
    weights: str = "packed"
    feed_rows: bool = False
    plugins: tuple[str, ...] = ()
    cmsis_nn_version: str = "7.0"
    cmsis_nn_lacks: tuple[str, ...] = ()
    max_ram: int | None = None
    max_flash: int | None = None


def parse_size(text: str | None) -> int | None:
    """Bytes of "20480", "20K", "64KiB" or "1M" (K and M are 1024 and 1024**2); None stays None."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,12})\s*([kKmM]?)(?:i?[bB])?\s*", text)
    if not match:
        raise UsageError(f"{text!r} is not a size; write bytes, or 64K, or 1M")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()]
