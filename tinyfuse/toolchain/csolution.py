"""Reads `*.cbuild-mlops.yml`, with which CMSIS-Toolbox asks a generator for a layer with a model.

It names the core, the module and the layer's place. The schema (cbuild-mlops, 2.14.0) has no place for the model's
path, so the model is found by the module's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyfuse.emit.identifiers import module_name
from tinyfuse.errors import UsageError
from tinyfuse.targets import target_of_core
from tinyfuse.toolchain.extras import import_package

#: end of the names of such files
ENDING = ".cbuild-mlops.yml"
_LAYER_ENDING = ".clayer.yml"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class LayerRequest:
    """Content of a request: path of the model, name of a target, name of the module, path of the layer."""

    model: Path
    target: str
    name: str
    layer: Path


def read_request(path: Path) -> LayerRequest:
    """Reads a request. UsageError if the file cannot be read or is incomplete, if no target has code for the core, or
    if there is no model of that name. ToolMissing without PyYAML."""
    asked = _mapping(_parsed(path), "cbuild-mlops", path)
    core = _text(_mapping(asked, "processor", path), "processor", "type", path)
    model = _mapping(asked, "model", path)
    target = target_of_core(core)
    if target is None:
        raise UsageError(f"{path}: processor type {core!a} is a core that tinyfuse has no target for")
    name = module_name(_text(model, "model", "name", path))
    layer = path.parent / _text(model, "model", "clayer", path)
    if not layer.name.endswith(_LAYER_ENDING) or layer.name == _LAYER_ENDING:
        raise UsageError(f"{path}: model clayer {layer.name!a} is not a name of a layer, which ends in {_LAYER_ENDING}")
    places = list(dict.fromkeys((path.parent, layer.parent)))
    for place in places:
        found = place / f"{name}.tflite"
        if found.is_file():
            return LayerRequest(found, target, name, layer)
    looked = " or ".join(str(place / f"{name}.tflite") for place in places)
    raise UsageError(f"{path}: the model {name} was looked for at {looked}, and is not there")


def _parsed(path: Path) -> Any:
    yaml = import_package("yaml")
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a file of CMSIS-Toolbox")
        return yaml.safe_load(data)
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UsageError(f"{path} is no YAML") from None


def _mapping(fields: Any, key: str, path: Path) -> Any:
    found = fields.get(key) if isinstance(fields, dict) else None
    if not isinstance(found, dict):
        raise UsageError(f"{path} has no {key}: node, which CMSIS-Toolbox writes")
    return found


def _text(fields: Any, node: str, key: str, path: Path) -> str:
    found = fields.get(key)
    if not isinstance(found, str) or not found.isprintable():
        raise UsageError(f"{path}: {node} has no {key}")
    return found
