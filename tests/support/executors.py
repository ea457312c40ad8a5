"""Ways to run a model in tests: TFLM, the numpy references, and generated C on the host or emulated.

A test hands over .tflite bytes; every executor gives, for each input set, the list of outputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import native_compiler
import numpy as np
from batch_module import apart, together, write_batch
from host_program import HostProgram
from plan_parts import plan_groups, prepare
from single_unit_firmware import build_at_once, build_plan, takes

from tinyfuse.compiler import compile_graph
from tinyfuse.emit.header import stack_bound
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.targets import Target, load_target
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.bounds import check_operators, has_bounds
from tinyfuse.verify.comparison import compare
from tinyfuse.verify.emulation import build, find_emulator, module
from tinyfuse.verify.emulation.compilers import Compiler, find_compiler
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.oracle import InterpreterOracle, ReferenceOracle
from tinyfuse.verify.streams import default_frames, join_streams, split_streams

#: more than any model of the tests needs
_TFLM_ARENA_BYTES = 1 << 23


def plan_of(data: bytes, target: str = "host", name: str = "net", **options) -> Plan:
    """The plan of a model given as bytes; options are fields of Options."""
    return compile_graph(read_tflite("model.tflite", data), load_target(target), Options(name, **options))


def grouped_plan(data: bytes, lengths: Sequence[int], target: str = "host", **options) -> Plan:
    """A plan whose fusion groups have these numbers of operators, without a search."""
    source, named = read_tflite("model.tflite", data), Options("net", **options)
    graph, context = prepare(source, load_target(target), named)
    operators = iter(graph.ops)
    groups = [[next(operators) for _ in range(length)] for length in lengths]
    assert not list(operators)
    return plan_groups(source, graph, groups, context, named)


def assert_reference_is_tflm(data: bytes, runs: int = 5, seed: int = 0) -> None:
    """Checks our numpy references against TFLM's interpreter; with state, in streams. Operators that call libm must
    stay within their bounds."""
    graph = read_tflite("model.tflite", data)
    if has_bounds(graph):
        drawn = input_set(graph, runs, seed)
        assert check_operators(graph, InterpreterOracle("tflm", data, graph), drawn).broken == ()
        return
    inputs = split_streams(input_set(graph, runs, seed), _frames(graph, runs))
    expected = _tflm_streams(data, graph, inputs)
    for wanted, found in zip(expected, ReferenceOracle(graph).run_streams(inputs), strict=True):
        for frame, (outputs, ours) in enumerate(zip(wanted, found, strict=True)):
            for a, b in zip(outputs, ours, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"frame {frame}")


def _tflm_streams(data: bytes, graph: Graph, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
    """Outputs of InterpreterOracle("tflm") without its processes, which take half a second to start."""
    expected, infer = [], None
    for stream in inputs:
        if infer is None or graph.states:
            infer = oracle_worker.tflm(data, _TFLM_ARENA_BYTES)
        expected.append([infer(frame) for frame in stream])
    return expected


def _frames(graph: Graph, runs: int) -> int | None:
    return default_frames(runs) if graph.states else None


def assert_exact(plan: Plan, runs: int = 5, seed: int = 0, tree=None, on_host: bool = False) -> None:
    """The generated C computes what the references compute, on the plan's target (natively under
    sanitizers, also with `on_host`, or in QEMU), and writes nothing outside its arena. Not optimized: at other levels
    are those of assert_all_exact, and of test_compiler_opt.py.

    Natively a module whose API is only init and run has no firmware of its own: assert_all_exact's program is built in
    half the time. Where it has no more than that and states, the interface is checked, as by `verify`, of a third: that
    takes a third longer."""
    if (on_host or plan.context.target.cpu is None) and tree is None and _only_runs(plan):
        assert_all_exact([plan], runs, seed, on_host=True)
        return
    inputs, frames = input_set(plan.source, runs, seed), _frames(plan.source, runs)
    expected = join_streams(ReferenceOracle(plan.source).run_streams(split_streams(inputs, frames)), frames)
    native = on_host or plan.context.target.cpu is None
    machine = find_emulator("host" if native else "qemu", plan.context.target)
    checked = not _only_runs(plan, states=True) or int(plan.source.sha256[:8], 16) % 3 == 0
    with tempfile.TemporaryDirectory(prefix="tinyfuse-test-") as folder:
        if takes(plan):
            firmware = build_plan(plan, tree, inputs, machine.name, frames or 1, checked, Path(folder))
        else:
            with (
                patch.object(build, "find_compiler", swift_compiler),
                patch.object(module, "interface", module.interface if checked else lambda plan: None),
            ):
                firmware = build_module(plan, tree, inputs, machine.name, "O0", Path(folder), frames or 1, debug=native)
        outcome = machine.run(firmware, 30)
    result = compare(plan, expected, outcome.outputs)
    assert result.mismatches == 0, f"{result.first}\n{plan.graph}"
    assert not outcome.guards, outcome.guards


def _only_runs(plan: Plan, states: bool = False) -> bool:
    """Tells whether HostProgram can call all of a module's API; with `states`, except the functions of states."""
    options = plan.options
    more = options.step or options.weights_blob or plan.memory or plan.fed or plan.source.window or plan.awaits
    return not more and (states or not plan.states)


