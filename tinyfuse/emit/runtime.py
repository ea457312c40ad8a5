"""Which files of runtime_c/ a module needs: its kernels' headers and what they include."""

from __future__ import annotations

import re

from tinyfuse.plan import Plan
from tinyfuse.resources import resource_dir

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(tinyfuse_\w+\.h)"', re.MULTILINE)


def runtime_files(plan: Plan) -> dict[str, str]:
    """File name -> text. Everything in them is static inline, so that modules made by different
    versions of tinyfuse link into one firmware."""
    folder = resource_dir("runtime_c")
    waiting = {"tinyfuse_common.h"}
    for group in plan.groups:
        for stage in group.stages:
            waiting.update(h for h in stage.kernel.headers if h.startswith("tinyfuse_"))
    files: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        files[name] = (folder / name).read_text()
        waiting.update(set(_INCLUDE.findall(files[name])) - set(files))
    return dict(sorted(files.items()))
