"""Which files of runtime_c/ a module needs: its kernels' headers and what they include."""

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
    """What the generated file includes: files that come with it, and CMSIS-NN's headers."""
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
    """A stage's kernel, and those of the operators that its operator stands for."""
    return stage.kernel, *(kernel for kernel, _ in stage.kernel.parts(stage.op, plan.context))


def runtime_files(plan: Plan) -> dict[str, str]:
    """File name -> text of the headers that come with the module, and of those of runtime_c/ that they
    include. Everything in them is static inline, so that modules made by different versions of tinyfuse
    link into one firmware."""
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
    """A header's text, and those of ours that it includes."""
    if not path.is_file():
        raise UsageError(f"there is no header {path}, which a kernel of a plugin names")
    text = path.read_text(encoding="utf-8")
    return text, frozenset(_INCLUDE.findall(text))


#: of what comes with tinyfuse, and stays as it is while a process runs
_read_ours = cache(_read)
