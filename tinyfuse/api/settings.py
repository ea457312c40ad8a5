"""Arguments of `compile` and `estimate`: a model, a target, and settings, checked before anything is read."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, cast

from tinyfuse.api.settings_help import settings_help
from tinyfuse.banks import parse_banks
from tinyfuse.cost.cycles import default_count
from tinyfuse.emit.identifiers import default_module_name, module_name
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.options import EvaluateOptions
from tinyfuse.frontend.labels import labels_of
from tinyfuse.frontend.reader import load_file
from tinyfuse.ir import Graph
from tinyfuse.options import (
    DECLARED,
    Flag,
    Options,
    ProfileOptions,
    RunOptions,
    VerifyOptions,
    default_weights,
    flags,
    parse_size,
    parse_step,
)
from tinyfuse.targets import Target, load_target

_FLAGS = flags(Options)

#: path of a .tflite file, or its bytes
Model = str | os.PathLike[str] | bytes | bytearray | memoryview

How = TypeVar("How", VerifyOptions, RunOptions, ProfileOptions, EvaluateOptions)


class Settings(TypedDict, total=False):
    """Keyword arguments of `compile` and `estimate` that change the generated code, all optional.

    None is the same as leaving a setting out. Options that can be repeated take a list. A model given as bytes is named
    "model" by default."""

    name: str | None
    kernels: Literal["auto", "tinyfuse", "mixed", "cmsis-nn"]
    fusion: Literal["none", "basic", "rows"]
    optimize: Literal["speed", "balanced", "ram"]
    count: Literal["instructions", "cycles"] | None
    timing: str | None
    recompute: float | None
    weights: Literal["auto", "packed", "unpacked", "winograd", "compressed"]
    weights_blob: bool
    feed_rows: bool
    input_layout: Literal["file", "nhwc"]
    output_layout: Literal["file", "nhwc"]
    step: bool
    slide: int | None
    slide_axis: int | None
    front_end: str | os.PathLike[str] | None
    plugins: Sequence[str | os.PathLike[str]]
    labels: Sequence[str | os.PathLike[str]]
    cmsis_nn_version: str | None
    memory: Sequence[str]
    max_step: int | str | None
    max_ram: int | str | None
    max_flash: int | str | None


_TEXT = settings_help({name: DECLARED[name] for name in Settings.__annotations__})
Settings.__doc__ = f"{cleandoc(Settings.__doc__ or '')}\n\n{_TEXT}\n"


@dataclass(frozen=True)
class Request:
    """Checked arguments of `compile`.

    data             content of the model file, after joining it with its front end
    path             name of the model in messages and generated files
    network          content of the model file without its front end
    plugins, labels  paths
    """

    data: bytes
    path: str
    target: Target
    options: Options
    plugins: tuple[str, ...]
    network: bytes
    labels: tuple[str, ...]


def make_request(model: Model, target: str, settings: Settings) -> Request:
    """Checks the arguments. TypeError for an unknown setting or another type of model, UsageError for an invalid value,
    CompileError if the file cannot be read."""
    given = cast(Mapping[str, Any], settings)
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        known = ", ".join(Settings.__annotations__)
        raise TypeError(f"unknown setting {', '.join(sorted(unknown))}; settings are {known}")
    for setting, flag in _FLAGS.items():
        choices = _choices(flag)
        if choices and setting in settings and given[setting] not in choices:
            raise UsageError(f"{setting}={given[setting]!r}: choose one of {', '.join(map(repr, choices))}")
        if flag.limits and given.get(setting) is not None:
            _check_limits(setting, given[setting], flag.limits)
    core = load_target(target)
    if isinstance(model, (bytes, bytearray, memoryview)):
        options = make_options(given, "model", core)
        data, path = bytes(model), f"{options.name}.tflite"
    elif isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        options = make_options(given, default_module_name(path), core)
        data = load_file(path)
    else:
        raise TypeError(f"a model is a path or the bytes of a .tflite file, not {type(model).__name__}")
    front, network = settings.get("front_end"), data
    if front is not None:
        from tinyfuse.frontend.join import with_front_end  # loads a package that only front ends need

        data = with_front_end(os.fspath(front), path, data)
    if isinstance(given.get("labels"), str):
        raise UsageError(f"labels={given['labels']!r}: give a list of files, as ['labels.txt']")
    plugins, labels = (tuple(map(os.fspath, given.get(setting, ()))) for setting in ("plugins", "labels"))
    return Request(data, path, core, options, plugins, network, labels)


def _choices(flag: Flag) -> tuple[Any, ...]:
    """All values that a setting may have, if they are few."""
    if flag.is_switch:
        return (False, True)
    return (None, *flag.choices) if flag.choices and flag.default is None else flag.choices


def make_options(given: Mapping[str, Any], default_name: str, target: Target) -> Options:
    """Options of a plan for a target, from options as flags or settings give them.

    Plugins are paths, and sizes may be text; None stands for the default. Names of other options are ignored, and so is
    `labels`, whose files `add_labels` reads. UsageError for an invalid name or size.
    """
    values = {key: value for key, value in given.items() if key in _FLAGS and value is not None and key != "labels"}
    values |= {key: _size(key, value) for key, value in values.items() if _FLAGS[key].is_size}
    values |= {key: _step(key, value) for key, value in values.items() if _FLAGS[key].is_step}
    values["step"] = values.get("step", False) or values.get("max_step") is not None
    values["name"] = module_name(values["name"]) if "name" in values else default_name
    values.setdefault("weights", default_weights(values.get("optimize")))
    values.setdefault("count", default_count(target, values.get("timing"), values.get("optimize")))
    values["memory"] = _banks(values.get("memory", ()), values.get("weights_blob", False))
    values["plugins"] = tuple(Path(path).name for path in values.get("plugins", ()))
    return Options(**values)


def add_labels(graph: Graph, options: Options, network: bytes, files: Sequence[str]) -> tuple[Graph, Options]:
    """Adds the labels of the network's outputs to the options, from the files named or the network's metadata, and
    warnings about unreadable ones to the graph. UsageError for a named file without labels."""
    labels, warnings = labels_of(graph, network, files)
    graph = replace(graph, warnings=(*graph.warnings, *warnings)) if warnings else graph
    return graph, replace(options, labels=labels)


def _banks(texts: Sequence[str], blob: bool) -> tuple[str, ...]:
    """Memory banks as Options store them, in the spelling of the command line."""
    if isinstance(texts, str):
        raise UsageError(f"memory={texts!r}: give a list of banks, as ['dtcm=64K']")
    banks = parse_banks(texts)
    if blob and any(bank.flash for bank in banks):
        raise UsageError(
            "with --weights-blob the firmware places the weights, so --memory may name only RAM banks (:ram)"
        )
    return tuple(map(str, banks))


def check_options(how: How) -> How:
    """Returns the options of a run unchanged. UsageError for a value that the command line refuses; emulators and
    oracles are checked when they are looked for."""
    for name, flag in flags(type(how)).items():
        value = getattr(how, name)
        if name in ("compiler", "compiler_opt") and value not in flag.choices:
            raise UsageError(f"{name}={value!r}: choose one of {', '.join(flag.choices)}")
        if flag.limits and value is not None:
            _check_limits(name, value, flag.limits)
    return how


def _step(setting: str, value: int | str) -> int | None:
    """Instructions of a step, from a number or a text such as "200us@80MHz". UsageError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or (isinstance(value, int) and value < 1):
        raise UsageError(f"{setting}={value!r} is not a step's length; give a number of instructions, or '200us@80MHz'")
    return value if isinstance(value, int) else parse_step(value)


def _check_limits(name: str, value: Any, limits: tuple[float, float | None]) -> None:
    """Raise UsageError if the value is not a number within a flag's limits."""
    least, most = limits
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not number
        or (name.startswith("slide") and value != int(value))
        or value < least
        or (most is not None and value > most)
    ):
        raise UsageError(f"{name}={value!r}: give {least:g} or more" + (f", at most {most:g}" if most else ""))


def _size(setting: str, value: int | str) -> int | None:
    """Bytes of a limit, from a number or a text. UsageError for others."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or (isinstance(value, int) and value < 0):
        raise UsageError(f"{setting}={value!r} is not a size; give bytes, or '64K', or '1M'")
    return value if isinstance(value, int) else parse_size(value)
