"""What `compile` and `estimate` take: a model, a target, and settings that are checked before anything is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from tinyfuse.emit.identifiers import default_module_name, module_name
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import load_file
from tinyfuse.options import CMSIS_NN_VERSIONS, FUSION, KERNELS, OPTIMIZE, WEIGHTS, Options, parse_size
from tinyfuse.targets import Target, load_target

#: a model: the path of a .tflite file, or its bytes
Model = str | os.PathLike[str] | bytes | bytearray | memoryview

_LATEST = "7.0"


class Settings(TypedDict, total=False):
    """What changes the generated code; the keyword arguments of `compile` and `estimate`, all optional.

    name              prefix of the module's C names; default: made of the file's name, "model" for bytes
    kernels           "auto" (default): the faster one; "cmsis-nn": wherever it has one; "tinyfuse": ours alone
    fusion            "none": an operator a step; "basic": activations and padding folded; "rows" (default): groups
                      that stream rows
    optimize          "speed", "balanced" (default: the least RAM within 7 % of the fewest instructions), "ram"
    weights           "packed" (default), or "unpacked": int16 in flash, for cores with DSP extension
    feed_rows         the module takes its image row by row (default: False)
    plugins           Python files that add operators and patterns (docs/plugins.md); they are run
    cmsis_nn_version  the API of CMSIS-NN that the code calls, "4.0" to "7.0" (the default)
    max_ram           bytes of arena and state together, or "64K", "1M"; `compile` fails where they are more
    max_flash         bytes of weights and code together, likewise
    """

    name: str | None
    kernels: Literal["auto", "cmsis-nn", "tinyfuse"]
    fusion: Literal["none", "basic", "rows"]
    optimize: Literal["speed", "balanced", "ram"]
    weights: Literal["packed", "unpacked"]
    feed_rows: bool
    plugins: Sequence[str | os.PathLike[str]]
    cmsis_nn_version: str | None
    max_ram: int | str | None
    max_flash: int | str | None


@dataclass(frozen=True)
class Request:
    """data: the model file's bytes; path: what messages and generated files call it; plugins: paths."""

    data: bytes
    path: str
    target: Target
    options: Options
    plugins: tuple[str, ...]


_CHOICES = {
    "kernels": KERNELS,
    "fusion": FUSION,
    "optimize": OPTIMIZE,
    "weights": WEIGHTS,
    "feed_rows": (False, True),
    "cmsis_nn_version": (None, *CMSIS_NN_VERSIONS),
}


def make_request(model: Model, target: str, settings: Settings) -> Request:
    """The request after the arguments. TypeError for a setting that there is not or a model of another type,
    UsageError for a wrong value, CompileError where the file can't be read."""
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        known = ", ".join(Settings.__annotations__)
        raise TypeError(f"there is no setting {', '.join(sorted(unknown))}; there are {known}")
    for setting, choices in _CHOICES.items():
        value = settings.get(setting, choices[0])
        if value not in choices:
            raise UsageError(f"{setting}={value!r}: choose one of {', '.join(map(repr, choices))}")
    core = load_target(target)
    plugins = tuple(os.fspath(path) for path in settings.get("plugins", ()))
    chosen = settings.get("name")
    name = module_name(chosen) if chosen is not None else None
    if isinstance(model, (bytes, bytearray, memoryview)):
        name = name or "model"
        data, path = bytes(model), f"{name}.tflite"
    elif isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        data = load_file(path)
        name = name or default_module_name(path)
    else:
        raise TypeError(f"a model is a path or the bytes of a .tflite file, not {type(model).__name__}")
    options = Options(
        name=name,
        plugins=tuple(Path(plugin).name for plugin in plugins),
        cmsis_nn_version=settings.get("cmsis_nn_version") or _LATEST,
        max_ram=_size("max_ram", settings.get("max_ram")),
        max_flash=_size("max_flash", settings.get("max_flash")),
        **cast(
            Any,
            {
                key: settings[key]
                for key in ("kernels", "fusion", "optimize", "weights", "feed_rows")
                if key in settings
            },
        ),
    )
    return Request(data, path, core, options, plugins)


def _size(setting: str, value: int | str | None) -> int | None:
    """Bytes of a limit."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, str, type(None)))
        or (isinstance(value, int) and value < 0)
    ):
        raise UsageError(f"{setting}={value!r} is not a size; give bytes, or '64K', or '1M'")
    return value if isinstance(value, int) else parse_size(value)
