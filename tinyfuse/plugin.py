"""API for plugin files (docs/plugins.md): operators and patterns that tinyfuse does not know.

A file given with `--plugin` has one variable, `PLUGIN`, a Plugin. It is Python code that is run: use only files that
you trust.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyfuse.errors import UsageError
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, TensorAccess
from tinyfuse.kernels.core.rows import element_count, input_pointer, row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.registry import KERNELS
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core import family
from tinyfuse.ops.core.family import SAME_ROW, RowWindow, Rule
from tinyfuse.rewrite.patterns import PATTERNS, ConstantInput, Input, Operator, Pattern, chain

__all__ = [
    "SAME_ROW",
    "Call",
    "CallSite",
    "Constant",
    "ConstantInput",
    "Context",
    "Element",
    "Input",
    "Kernel",
    "Let",
    "Op",
    "OpFamily",
    "Operator",
    "Pattern",
    "Plugin",
    "RowWindow",
    "Rule",
    "Statement",
    "Tensor",
    "TensorAccess",
    "chain",
    "element_count",
    "input_pointer",
    "row_pointer",
]  # fmt: skip


class OpFamily(family.OpFamily):
    """An operator family with its kernels, the preferred one first."""

    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Plugin:
    """Content of a plugin file.

    operators  families of new kinds ("CUSTOM name" for a file's custom operators)
    patterns   parts of graphs that are replaced by one of them
    """

    operators: tuple[OpFamily, ...] = ()
    patterns: tuple[Pattern, ...] = ()


@contextmanager
def plugins(paths: Sequence[str]) -> Iterator[None]:
    """Makes the plugins in these files known until the context ends. UsageError, with the file's name, if one cannot be
    loaded or names an existing kind."""
    added: list[str] = []
    patterns = len(PATTERNS)
    try:
        for path in paths:
            plugin = _load(path)
            for operator in plugin.operators:
                if operator.kind in FAMILIES:
                    raise UsageError(
                        f"--plugin {path}: the operator {operator.kind} exists already; give yours another kind"
                    )
                FAMILIES[operator.kind] = operator
                KERNELS[operator.kind] = operator.kernels
                added.append(operator.kind)
            for pattern in plugin.patterns:
                if pattern.kind not in FAMILIES:
                    raise UsageError(
                        f"--plugin {path}: pattern {pattern.name!r} produces the operator {pattern.kind}, which does "
                        "not exist"
                    )
                PATTERNS.append(pattern)
        yield
    finally:
        for kind in added:
            del FAMILIES[kind], KERNELS[kind]
        del PATTERNS[patterns:]


def _load(path: str) -> Plugin:
    if not Path(path).is_file():
        raise UsageError(f"--plugin {path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"tinyfuse_plugin_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--plugin {path}: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"--plugin {path}: {type(error).__name__}: {error}") from error
    found: Any = getattr(module, "PLUGIN", None)
    if not isinstance(found, Plugin):
        raise UsageError(f"--plugin {path}: it defines no variable PLUGIN that is a tinyfuse.plugin.Plugin")
    return found
