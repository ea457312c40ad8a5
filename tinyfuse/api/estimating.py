"""`estimate` and its result."""

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
    """About what a model takes on a target.

    name, target            the module's name and the core's
    arena_bytes             RAM of all activations of an inference, model inputs and outputs inside
    state_bytes             RAM of what the model keeps from one inference to the next, exact
    weight_bytes            flash of the constants
    code_bytes              flash of the code, as predicted, as `Module.code_bytes`
    predicted_instructions  of an inference; None where a kernel was not measured on the target
    predicted_cycles        likewise, of the core or of the setting `timing`'s board
    predicted_ms            what these cycles take; None without `timing`
    macs                    multiply-accumulates of an inference in the generated code
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
        """Arena and one state together, without the stack."""
        return self.arena_bytes + self.state_bytes

    @property
    def flash_bytes(self) -> int:
        """Weights and estimated code together."""
        return self.weight_bytes + self.code_bytes


def estimate(model: Model, target: str, **settings: Unpack[Settings]) -> Estimate:
    """About what `compile` would say of the same arguments, sooner (docs/python.md has times and errors): for who
    compares thousands of models.

    Limits (max_ram, max_flash) steer the choice as `compile`'s, but nothing is refused because of them. A pure
    function of its arguments. CompileError and UsageError as `compile`.
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
