"""Reads numbers that runtime_c/ names, so that each is written down only once, in C."""

from __future__ import annotations

import re
from functools import cache

from tinyfuse.errors import InternalFault
from tinyfuse.resources import resource_dir


@cache
def c_constant(header: str, name: str) -> int:
    """Value of `enum { name = value };` or `#define name value` in a header of runtime_c/. InternalFault if the header
    does not define it."""
    text = (resource_dir("runtime_c") / header).read_text(encoding="utf-8")
    found = re.search(rf"^(?:enum {{ {name} = |#define {name} )(\d+)\b", text, re.MULTILINE)
    if found is None:
        raise InternalFault("the kernels", f"runtime_c/{header} gives {name} no value")
    return int(found[1])
