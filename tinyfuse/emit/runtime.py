"""Which files of runtime_c/ a module needs: its kernels' headers and what they include."""

from __future__ import annotations

import re

from tinyfuse.plan import Plan
from tinyfuse.resources import resource_dir

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(tinyfuse_\w+\.h)"', re.MULTILINE)


def headers(plan: Plan) -> list[str]:
    """What the generated file includes: files of runtime_c/ and CMSIS-NN's headers."""
    found = {"tinyfuse_common.h"}
    for group in plan.groups:
        if len(group.stages) > 1:
            found.add("tinyfuse_rows.h")
        for stage in group.stages:
            found.update(stage.kernel.headers)
    return sorted(found)


def runtime_files(plan: Plan) -> dict[str, str]:
    """File name -> text. Everything in them is static inline, so that modules made by different
    versions of tinyfuse link into one firmware."""
    folder = resource_dir("runtime_c")
    waiting = {name for name in headers(plan) if name.startswith("tinyfuse_")}
    files: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        files[name] = (folder / name).read_text()
        waiting.update(set(_INCLUDE.findall(files[name])) - set(files))
    return dict(sorted(files.items()))
