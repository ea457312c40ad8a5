"""Reads numbers and parameters that runtime_c/ names, so that each is written down only once, in C."""

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


@cache
def c_parameters(function: str) -> tuple[str, ...]:
    """Names of the parameters of a C function of runtime_c/; a macro may define it as `begin_##end`. InternalFault
    where there is none."""
    names = [function]
    while names[-1].strip("_").count("_") > 1:
        names.append(names[-1].rstrip("_").rpartition("_")[0] + "_")
    for name in names:
        ending = "" if name is function else r"##\w+"
        for text in _headers():
            if name in text and (found := re.search(rf"\b{name}{ending}\(([^(){{}};]*)\)[\s\\]*{{", text)):
                return tuple(re.findall(r"(\w+)\s*(?:,|$)", found[1]))
    raise InternalFault("the kernels", f"runtime_c/ does not define {function}")


@cache
def _headers() -> tuple[str, ...]:
    """Return the texts of all headers of runtime_c/."""
    return tuple(path.read_text(encoding="utf-8") for path in sorted(resource_dir("runtime_c").glob("*.h")))
