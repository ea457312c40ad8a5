"""Estimates a module's figures without compiling it: `estimate` and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from tinyfuse.api.settings import Model, Settings, make_request
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.cost.cycles import predicted_totals, timing_of
from tinyfuse.estimator import estimated_plan
from tinyfuse.frontend.read_model import read_model
from tinyfuse.plugin import plugins


@dataclass(frozen=True)
class Estimate:
    """Estimated figures of a model on a target.

    name, target            names of the module and of the core.
    arena_bytes             RAM for all activations of an inference, including model inputs and outputs.
    state_bytes             RAM that the model keeps from one inference to the next, exact.
    weight_bytes            flash for the constants.
    code_bytes              flash for the code, predicted like `Module.code_bytes`.
    predicted_instructions  instructions of an inference; None if a kernel was not measured on the target.
    predicted_cycles        cycles of an inference, on the core or on the board of `timing`; None likewise.
    predicted_ms            milliseconds of these cycles; None without `timing`.
    macs                    multiply-accumulates of an inference in the generated code.
    """

    name: str
    target: str
    arena_bytes: int
    state_bytes: int
    weight_bytes: int
    code_bytes: int
    predicted_instructions: int | None
    predicted_cycles: int | None
    predicted_ms: float | None
    macs: int

    @property
    def ram_bytes(self) -> int:
        """RAM of arena and one state, without the stack."""
        return self.arena_bytes + self.state_bytes

    @property
    def flash_bytes(self) -> int:
        """Flash of weights and estimated code."""
        return self.weight_bytes + self.code_bytes


def estimate(model: Model, target: str, **settings: Unpack[Settings]) -> Estimate:
    """Estimates what `compile` would return for the same arguments, in less time: for comparing thousands of models.

    docs/python.md has times and errors. The limits max_ram and max_flash steer the choice as in `compile`, but a model
    that exceeds them is not refused. A pure function of its arguments. CompileError and UsageError as in `compile`.
    """
    request = make_request(model, target, settings)
    with plugins(request.plugins):
        plan = estimated_plan(read_model(request.path, request.data), request.target, request.options)
        instructions, cycles = predicted_totals(plan)
        return Estimate(
            name=request.options.name,
            target=request.target.name,
            arena_bytes=plan.arena_bytes,
            state_bytes=plan.state_bytes,
            weight_bytes=plan.weight_bytes,
            code_bytes=estimated_code_bytes(plan),
            predicted_instructions=instructions,
            predicted_cycles=cycles,
            predicted_ms=timing_of(request.target, request.options).milliseconds(cycles),
            macs=plan.macs,
        )