def swift_compiler(target: Target, emulator: str, opt: str, name: str = "gcc") -> Compiler:
    """`verify`'s compiler, but on the host clang without optimization, because the sanitizers' checks are many.
    test_compilers.py compiles modules at every level, test_compiler_opt.py runs them."""
    found = find_compiler(target, emulator, opt, native_compiler.COMPILER if emulator == "host" else name)
    if emulator != "host":
        return found
    return replace(found, opt="O0", flags=native_compiler.quickly(found.flags))


#: what the functions of tests/support/batch_module.py take besides a module's own stack
_BATCH_STACK = 128

#: where gcc optimizes a module in one unit with `main`, it knows what runs once, and puts more of it in one frame than in
#: a unit of its own, whose stack `verify` checks: 1,000 bytes in the place of 304 of a float32 network on Cortex-M55
_ONE_FRAME = 384


def assert_all_exact(
    plans: Sequence[Plan],
    runs: int = 5,
    seed: int = 0,
    shared: bool = False,
    on_host: bool = False,
    tree=None,
    **build: Any,
) -> None:
    """assert_exact for many plans of one target in one program; they may call the CMSIS-NN of a `tree`. On the host
    they may be for several targets, and share one arena with `shared`; `build` is HostProgram's."""
    target = plans[0].context.target
    inputs = [input_set(plan.source, runs, seed) for plan in plans]
    with tempfile.TemporaryDirectory(prefix="tinyfuse-test-") as folder:
        work = Path(folder)
        if on_host or target.cpu is None:
            computed = HostProgram(work, plans, shared, **build).run(inputs)
        else:
            module, fed = write_batch(work / "batch", plans), together(inputs)
            library = tree.closure(frozenset().union(*(plan.cmsis_nn_functions for plan in plans))) if tree else []
            include = tree.include_dirs if tree else []
            # a quarter of them are optimized: that takes twice as long
            opt = "O0" if sum(len(plan.graph.ops) for plan in plans) % 4 else "O1"
            firmware = build_at_once(module, fed, target, "qemu", work, opt, library=library, include_dirs=include)
            outcome = find_emulator("qemu", target).run(firmware, 60)
            assert not outcome.guards, outcome.guards
            most = max(stack_bound(plan, optimized=opt != "O0") for plan in plans)
            assert outcome.stack_bytes <= most + _BATCH_STACK + (_ONE_FRAME if opt != "O0" else 0)
            computed = apart(plans, outcome.outputs)
    for plan, fed, found in zip(plans, inputs, computed, strict=True):
        result = compare(plan, ReferenceOracle(plan.source).run_all(fed), found)
        assert result.mismatches == 0, f"{result.first}\n{plan.graph}"
