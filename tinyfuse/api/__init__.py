"""The Python API: what the command line does, as functions and results. `tinyfuse` itself names what is public.

Nothing here prints, ends the process or changes global state; only `Module.write` writes. Results are frozen and
can be pickled, so that `compile` and `estimate` run in the workers of a process pool. Every error that a model,
a setting or the machine can cause is a `tinyfuse.TinyfuseError`; its message names settings as the command line does
(`--max-ram` is `max_ram`).
"""

from tinyfuse.api.estimating import Estimate, estimate
from tinyfuse.api.module import Module, compile
from tinyfuse.api.results import FusionGroup, Outputs, Port, Verification
from tinyfuse.api.settings import Settings

__all__ = [
    "Estimate", "FusionGroup", "Module", "Outputs", "Port", "Settings", "Verification", "compile", "estimate",
]  # fmt: skip
