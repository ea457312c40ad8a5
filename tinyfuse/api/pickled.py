"""Plans as bytes, for other processes.

A kernel is one of the registry's, and some hold functions, which can't be pickled: so its place there is written.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.registry import KERNELS
from tinyfuse.plan import Plan


def plan_to_bytes(plan: Plan) -> bytes:
    """What `plan_from_bytes` makes the same plan of, with the same version of tinyfuse."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(plan)
    return file.getvalue()


def plan_from_bytes(data: bytes) -> Plan:
    """The plan."""
    plan = _Unpickler(io.BytesIO(data)).load()
    assert isinstance(plan, Plan)
    return plan


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, protocol: int):
        super().__init__(file, protocol)
        self._places = {
            id(kernel): (kind, number) for kind, kernels in KERNELS.items() for number, kernel in enumerate(kernels)
        }

    def persistent_id(self, found: Any) -> tuple[str, int] | None:
        """Kind and number of a registered kernel. One that was made of it (each_image.py) is pickled as it is."""
        return self._places.get(id(found)) if isinstance(found, Kernel) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: tuple[str, int]) -> Kernel:
        kind, number = place
        return KERNELS[kind][number]
