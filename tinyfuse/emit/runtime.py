"""Finds the files of runtime_c/ that a module needs: its kernels' headers, and the headers included by these."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tinyfuse.errors import UsageError
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.plan import Plan, Stage
from tinyfuse.resources import resource_dir

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(tinyfuse_\w+\.h)"', re.MULTILINE)


def headers(plan: Plan) -> tuple[list[str], list[str]]:
    """Headers that the generated file includes: those in the folder, and CMSIS-NN's."""
    ours: set[str] = {"tinyfuse_common.h"}
    theirs: set[str] = set()
    for group in plan.all_groups:
        if len(group.stages) > 1:
            ours.add("tinyfuse_stack.h" if group.stack else "tinyfuse_rows.h")
        for stage in group.stages:
            for kernel in _called_kernels(stage, plan):
                for header in kernel.headers:
                    own = header.startswith("tinyfuse_") or kernel.library != "cmsis-nn"
                    (ours if own else theirs).add(header)
    return sorted(ours), sorted(theirs)


def _called_kernels(stage: Stage, plan: Plan) -> tuple[Kernel, ...]:
    """Kernel of a stage, and kernels of the operators that its operator combines."""
    return stage.kernel, *(kernel for kernel, _ in stage.kernel.parts(stage.op, plan.context))


def runtime_files(plan: Plan) -> dict[str, str]:
    """Texts of the runtime's and plugins' headers that a module includes, directly or not, by file name.

    All their functions are static inline, so modules made by different versions of tinyfuse link into one firmware.
    """
    runtime = resource_dir("runtime_c")
    kernels = {kernel for group in plan.all_groups for stage in group.stages for kernel in _called_kernels(stage, plan)}
    of_plugins = {header: kernel.folder for kernel in kernels if kernel.folder for header in kernel.headers}
    waiting = set(headers(plan)[0])
    files: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in of_plugins:
            files[name], included = _read(of_plugins[name] / name)
        else:
            files[name], included = _read_ours(runtime / name)
        waiting.update(included - set(files))
    return dict(sorted(files.items()))


def _read(path: Path) -> tuple[str, frozenset[str]]:
    """Text of a header, and the names of our headers that it includes."""
    if not path.is_file():
        raise UsageError(f"there is no header {path}, which a kernel of a plugin names")
    text = path.read_text(encoding="utf-8")
    return text, frozenset(_INCLUDE.findall(text))


#: cached, because files of the installation do not change while a process runs
_read_ours = cache(_read)
