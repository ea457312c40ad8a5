"""Cases of the operator families but the convolutions' (conv_cases.py): for every kind, named
operators that stand for one difficulty each, and a hypothesis strategy for all the rest.

    NAMED["PAD"]    {"name": Op}
    RANDOM["PAD"]   strategy of Op

Every module of this folder that has tables of these names adds to them, so a new file is listed nowhere. Several
may add to one kind (a file a dtype, for instance): its cases are all of theirs, under names of their own.
"""

from __future__ import annotations

import importlib
import pkgutil

from hypothesis import strategies as st

from tinyfuse.ir import Op

NAMED: dict[str, dict[str, Op]] = {}
RANDOM: dict[str, st.SearchStrategy[Op]] = {}

for _name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    _module = importlib.import_module(f"{__name__}.{_name}")
    for _kind, _ops in getattr(_module, "NAMED", {}).items():
        _twice = NAMED.setdefault(_kind, {}).keys() & _ops.keys()
        if _twice:
            raise ValueError(f"cases/{_name}.py names cases of {_kind} that another file has: {sorted(_twice)}")
        NAMED[_kind].update(_ops)
    for _kind, _strategy in getattr(_module, "RANDOM", {}).items():
        RANDOM[_kind] = RANDOM[_kind] | _strategy if _kind in RANDOM else _strategy
