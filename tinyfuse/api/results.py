"""What the API gives back: figures, alone and frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # needs what only `verify` needs
    from tinyfuse.verify.comparison import Mismatch
    from tinyfuse.verify.level_coverage import LayerCoverage


@dataclass(frozen=True)
class Port:
    """An input or output of the model.

    name        the tensor's name in the file
    symbol      its name in the C API
    shape       of one inference; images are NHWC
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
    """Operators that became one C function.

    name           of the C function
    operators      "CONV_2D name-of-its-output", in the order in which they run
    kernels        the C functions that compute them
    library        whose these are: "tinyfuse", "cmsis-nn" or "both"
    macs           multiply-accumulates of an inference
    predicted_instructions   of an inference; None where a kernel was never measured on the target
    predicted_cycles         likewise, an estimate
    scratch_bytes  bytes of arena that its kernels use for themselves
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
class Compared:
    """What a module computed, held against an oracle.

    exact           no element differs from an interpreter's, and no promise of the header is broken
    unproven        nothing differs from our own references, which alone say what is right: no interpreter runs the
                    model, or `oracle` is "reference"; never together with `exact`
    within_bound    exact; or the model calls functions of libm, whose bits no standard defines, and it is proven that
                    the module computes every bit of our references, and each operator's reference what the interpreter
                    computes of the same inputs: every bit, or within the operator's bound
    max_ulp         greatest distance of float32 outputs from the oracle's, in units of the last place
    max_step        greatest difference of integer outputs: where floats differ a little, what is quantized after them
                    may flip by one, and layers after that by more
    operator_bounds of each operator that calls libm, by its name: (how far it was from the interpreter's result of the
                    same inputs, how far it may be); empty where all outputs are exact, and nothing was asked
    elements        output elements that were compared, in all runs together
    mismatches      of these, elements that differ in any bit
    first_mismatch  run, output, index, both values of the first; None where none differs
    problems        a sentence for each broken promise: writes outside the arena, a wrong macro, too deep a stack
    warnings        what limits the proof, such as an output that is the same in all runs
    runs, frames    inferences; of a model with state, inferences from one reset to the next, else None. Of a sliding
                    window, steps that have a result, and steps from one reset to the next
    seed            of the random inputs
    oracle          who said what is right, with its version
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
class Verification(Compared):
    """What `Module.verify` found. All sizes are bytes; what could not be measured is None.

    instructions    of one inference, counted, never cycles; of a sliding window, of the worst step with a result
    instructions_mean of a sliding window's steps with a result; else None
    least_instructions, most_instructions   of an inference, over all inputs of the runs; not of a sliding window
    longest_step_instructions   the most instructions of a NAME_step over all inputs; None without the option `step`
    stack_bytes     the deepest stack
    ram_bytes       linked variables, arena and one state
    code_bytes      linked code and constants of module and CMSIS-NN, without the weights
    weight_bytes    linked weights
    kernel_symbols  group function -> the C functions that it calls or inlines
    emulator, compiler, compiler_opt   what ran and built it, with versions
    levels          of each quantized layer, how many channels reached both ends of their range in the runs; None where
                    that would take long, and of a sliding window
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
    """What `Module.run` computed.

    arrays        by output name: the tensor's dtype (stored integers, not real values) and shape; for several runs
                  these are the batch. Of several outputs of one name, the last
    in_order      every output's array, in the order of `Module.outputs`
    notes         what was done to the inputs beyond taking them: a sentence for each that was quantized; and which
                  steps of a sliding window have no result
    instructions  of one inference, counted; None where they can't be
    emulator, compiler, compiler_opt   what ran and built it, with versions
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
    """Of a number that differs from inference to inference: its mean, rounded, and both ends."""

    mean: int
    least: int
    most: int


@dataclass(frozen=True)
class BoardFigures:
    """Cycles that a board counted, over the inferences that have a result.

    cycles        of an inference, the hooks round its groups included
    groups        of each group, by its number, without the hooks
    outside       of an inference, between the groups, hooks included
    longest_step  the most of a NAME_step; None without the option `step`
    """

    cycles: Spread
    groups: tuple[Spread, ...]
    outside: Spread
    longest_step: int | None


@dataclass(frozen=True)
class BoardValidation(Compared):
    """What a board computed, held against the oracle; as of Compared, but for

    runs, frames     of a model with state: one instance, reset before each stream
    counter          what counts cycles: "DWT", "SysTick", "the firmware's own", or "none"
    overhead_cycles  of an empty group's hooks, taken off each group's
    figures          None where nothing counts
    """

    counter: str
    overhead_cycles: int
    figures: BoardFigures | None
