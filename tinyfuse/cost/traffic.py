"""Bytes of constants that each operator loads in an inference, predicted from shapes. They decide which memory bank
holds them. `tinyfuse profile` measures them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tinyfuse.ops import FAMILIES
from tinyfuse.plan import ConstantKey, Plan, Stage, constant_key
from tinyfuse.plan.memory import padded

#: output pixels that a convolution's kernels compute with each weight that they load
_PIXELS_A_LOAD = 2


@dataclass(frozen=True)
class Layer:
    """Constant arrays that are placed together: all arrays of a stage that no earlier stage uses.

    what   name of the stage
    group  number of the group that reads them; None for a subgraph's, and for what a reset of the state reads
    bytes  most bytes that they take, wherever the linker puts them
    loads  bytes that an inference loads of them
    """

    what: str
    group: int | None
    keys: tuple[ConstantKey, ...]
    bytes: int
    loads: int

    @property
    def density(self) -> float:
        """Loads per byte."""
        return self.loads / self.bytes


def layers(plan: Plan) -> Iterator[Layer]:
    """Yields all constants of a plan, in the order of their use."""
    inner = [(None, stage) for each in plan.subplans.values() for group in each.groups for stage in group.stages]
    stages = [*inner, *((group, stage) for group in plan.groups for stage in group.stages)]
    found = [
        (
            str(stage.op),
            group.index if group else None,
            tuple(map(constant_key, stage.constants)),
            constant_loads(stage) * (plan.runs(group) if group else 1),
        )
        for group, stage in stages
    ]
    found += [(str(state), None, (constant_key(value),), 0) for state, value in plan.initial_values.items()]
    seen: set[ConstantKey] = set()
    for what, group, keys, loads in found:
        new = tuple(key for key in dict.fromkeys(keys) if key not in seen)
        seen.update(new)
        if new:
            yield Layer(what, group, new, sum(padded(len(key[3]), key[1]) for key in new), loads)


def constant_bytes(stage: Stage) -> int:
    """Bytes of a stage's arrays in flash."""
    return sum(constant.data.nbytes for constant in stage.constants)


def constant_loads(stage: Stage) -> int:
    """Bytes that a stage loads of its constant arrays.

    A convolution loads all of them once per _PIXELS_A_LOAD pixels of a row, a depthwise one (with its weights in
    registers) once per row, another layer once per vector. Other operators load one table byte per output byte.
    """
    family, op, size = FAMILIES[stage.op.kind], stage.op, constant_bytes(stage)
    if not size or not op.outputs:
        return size
    shape = op.output.shape
    if family.data_and_weights is None:
        return max(size, op.output.bytes)
    if len(shape) != 4:
        return size * prod(shape[:-1])
    vectors = 1 if family.depthwise else max(1, shape[2] // _PIXELS_A_LOAD)
    return size * shape[0] * shape[1] * vectors
