"""Results of the API: frozen records of figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # imported by `verify` alone, because it needs more packages
    from tinyfuse.verify.comparison import Mismatch
    from tinyfuse.verify.level_coverage import LayerCoverage


@dataclass(frozen=True)
class Port:
    """An input or output of the model.

    name        the tensor's name in the file
    symbol      its name in the C API
    shape       shape of one inference; images are NHWC
    dtype       numpy's name, such as "int8"
    scale, zero_point   real value = scale * (stored - zero_point); None without a per-tensor quantization
    """

    name: str
    symbol: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class FusionGroup:
    """Operators that are one C function.

    name           name of the C function
    operators      "CONV_2D name-of-its-output", in the order in which they run
    kernels        C functions that compute them
    library        library of these functions: "tinyfuse", "cmsis-nn" or "both"
    macs           multiply-accumulates of an inference
    predicted_instructions   instructions of an inference; None if a kernel was not measured on the target
    predicted_cycles         estimated cycles of an inference; None likewise
    scratch_bytes  bytes of the arena that its kernels use as scratch
    traffic_bytes  bytes of whole tensors that it reads and writes in the arena; rings do not count
    """

    name: str
    operators: tuple[str, ...]
    kernels: tuple[str, ...]
    library: str
    macs: int
    predicted_instructions: int | None
    predicted_cycles: int | None
    scratch_bytes: int
    traffic_bytes: int


@dataclass(frozen=True)
class OutputComparison:
    """Comparison of a module's outputs with an oracle's.

    exact           no element differs from an interpreter's, and no promise of the header is broken
    unproven        no element differs from our own references, but no interpreter was asked: none runs the model, or
                    `oracle` is "reference"; never together with `exact`
    within_bound    `exact`; or the model calls functions of libm, whose bits no standard defines, the module computes
    every
                    bit of our references, and each operator's reference computes the interpreter's result for the same
                    inputs: every bit, or within the operator's bound
    max_ulp         greatest distance of float32 outputs from the oracle's, in units of the last place
    max_step        greatest difference of integer outputs: small differences of floats can change a value quantized
    after
                    them by one, and layers after that by more
    operator_bounds for each operator that calls libm, by its name: (its distance from the interpreter's result for the
                    same inputs, permitted distance); empty if all outputs are exact
    elements        number of output elements that were compared in all runs
    mismatches      number of these elements that differ in any bit
    first_mismatch  run, output, index and both values of the first mismatch; None without one
    problems        a sentence for each broken promise: writes outside the arena, a wrong macro, too deep a stack
    warnings        limits of the proof, such as an output that is the same in all runs
    runs            number of inferences; with `slide`, of steps that have a result
    frames          inferences (steps) from one reset to the next; None for a model without state
    seed            seed of the random inputs
    oracle          name and version of the oracle
    """

    exact: bool
    unproven: bool
    within_bound: bool
    elements: int
    mismatches: int
    max_ulp: int
    max_step: int
    operator_bounds: dict[str, tuple[int, int]]
    first_mismatch: Mismatch | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    runs: int
    frames: int | None
    seed: int
    oracle: str


@dataclass(frozen=True)
class Verification(OutputComparison):
    """Result of `Module.verify`. All sizes are bytes; figures that could not be measured are None.

    instructions    instructions of one inference, counted, not cycles; with `slide`, of the worst step with a result.
    instructions_mean   mean of the steps with a result; None without `slide`.
    least_instructions, most_instructions   extremes of an inference over all inputs; None with `slide`.
    longest_step_instructions   most instructions of a NAME_step over all inputs; None without `step`.
    stack_bytes     deepest stack.
    ram_bytes       linked variables, arena and one state.
    code_bytes      linked code and constants of module and CMSIS-NN, without the weights.
    weight_bytes    linked weights.
    kernel_symbols  group function -> C functions that it calls or inlines.
    emulator, compiler, compiler_opt   tools that ran and built the module, with versions.
    levels          of each quantized layer, how many channels reached both ends of their range in the runs; None where
                    that would take long, and of a sliding window.
    """

    instructions: int | None
    instructions_mean: int | None
    least_instructions: int | None
    most_instructions: int | None
    longest_step_instructions: int | None
    stack_bytes: int | None
    ram_bytes: int | None
    code_bytes: int | None
    weight_bytes: int | None
    kernel_symbols: dict[str, list[str]] = field(repr=False)
    emulator: str
    compiler: str
    compiler_opt: str
    levels: tuple[LayerCoverage, ...] | None


@dataclass(frozen=True)
class Outputs:
    """Result of `Module.run`.

    arrays        outputs by name: the tensor's dtype (stored integers, not real values) and shape; several runs are the
                  batch. If several outputs have the same name, the last one.
    in_order      arrays of all outputs, in the order of `Module.outputs`.
    notes         a sentence for each input that was quantized, and for steps of a sliding window without a result.
    instructions  instructions of one inference, counted; None if they cannot be counted.
    emulator, compiler, compiler_opt   tools that ran and built the module, with versions.
    """

    arrays: dict[str, np.ndarray]
    in_order: tuple[np.ndarray, ...]
    notes: tuple[str, ...]
    instructions: int | None
    emulator: str
    compiler: str
    compiler_opt: str


@dataclass(frozen=True)
class Spread:
    """Mean (rounded), minimum and maximum of a number over inferences."""

    mean: int
    least: int
    most: int


@dataclass(frozen=True)
class BoardFigures:
    """Cycles that a board counted, over the inferences that have a result.

    cycles        cycles of an inference, including the hooks around its groups
    groups        cycles of each group, by its number, without the hooks
    outside       cycles of an inference between the groups, including the hooks
    longest_step  most cycles of a NAME_step; None without `step`
    """

    cycles: Spread
    groups: tuple[Spread, ...]
    outside: Spread
    longest_step: int | None


@dataclass(frozen=True)
class BoardValidation(OutputComparison):
    """Validation on a board. Fields are those of OutputComparison and these.

    runs, frames     a model with state has one instance, which is reset before each stream
    counter          source of the cycles: "DWT", "SysTick", "the firmware's own", or "none"
    overhead_cycles  cycles of the hooks of an empty group, subtracted from each group's
    figures          counted cycles; None if nothing counts
    """

    counter: str
    overhead_cycles: int
    figures: BoardFigures | None
