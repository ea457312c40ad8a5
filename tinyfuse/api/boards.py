"""Validates a module on a real board: compares its outputs with the oracle, and counts its cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinyfuse.api.measuring import ask_oracle, judge_outputs
from tinyfuse.api.results import BoardFigures, BoardValidation, Spread
from tinyfuse.board.device import FIRST, LAST, RESET, Device, Hello, Result
from tinyfuse.cost.predict import known_total, plan_stages
from tinyfuse.emit import module_digest
from tinyfuse.errors import BoardFailed
from tinyfuse.ir import Array
from tinyfuse.options import BoardOptions
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.verify.streams import split_streams

#: return values of a module's functions (templates/module.h.j2)
_OK, _NO_RESULT_YET, _NO_WEIGHTS = 0, 8, 11
#: predicted instructions of a group from which SysTick's 24 bits may overflow more than once between two readings
_LONG_FOR_SYSTICK = 1 << 22


@dataclass(frozen=True)
class _Inference:
    """Result of one inference on the board; `outputs` has the bytes of each output, None if the run has no result
    yet."""

    outputs: list[bytes] | None
    result: Result
    groups: list[tuple[int, int]]


def validate_plan(plan: Plan, model: bytes, device: Device, how: BoardOptions, progress: Progress) -> BoardValidation:
    """Runs the board's module on the inputs of a verification, and compares every output element with the oracle.

    `model` is the file's content, for the oracle. A model with state has one instance, which is reset before each
    stream. Rows that are fed are sent one at a time. BoardFailed if the board has another module, or fails.
    """
    progress("asking the board which module it has")
    hello = device.hello()
    check_module(plan, hello)
    asked = ask_oracle(plan, model, how, progress)
    found: dict[int, _Inference] = {}
    for stream in split_streams(list(range(len(asked.inputs))), asked.frames):
        for position, run in enumerate(stream):
            progress(f"inference {len(found) + 1} of {len(asked.inputs)} on the board")
            found[run] = _infer(plan, device, asked.inputs[run], position == 0, how.timeout)
    outputs = [_outputs(plan, found[run]) for run in range(len(asked.inputs))]
    verdict = judge_outputs(plan, asked, outputs, [], progress)
    return BoardValidation(
        exact=verdict.exact,
        unproven=verdict.unproven,
        within_bound=verdict.within_bound,
        elements=verdict.comparison.elements,
        mismatches=verdict.comparison.mismatches,
        max_ulp=verdict.comparison.max_ulp,
        max_step=verdict.comparison.max_step,
        operator_bounds=verdict.operator_bounds,
        first_mismatch=verdict.comparison.first,
        problems=verdict.problems,
        warnings=(*asked.warnings, *_warnings(plan, hello)),
        runs=asked.results,
        frames=asked.frames,
        seed=how.seed,
        oracle=asked.oracle,
        counter=hello.counter,
        overhead_cycles=hello.overhead,
        figures=_figures(plan, hello, [found[run] for run in sorted(found)]),
    )


def check_module(plan: Plan, hello: Hello) -> None:
    """Raise BoardFailed if the board's module is not the plan's."""
    if hello.sha256 != plan.graph.sha256:
        raise BoardFailed(
            f"the board has another model: its file's SHA-256 is {hello.sha256[:16]}..., that of {plan.graph.path} is "
            f"{plan.graph.sha256[:16]}...; flash the module that `tinyfuse gen --board` makes of this file"
        )
    if hello.code != module_digest(plan):
        raise BoardFailed(
            "the board's module was generated from this model with other options, or by another version of tinyfuse: "
            "give the same --target, --name and options here as to `tinyfuse gen --board`, or flash the module again"
        )
    said = hello.inputs, hello.outputs, hello.groups, hello.arena_bytes, hello.state_bytes
    source = plan.source
    if said != (len(source.inputs), len(source.outputs), len(plan.groups), plan.arena_bytes, plan.state_bytes):
        raise BoardFailed(
            "the board reports this module's digest but other sizes of inputs, outputs, arena or state: check the "
            "serial line, and flash the module again"
        )


def _infer(plan: Plan, device: Device, inputs: list[np.ndarray], first: bool, timeout: float) -> _Inference:
    """Runs one inference; `first` tells that it begins a stream. BoardFailed if the module returns an error."""
    # the board's server takes the rows of a sliding window's step at once
    fed = plan.source.inputs.index(plan.fed) if plan.fed is not None and plan.source.window is None else None
    for index, array in enumerate(inputs):
        if index != fed:
            device.write(index, _stored(array))
    flags = FIRST | (RESET if first else 0)
    if fed is None:
        result = device.run(flags | LAST, timeout)
    else:
        result = _feed(device, fed, inputs[fed], plan.source.inputs[fed].shape[1], flags, timeout)
    if result.status == _NO_RESULT_YET and plan.awaits:
        return _Inference(None, result, [])
    if result.status != _OK:
        hint = " (hint: call NAME_bind before NAME_board_serve)" if result.status == _NO_WEIGHTS else ""
        raise BoardFailed(
            f"the module on the board returned error {result.status}; its header explains the number{hint}"
        )
    groups = device.groups(len(plan.groups))
    return _Inference([device.read(i, t.bytes) for i, t in enumerate(plan.source.outputs)], result, groups)


def _feed(device: Device, index: int, image: np.ndarray, rows: int, flags: int, timeout: float) -> Result:
    """Runs one inference whose image is sent row by row, and returns its last result."""
    data = _stored(image)
    size = len(data) // rows
    for row in range(rows):
        device.write(index, data[row * size : (row + 1) * size])
        result = device.run(flags | (LAST if row == rows - 1 else 0), timeout)
        if result.status != _OK:
            break
        flags = 0
    return result


def _stored(array: Array) -> bytes:
    """Bytes of an array in the byte order of Cortex-M."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _outputs(plan: Plan, inference: _Inference) -> list[bytes]:
    """Bytes of each output; zeros for a run without a result, as in the oracle's outputs."""
    return [bytes(t.bytes) for t in plan.source.outputs] if inference.outputs is None else inference.outputs


def _warnings(plan: Plan, hello: Hello) -> list[str]:
    if hello.counter == "none":
        return ["the board counts no cycles: give NAME_board_serve a counter of your own (docs/board.md)"]
    longest = [known_total(stages) for stages in plan_stages(plan)]
    if hello.counter == "SysTick" and any(each is None or each > _LONG_FOR_SYSTICK for each in longest):
        return [
            "SysTick has 24 bits: the count of a group that takes more than 16,777,215 cycles is too low; give "
            "NAME_board_serve a counter of your own (docs/board.md)"
        ]
    return []


def _figures(plan: Plan, hello: Hello, inferences: list[_Inference]) -> BoardFigures | None:
    """Cycles over the runs that have a result; None if nothing counts cycles."""
    timed = [each for each in inferences if each.outputs is not None]
    if hello.counter == "none" or not timed:
        return None
    steps = [each.result.longest_step for each in timed if each.result.longest_step is not None]
    return BoardFigures(
        cycles=_spread(each.result.cycles for each in timed),
        groups=tuple(_spread(each.groups[number][0] for each in timed) for number in range(len(plan.groups))),
        outside=_spread(each.result.cycles - sum(cycles for cycles, _ in each.groups) for each in timed),
        longest_step=max(steps) if plan.options.step and steps else None,
    )


def _spread(cycles: Iterable[int]) -> Spread:
    values = list(cycles)
    return Spread(round(sum(values) / len(values)), min(values), max(values))
