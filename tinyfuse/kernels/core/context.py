"""Context in which a kernel is chosen: the target, the user's options and the objective of the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tinyfuse.board_timing import BoardTiming
from tinyfuse.ir import Op
from tinyfuse.once import hashed_once
from tinyfuse.targets import Target


@hashed_once
@dataclass(frozen=True)
class Objective:
    """Aims of a plan that decide which kernels may be used.

    optimize           one of OPTIMIZE: "speed", "balanced" or "ram". The search tries all three, so it need not be what
                       the user asked for.
    at_once            maximum rows of an image that one call of a CMSIS-NN function makes inside a group.
    limit_ram          the user did not ask for speed alone, so no kernel may buy speed with any amount of RAM.
    min_scratch        prefer the kernel with the least scratch among those that are not far slower.
    allow_scratch_for  names of output tensors. `min_scratch` does not apply to the operators that make them.
    """

    optimize: str = "balanced"
    at_once: int = 1
    limit_ram: bool = False
    min_scratch: bool = False
    allow_scratch_for: frozenset[str] = frozenset()


class ObjectiveAsked(Exception):
    """Raised if an answer depends on the objective, and the context has none."""


@hashed_once
@dataclass(frozen=True)
class Context:
    """Everything except the operator that decides which kernels may be used.

    target       core and its instruction set.
    cmsis_nn     CMSIS-NN's version, (4, 0) to (7, 0).
    kernels      the user's choice: "auto" or "tinyfuse" (only ours), "mixed" (the fastest of both libraries) or
                 "cmsis-nn" (ours only where it has none).
    lacks        names of kernels that may not be used, for instance functions that a copy of CMSIS-NN left out.
    weights      "unpacked" and "winograd" prefer kernels whose weights take more flash (`Kernel.weights`), "compressed"
                 those whose weights take less; "auto" weighs flash against instructions.
    flash_price  predicted instructions that a byte of flash must save ("auto"), or may cost ("compressed"); None: any.
    step         operators that stand alone are called row by row where possible.
    divided      calls are made in pieces, so kernels that can be divided are preferred.
    cycles       board whose estimated cycles are counted; None: instructions are counted.
    objective    None for an answer that holds for every objective. The properties below then raise ObjectiveAsked.
    """

    target: Target
    cmsis_nn: tuple[int, int] = (7, 0)
    kernels: str = "auto"
    lacks: frozenset[str] = frozenset()
    weights: str = "packed"
    flash_price: float | None = None
    step: bool = False
    divided: bool = False
    cycles: BoardTiming | None = None
    objective: Objective | None = Objective()

    @property
    def calls_cmsis_nn(self) -> bool:
        """True if the user allows calls of CMSIS-NN."""
        return self.kernels in ("mixed", "cmsis-nn")

    @property
    def known_objective(self) -> Objective:
        """Return the objective. Raises ObjectiveAsked if the context has none."""
        if self.objective is None:
            raise ObjectiveAsked
        return self.objective

    @property
    def optimize(self) -> str:
        """Value of `Objective.optimize`; raises ObjectiveAsked without an objective."""
        return self.known_objective.optimize

    @property
    def at_once(self) -> int:
        """Value of `Objective.at_once`; raises ObjectiveAsked without an objective."""
        return self.known_objective.at_once

    @property
    def min_scratch(self) -> bool:
        """Value of `Objective.min_scratch`; raises ObjectiveAsked without an objective."""
        return self.known_objective.min_scratch

    @property
    def allow_scratch_for(self) -> frozenset[str]:
        """Value of `Objective.allow_scratch_for`; raises ObjectiveAsked without an objective."""
        return self.known_objective.allow_scratch_for

    @property
    def speed_alone(self) -> bool:
        """True if kernels may take any amount of RAM."""
        return self.known_objective.optimize == "speed" and not self.known_objective.limit_ram

    def wants_least_scratch(self, op: Op) -> bool:
        """Tells whether `op` should get the kernel with the least scratch."""
        return self.min_scratch and not any(tensor.name in self.allow_scratch_for for tensor in op.outputs)


@lru_cache
def intern_context(context: Context) -> Context:
    """Returns the first of all equal contexts, so that cache lookups compare by identity."""
    return context


def with_objective(context: Context, **changes: Any) -> Context:
    """Copies the context with other fields of its objective. ObjectiveAsked if it has none."""
    return replace(context, objective=replace(context.known_objective, **changes))


@lru_cache
def without_objective(context: Context) -> Context:
    """Copies the context without its objective. Contexts that differ only in their objectives share one copy.

    A function of a context that returns here without ObjectiveAsked returns the same for every objective, so its result
    can be cached for all of them.
    """
    return intern_context(replace(context, objective=None))
