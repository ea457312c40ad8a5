"""`compile` and its result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tinyfuse.api.pickled import plan_from_bytes, plan_to_bytes
from tinyfuse.api.results import FusionGroup, Outputs, Port, Verification
from tinyfuse.api.settings import Model, Request, Settings, checked, make_request, with_labels
from tinyfuse.api.writing import (
    bundled_files,
    check_flash,
    check_ram,
    check_step,
    module_files,
    report,
    tree_of,
    unfused_arena_bytes,
)
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.cost.cycles import plan_cycles, predicted_cycles, timing_of
from tinyfuse.cost.predict import known_total, plan_stages, predicted_total
from tinyfuse.emit.forms import delivery_of
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.errors import UsageError
from tinyfuse.frontend.read_model import read_model
from tinyfuse.ir import Tensor
from tinyfuse.options import Options, ProfileOptions, RunOptions, VerifyOptions
from tinyfuse.plan import Plan
from tinyfuse.plugin import plugins
from tinyfuse.progress import Progress, silent
from tinyfuse.report.report_json import op_name
from tinyfuse.report.text import report_text
from tinyfuse.run.arrays import take_inputs

if TYPE_CHECKING:  # loaded where it is needed: it takes packages that only `verify` needs
    from tinyfuse.verify.emulation import Emulator


def compile(model: Model, target: str, *, on_progress: Progress = silent, **settings: Unpack[Settings]) -> Module:
    """Compiles a model: nothing is written, no program is run.

    model        the path of a .tflite file, or its bytes (messages and files then call it NAME.tflite)
    target       a core of `tinyfuse targets`, such as "cortex-m4"
    on_progress  is called with a sentence at each step
    settings     as `Settings`

    A pure function of its arguments (and of the plugins' files): the same ones give the same module on every
    machine. It takes from 0.05 s to some seconds; `estimate` is faster.

    CompileError  the file can't be read, or what it asks for is not supported: every reason, with its place
    UsageError    a value that a setting can't have, an unknown target
    DoesNotFit    arena and state exceed max_ram, a step max_step, or weights and estimated code max_flash
    """
    return compile_request(make_request(model, target, settings), on_progress)


def compile_request(request: Request, on_progress: Progress = silent) -> Module:
    """`compile` after the check of its arguments."""
    with plugins(request.plugins):
        on_progress(f"reading {request.path}")
        graph = read_model(request.path, request.data)
        graph, options = with_labels(graph, request.options, request.network, request.labels)
        on_progress(f"planning for {request.target.name}")
        plan = compile_graph(graph, request.target, options, on_progress)
    check_ram(plan)
    check_step(plan)
    check_flash(plan, None)
    return Module(plan, request)


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """A compiled model. Figures are properties; `write`, `verify`, `profile` and `run` do what the commands of these
    names do. It can be pickled, in some hundred KB for a model of that size.

    plan     everything that generation needs; no part of the public API
    request  what it was made from: the file's bytes, target and options; likewise
    """

    plan: Plan
    request: Request

    # --- figures -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Prefix of the module's C names."""
        return self.plan.options.name

    @property
    def target(self) -> str:
        """Name of the core."""
        return self.plan.context.target.name

    @property
    def options(self) -> Options:
        """What it was compiled with."""
        return self.plan.options

    @property
    def arena_bytes(self) -> int:
        """The block of RAM that holds all activations of an inference, model inputs and outputs inside."""
        return self.plan.arena_bytes

    @property
    def arena_lower_bound(self) -> int:
        """Bytes that no placement of this schedule can beat; `arena_bytes` where the placement is proven minimal."""
        return self.plan.arena_lower_bound

    @property
    def state_bytes(self) -> int:
        """What the model keeps from one inference to the next, for one stream; 0 where it keeps nothing."""
        return self.plan.state_bytes

    @property
    def ram_bytes(self) -> int:
        """Arena and one state together. The stack is not in it (NAME.h has its bound)."""
        return self.plan.ram_bytes

    @property
    def weight_bytes(self) -> int:
        """Flash of the constants, each array once."""
        return self.plan.weight_bytes

    @property
    def code_bytes(self) -> int:
        """Flash of the code, as predicted from kernels that were measured; `verify` measures it."""
        return estimated_code_bytes(self.plan)

    @property
    def flash_bytes(self) -> int:
        """Weights and estimated code together."""
        return self.weight_bytes + self.code_bytes

    @cached_property
    def predicted_instructions(self) -> int | None:
        """Of an inference, from the target's cost table, never cycles; None where a kernel was not measured."""
        return predicted_total(self.plan)

    @cached_property
    def predicted_cycles(self) -> int | None:
        """Of an inference, an estimate, on the board of the setting `timing`, else on a core that never waits for its
        memories; None where a kernel was not measured."""
        return predicted_cycles(self.plan)

    @property
    def predicted_ms(self) -> float | None:
        """What these estimated cycles take; None without `timing`."""
        return timing_of(self.plan.context.target, self.options).milliseconds(self.predicted_cycles)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of an inference in the generated code."""
        return self.plan.macs

    @cached_property
    def groups(self) -> tuple[FusionGroup, ...]:
        """The fusion groups, in the order in which they run."""
        return tuple(
            FusionGroup(
                name=f"{self.name}_group_{group.index}",
                operators=tuple(f"{op.kind} {op_name(op)}" for op in group.ops),
                kernels=tuple(stage.kernel.name for stage in group.stages),
                library=group.library,
                macs=group.macs * self.plan.runs(group),
                predicted_instructions=known_total(instructions),
                predicted_cycles=known_total(cycles),
                scratch_bytes=group.scratch_bytes,
                traffic_bytes=group.traffic_bytes,
            )
            for group, instructions, cycles in zip(
                self.plan.groups, plan_stages(self.plan), plan_cycles(self.plan), strict=True
            )
        )

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The model's inputs, in the file's order."""
        return _ports(self.plan.source.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The model's outputs, in the file's order."""
        return _ports(self.plan.source.outputs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on how the file was read."""
        return self.plan.warnings

    def report(self) -> dict[str, Any]:
        """The figures of `tinyfuse report --json` (docs/json.md), with the code's size estimated. It compiles the
        model a second time, unfused, to compare with."""
        with plugins(self.request.plugins):
            return report(self.plan)

    def report_text(self) -> str:
        """report.txt: figures, groups and a map of the arena."""
        return report_text(self.plan, self.report())

    # --- files ---------------------------------------------------------------------------------

    def files(
        self, *, selftest: bool = False, bundle: bool = False, cmsis_nn_path: str | None = None,
        formats: Sequence[str] = (), about: Mapping[str, str] | None = None, board: bool = False,
    ) -> dict[str, bytes]:  # fmt: skip
        """Name -> content of every file of the module's folder; nothing is written.

        selftest       with NAME_selftest.c: one input and its outputs' checksum
        bundle         with the CMSIS-NN files that it calls, of the tree at `cmsis_nn_path` or where one is found;
                       ToolMissing where there is none that fits
        formats        output forms, as "zephyr" (docs/forms.md); UsageError where they don't go together
        about          what packages say of themselves: version, vendor, author, url, license
        board          with NAME_board.c, which answers `tinyfuse board validate` (docs/board.md)
        """
        delivery = delivery_of(formats, about or {}, board=board)
        tree = tree_of(self.plan, cmsis_nn_path) if bundle else None
        with plugins(self.request.plugins):
            unfused_arena = unfused_arena_bytes(self.plan)
            return module_files(self.plan, unfused_arena, bundled_files(self.plan, tree), selftest, delivery)

    def write(
        self, folder: str | os.PathLike[str] | None = None, *, selftest: bool = False, bundle: bool = False,
        force: bool = False, cmsis_nn_path: str | None = None, formats: Sequence[str] = (),
        about: Mapping[str, str] | None = None, board: bool = False,
    ) -> Path:  # fmt: skip
        """Writes the module's folder (default: NAME_tinyfuse), whole or not at all, and gives its path.

        UsageError where the folder holds what tinyfuse did not write or files that were changed since, unless
        `force`, and where it can't be written; else as `files`.
        """
        if folder is not None and not os.fspath(folder):
            raise UsageError("'' names no folder; leave it out for NAME_tinyfuse")
        place = Path(f"{self.name}_tinyfuse" if folder is None else folder)
        files = self.files(
            selftest=selftest, bundle=bundle, cmsis_nn_path=cmsis_nn_path, formats=formats, about=about, board=board
        )
        write_folder(place, files, force)
        return place

    # --- on an emulated core -------------------------------------------------------------------

    def verify(
        self, *, emulator: str = "auto", oracle: str = "auto", runs: int | None = None, frames: int | None = None,
        seed: int = 0, compiler: str = "gcc", compiler_opt: str = "O2", timeout: float = 300.0,
        cmsis_nn_path: str | None = None, on_progress: Progress = silent,
    ) -> Verification:  # fmt: skip
        """Cross-compiles the module, runs it on an emulated core, and compares every output element with the oracle.

        emulator      "auto", "qemu", "renode", or "host": natively, under sanitizers (no CMSIS-NN)
        oracle        "auto", "tflm", "litert" or "reference": who says what is right
        runs          inputs: all-smallest, all-largest, all-zero, then random ones; default 8, 64 for a model with
                      state, four times as many where an output stays the same in those
        frames        inferences from one reset of the state to the next
        compiler      "gcc", "clang" or "armclang", of the module and of CMSIS-NN
        compiler_opt  "O0" to "O3", "Og", "Os", "Oz"
        timeout       seconds of the host's clock that the run may take

        ToolMissing      compiler, emulator, oracle or CMSIS-NN are not there
        EmulationFailed  the firmware crashed or hung
        DoesNotFit       weights and measured code exceed max_flash
        UsageError       a value that an option can't have, a combination that can't run
        """
        from tinyfuse.api.measuring import verify_plan

        how = checked(VerifyOptions(emulator, oracle, runs, frames, seed, compiler, compiler_opt, timeout))
        machine, tree = self._machine(emulator, compiler), tree_of(self.plan, cmsis_nn_path)
        with plugins(self.request.plugins):
            return verify_plan(self.plan, tree, self.request.data, machine, how, on_progress)

    def run(
        self, inputs: np.ndarray | Mapping[str, np.ndarray], *, emulator: str = "auto", compiler: str = "gcc",
        compiler_opt: str = "O2", timeout: float = 300.0, cmsis_nn_path: str | None = None,
        on_progress: Progress = silent,
    ) -> Outputs:  # fmt: skip
        """The outputs for these inputs, computed by the generated code on an emulated core.

        inputs  an array, or by name (the tensor's, or that in the C API) one for each input. Its shape is the
                input's, which may lack a batch of 1; with a first dimension of runs, for several inferences (the
                frames of a stream, where the model has state). Integers are taken as they are, but uint8 is refused
                for int8, and the like; floats for an integer input are real values, and are quantized with the model's
                parameters.

        UsageError where an array doesn't fit; else as `verify`.
        """
        from tinyfuse.api.measuring import run_plan

        how = checked(RunOptions(emulator, compiler, compiler_opt, timeout))
        named = list(inputs.items()) if isinstance(inputs, Mapping) else [(None, inputs)]
        with plugins(self.request.plugins):
            given = take_inputs(
                [("inputs" if name is None else f"inputs[{name!r}]", name, np.asarray(array)) for name, array in named],
                self.plan.source.inputs,
            )
            machine, tree = self._machine(emulator, compiler), tree_of(self.plan, cmsis_nn_path)
            return run_plan(self.plan, tree, given, machine, how, on_progress)

    def profile(
        self, *, emulator: str = "auto", compiler: str = "gcc", compiler_opt: str = "O2", timeout: float = 300.0,
        cmsis_nn_path: str | None = None, on_progress: Progress = silent,
    ) -> dict[str, Any]:  # fmt: skip
        """Where the instructions and bytes of one inference go: what `tinyfuse profile --json` prints
        (docs/json.md), beside the same model under fusion="none". Errors as `verify`; UsageError for the target
        "host" and for feed_rows without slide."""
        from tinyfuse.api.profiling import Planned, find_counting, profile_plan

        how = checked(ProfileOptions(emulator, compiler, compiler_opt, timeout))
        plan = self.plan
        counting = find_counting(plan.context.target, self.options.feeds_image, emulator, compiler)
        options = replace(self.options, fusion="none", max_ram=None, max_step=None, max_flash=None, memory=())

        def unfused() -> Planned:
            plain = compile_graph(plan.source, plan.context.target, options)
            return plain, tree_of(plain, cmsis_nn_path)

        with plugins(self.request.plugins):
            return profile_plan((plan, tree_of(plan, cmsis_nn_path)), unfused, counting, how, on_progress)

    def _machine(self, emulator: str, compiler: str) -> Emulator:
        from tinyfuse.verify.emulation import find_tools

        machine = find_tools(emulator, self.plan.context.target, compiler)
        if machine.name == "host" and self.plan.uses_cmsis_nn:
            raise UsageError("this machine runs no CMSIS-NN; compile with kernels='tinyfuse'")
        return machine

    def __reduce__(self) -> Any:
        # a plugin's classes are in no module that another process could import
        if self.request.plugins:
            return compile_request, (self.request,)
        return _restored, (plan_to_bytes(self.plan), self.request)

    def __repr__(self) -> str:
        instructions = self.predicted_instructions
        return (
            f"<tinyfuse.Module {self.name} for {self.target}: RAM {self.ram_bytes:,} bytes, weights "
            f"{self.weight_bytes:,}, {'unknown' if instructions is None else f'{instructions:,}'} instructions>"
        )


def _restored(plan: bytes, request: Request) -> Module:
    return Module(plan_from_bytes(plan), request)


def _ports(tensors: tuple[Tensor, ...]) -> tuple[Port, ...]:
    found = []
    for tensor, symbol in zip(tensors, tensor_symbols(tensors), strict=True):
        one = tensor.quant is not None and not tensor.quant.per_channel
        found.append(
            Port(
                name=tensor.name,
                symbol=symbol,
                shape=tensor.shape,
                dtype=tensor.dtype,
                scale=tensor.scale if one else None,
                zero_point=tensor.zero_point if one else None,
            )
        )
    return tuple(found)
