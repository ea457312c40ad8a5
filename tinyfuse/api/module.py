"""Compiles models: `compile` and its result."""

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
from tinyfuse.api.settings import Model, Request, Settings, add_labels, check_options, make_request
from tinyfuse.api.writing import (
    bundled_files,
    check_flash,
    check_ram,
    check_step,
    cmsis_nn_tree,
    module_files,
    report,
    unfused_arena_bytes,
)
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.cost.cycles import plan_cycles, predicted_cycles, timing_of
from tinyfuse.cost.predict import known_total, plan_stages, predicted_total
from tinyfuse.emit.forms import make_delivery
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.options import EvaluateOptions
from tinyfuse.frontend.read_model import read_model
from tinyfuse.ir import Tensor
from tinyfuse.options import Options, ProfileOptions, RunOptions, VerifyOptions
from tinyfuse.plan import Plan
from tinyfuse.plugin import plugins
from tinyfuse.progress import Progress, silent
from tinyfuse.report.report_json import op_name
from tinyfuse.report.text import report_text
from tinyfuse.run.arrays import take_inputs

if TYPE_CHECKING:  # imported at run time by `verify` alone, because it needs more packages
    from tinyfuse.api.evaluating import LabelData
    from tinyfuse.blame.blame import Blame
    from tinyfuse.data.samples import AllData
    from tinyfuse.evaluate.result import Evaluation
    from tinyfuse.verify.emulation import Emulator


def compile(model: Model, target: str, *, on_progress: Progress = silent, **settings: Unpack[Settings]) -> Module:
    """Compiles a model. Writes nothing and runs no program.

    model        path of a .tflite file, or its bytes (messages and files then call it NAME.tflite).
    target       a core of `tinyfuse targets`, such as "cortex-m4".
    on_progress  called with a sentence at each phase.
    settings     see `Settings`.

    A pure function of its arguments (and of the plugins' files): equal arguments give equal modules on every machine.
    It takes between 0.05 s and some seconds; `estimate` is faster.

    CompileError  the file cannot be read, or something in it is not supported: every reason, with its place.
    UsageError    a setting has an invalid value, or the target is unknown.
    DoesNotFit    arena and state exceed max_ram, a step max_step, or weights and estimated code max_flash.
    """
    return compile_request(make_request(model, target, settings), on_progress)


