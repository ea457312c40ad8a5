"""Serializes plans for other processes.

Some of the registry's kernels hold functions, which cannot be pickled, so a kernel is stored as its place there.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.registry import KERNELS
from tinyfuse.plan import Plan


def plan_to_bytes(plan: Plan) -> bytes:
    """Bytes of a plan, for `plan_from_bytes` of the same version of tinyfuse."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(plan)
    return file.getvalue()


def plan_from_bytes(data: bytes) -> Plan:
    """Plan from the bytes of `plan_to_bytes`."""
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
        """Kind and number of a registered kernel; None for other objects and for kernels derived from one
        (each_image.py), which are pickled themselves."""
        return self._places.get(id(found)) if isinstance(found, Kernel) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: tuple[str, int]) -> Kernel:
        kind, number = place
        return KERNELS[kind][number]