def compile_request(request: Request, on_progress: Progress = silent) -> Module:
    """Compiles a model whose arguments were checked."""
    with plugins(request.plugins):
        on_progress(f"reading {request.path}")
        graph = read_model(request.path, request.data)
        graph, options = add_labels(graph, request.options, request.network, request.labels)
        on_progress(f"planning for {request.target.name}")
        plan = compile_graph(graph, request.target, options, on_progress)
    check_ram(plan)
    check_step(plan)
    check_flash(plan, None)
    return Module(plan, request)


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """A compiled model. Figures are properties; `write`, `verify`, `profile` and `run` do the work of these commands.

    It can be pickled; a model of some hundred KB takes as much.

    plan     everything that generation needs; not part of the public API
    request  the file's bytes, target and options that it was made from; not part of the public API
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
        """Options that it was compiled with."""
        return self.plan.options

    @property
    def arena_bytes(self) -> int:
        """RAM for all activations of an inference, including model inputs and outputs."""
        return self.plan.arena_bytes

    @property
    def arena_lower_bound(self) -> int:
        """Bytes that no placement of this schedule can beat; equal to `arena_bytes` if the placement is proven
        minimal."""
        return self.plan.arena_lower_bound

    @property
    def state_bytes(self) -> int:
        """RAM that the model keeps from one inference to the next, per stream; 0 for a model without state."""
        return self.plan.state_bytes

    @property
    def ram_bytes(self) -> int:
        """RAM of arena and one state, without the stack (NAME.h has its bound)."""
        return self.plan.ram_bytes

    @property
    def weight_bytes(self) -> int:
        """Flash for the constants; equal arrays count once."""
        return self.plan.weight_bytes

    @property
    def code_bytes(self) -> int:
        """Flash for the code, predicted from measured kernels; `verify` measures it."""
        return estimated_code_bytes(self.plan)

    @property
    def flash_bytes(self) -> int:
        """Flash of weights and estimated code."""
        return self.weight_bytes + self.code_bytes

    @cached_property
    def predicted_instructions(self) -> int | None:
        """Instructions of an inference by the target's cost table, not cycles; None if a kernel was not measured."""
        return predicted_total(self.plan)

    @cached_property
    def predicted_cycles(self) -> int | None:
        """Estimated cycles of an inference on the board of `timing`, else on a core whose memories have no wait states;
        None if a kernel was not measured."""
        return predicted_cycles(self.plan)

    @property
    def predicted_ms(self) -> float | None:
        """Milliseconds of the estimated cycles; None without `timing`."""
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
        """Sentences about surprises in the file, such as ignored parts."""
        return self.plan.warnings

    def report(self) -> dict[str, Any]:
        """Figures of `tinyfuse report --json` (docs/json.md) with estimated code size.

        Compiles the model a second time, unfused, for comparison.
        """
        with plugins(self.request.plugins):
            return report(self.plan)

    def report_text(self) -> str:
        """Text of report.txt: figures, groups and a map of the arena."""
        return report_text(self.plan, self.report())

    # --- files ---------------------------------------------------------------------------------

    def files(
        self, *, selftest: bool = False, bundle: bool = False, cmsis_nn_path: str | None = None,
        formats: Sequence[str] = (), about: Mapping[str, str] | None = None, board: bool = False,
    ) -> dict[str, bytes]:  # fmt: skip
        """Content of each file of the module's folder by name; writes nothing.

        selftest       adds NAME_selftest.c: one input and the checksum of its outputs
        bundle         adds the CMSIS-NN files that the module calls, from `cmsis_nn_path` or a tree that is found;
                       ToolMissing if none fits
        formats        output forms such as "zephyr" (docs/forms.md); UsageError if they contradict each other
        about          package data: version, vendor, author, url, license
        board          adds NAME_board.c, which answers `tinyfuse board validate` (docs/board.md)
        """
        delivery = make_delivery(formats, about or {}, board=board)
        tree = cmsis_nn_tree(self.plan, cmsis_nn_path) if bundle else None
        with plugins(self.request.plugins):
            unfused_arena = unfused_arena_bytes(self.plan)
            return module_files(self.plan, unfused_arena, bundled_files(self.plan, tree), selftest, delivery)

    def write(
        self, folder: str | os.PathLike[str] | None = None, *, selftest: bool = False, bundle: bool = False,
        force: bool = False, cmsis_nn_path: str | None = None, formats: Sequence[str] = (),
        about: Mapping[str, str] | None = None, board: bool = False,
    ) -> Path:  # fmt: skip
        """Writes the module's folder (default: NAME_tinyfuse), completely or not at all, and returns its path.

        UsageError if the folder holds files that tinyfuse did not write or that were edited (unless `force`), or cannot
        be
        written. Other errors and arguments as in `files`.
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
        thorough: bool = False, cmsis_nn_path: str | None = None, on_progress: Progress = silent,
    ) -> Verification:  # fmt: skip
        """Cross-compiles the module, runs it on an emulated core, and compares every output element with the oracle.

        emulator      "auto", "qemu", "renode", or "host": natively, under sanitizers (no CMSIS-NN).
        oracle        reference to compare with: "auto", "tflm", "litert" or "reference".
        runs          number of inputs: all-smallest, all-largest, all-zero, then random ones; default 8, 64 for a model
                      with state, four times as many if an output stays the same in those.
        frames        inferences from one reset of the state to the next.
        seed          seed of the random inputs.
        compiler      "gcc", "clang" or "armclang", for the module and CMSIS-NN.
        compiler_opt  "O0" to "O3", "Og", "Os", "Oz".
        timeout       host seconds that the run may take.
        thorough      also verify builds at O0, Os and O3 and the portable form, with four times the inputs.

        ToolMissing      compiler, emulator, oracle or CMSIS-NN are missing.
        EmulationFailed  the firmware crashed or hung.
        DoesNotFit       weights and measured code exceed max_flash.
        UsageError       an option has an invalid value, or the combination cannot run.
        """
        from tinyfuse.api.measuring import verify_plan

        how = check_options(
            VerifyOptions(emulator, oracle, runs, frames, seed, compiler, compiler_opt, timeout, thorough)
        )
        machine, tree = self._machine(emulator, compiler), cmsis_nn_tree(self.plan, cmsis_nn_path)
        with plugins(self.request.plugins):
            return verify_plan(self.plan, tree, self.request.data, machine, how, on_progress)

    def run(
        self, inputs: np.ndarray | Mapping[str, np.ndarray], *, emulator: str = "auto", compiler: str = "gcc",
        compiler_opt: str = "O2", timeout: float = 300.0, cmsis_nn_path: str | None = None,
        on_progress: Progress = silent,
    ) -> Outputs:  # fmt: skip
        """Outputs for these inputs, computed by the generated code on an emulated core.

        inputs  an array, or arrays by name (the tensor's, or that of the C API), one for each input. The shape is the
                input's; a batch of 1 may be missing; a first dimension of runs is for several inferences (the frames of
                a stream if the model has state). Integers are stored values; their signedness must be the input's.
                Floats for an integer input are real values, and are quantized with the model's parameters.

        UsageError if an array does not fit. Other errors and arguments as in `verify`.
        """
        from tinyfuse.api.measuring import run_plan

        how = check_options(RunOptions(emulator, compiler, compiler_opt, timeout))
        named = list(inputs.items()) if isinstance(inputs, Mapping) else [(None, inputs)]
        with plugins(self.request.plugins):
            given = take_inputs(
                [("inputs" if name is None else f"inputs[{name!r}]", name, np.asarray(array)) for name, array in named],
                self.plan.source.inputs,
            )
            machine, tree = self._machine(emulator, compiler), cmsis_nn_tree(self.plan, cmsis_nn_path)
            return run_plan(self.plan, tree, given, machine, how, on_progress)

    def evaluate(
        self, data: AllData, labels: LabelData, *, float_model: str | os.PathLike[str] | None = None,
        classes: Sequence[str] = (), metric: str = "top1", scores: str | None = None, values: str | None = None,
        emulator: str = "host", oracle: str = "auto", at_least: float | None = None, at_most: float | None = None,
        compiler: str = "gcc", compiler_opt: str = "O2", timeout: float = 300.0, cmsis_nn_path: str | None = None,
        on_progress: Progress = silent,
    ) -> Evaluation:  # fmt: skip
        """The accuracy of the generated code over a data set, beside that of the model's file in an interpreter, whose
        outputs must be equal.

        data          a path or an array for a model with one input, else a mapping of names to these, or a .npz file.
                      Paths are .npy, .npz and .csv files, pictures, sounds, and folders of them, read in batches
        labels        one per sample: a path of a .npy, .csv or .txt file, or a folder with one folder per class; an
                      array, or a sequence of numbers or names
        float_model   the path of the float .tflite, evaluated beside it
        classes       names of the classes in the output's order; default: those of the model
        metric        "top1", "top5", "auc", "map", "mae" or "FILE.py:FUNCTION" (docs/evaluate.md)
        scores        the output that is scored; default: the first
        values        what 0 and 255 of unsigned bytes stand for: "0,1"
        emulator      "host": natively; "qemu" or "renode": on the emulated core
        oracle        the interpreter, as in `verify`
        at_least, at_most   bounds for `passed`
        compiler, compiler_opt, timeout   as in `verify`; the timeout is that of a batch

        UsageError where data, labels or metric do not fit; else as `verify`.
        """
        from tinyfuse.api.evaluating import evaluate_module

        how = check_options(
            EvaluateOptions(
                metric, scores, values, emulator, oracle, at_least, at_most, compiler, compiler_opt, timeout
            )
        )
        with plugins(self.request.plugins):
            return evaluate_module(
                self.plan, self.request.data, data, labels, tuple(classes), float_model, how, cmsis_nn_path, on_progress
            )

    def profile(
        self, *, emulator: str = "auto", compiler: str = "gcc", compiler_opt: str = "O2", timeout: float = 300.0,
        cmsis_nn_path: str | None = None, on_progress: Progress = silent,
    ) -> dict[str, Any]:  # fmt: skip
        """Instructions and bytes of one inference by operator: the answer of `tinyfuse profile --json` (docs/json.md),
        beside the same model with fusion="none".

        UsageError for the target "host", and for feed_rows without slide. Other errors as in `verify`.
        """
        from tinyfuse.api.profiling import Planned, find_counting, profile_plan

        how = check_options(ProfileOptions(emulator, compiler, compiler_opt, timeout))
        plan = self.plan
        counting = find_counting(plan.context.target, self.options.feeds_image, emulator, compiler)
        options = replace(self.options, fusion="none", max_ram=None, max_step=None, max_flash=None, memory=())

        def unfused() -> Planned:
            plain = compile_graph(plan.source, plan.context.target, options)
            return plain, cmsis_nn_tree(plain, cmsis_nn_path)

        with plugins(self.request.plugins):
            return profile_plan((plan, cmsis_nn_tree(plan, cmsis_nn_path)), unfused, counting, how, on_progress)

    # --- beside the float model ----------------------------------------------------------------

    def blame(
        self, floats: Model, data: AllData, *, samples: int = 32, values: str | None = None,
        on_progress: Progress = silent,
    ) -> Blame:  # fmt: skip
        """Find the layers that spoil the outputs, and the causes, by comparing each layer with the float model.

        floats   path or bytes of the float model, as `tinyfuse.quantize` takes it
        data     as `tinyfuse.quantize` takes it
        samples  how many of the data are compared, spread evenly
        values   what 0 and 255 of unsigned bytes stand for: "0,1"

        UsageError    the two models don't belong together, or keep state; the data don't fit
        CompileError  the float model can't be read
        ToolMissing   LiteRT is not installed: the extra `quantize`
        """
        from tinyfuse.api.blaming import blame_graph

        source, target = self.plan.source, self.plan.context.target
        source = source if source.layouts is None else source.layouts.file
        options = replace(self.options, max_ram=None, max_flash=None, max_step=None, memory=(), labels=())
        with plugins(self.request.plugins):
            return blame_graph(source, floats, data, samples, values, target, options, on_progress)

    def _machine(self, emulator: str, compiler: str) -> Emulator:
        from tinyfuse.verify.emulation import find_tools

        machine = find_tools(emulator, self.plan.context.target, compiler)
        if machine.name == "host" and self.plan.uses_cmsis_nn:
            raise UsageError("the emulator 'host' runs no CMSIS-NN; compile with kernels='auto'")
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
