"""Results of building and running verification firmware, and the parser of its records."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tinyfuse.errors import EmulationFailed
from tinyfuse.targets import Target


@dataclass(frozen=True)
class Firmware:
    """A verification firmware, and figures of the module in its ELF file.

    runs          inferences with results that were asked for (the firmware makes at least two).
    emulator      "qemu", "renode" or "host": whose console it was built for.
    compiler      first line of the compiler's --version.
    opt           optimization level, "O2".
    code_bytes    linked code and constants of module and CMSIS-NN, without the weights.
    weight_bytes  linked constants of NAME_weights.c.
    ram_bytes     linked .data and .bss of module and CMSIS-NN, plus the arena and one state.
    broken        sentences about promises that the object files break: variables, heap, names of others.
    kernel_symbols  group function -> the arm_* and tinyfuse_* functions that it calls or inlines.
    unchecked     sentences about checks that the board has no room for.

    Sizes leave out harness and C library. On the host they are None, and there are no symbols.
    """

    elf: Path
    target: Target
    emulator: str
    runs: int
    compiler: str
    opt: str
    code_bytes: int | None = None
    weight_bytes: int | None = None
    ram_bytes: int | None = None
    broken: tuple[str, ...] = ()
    kernel_symbols: dict[str, list[str]] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Result of running a firmware.

    outputs       [run][index]: bytes of an output.
    instructions  instructions of the second inference; None if they cannot be counted. With a sliding window:
                  those of the worst step that has a result.
    instructions_mean   mean of a sliding window's steps that have a result.
    spread        least and most instructions of an inference over all inputs, if they were asked for.
    longest_step  most instructions of a step over all inputs, if they were asked for.
    stack_bytes   deepest stack of NAME_run; None if it cannot be measured.
    guards        sentences about writes outside the arena or the state, calls that should have been refused, and
                  promises of the header that do not hold.
    log           text that the firmware wrote.
    """

    outputs: list[list[bytes]]
    instructions: int | None
    stack_bytes: int | None
    guards: list[str]
    log: str = field(repr=False)
    instructions_mean: int | None = None
    spread: tuple[int, int] | None = None
    longest_step: int | None = None


class Emulator(Protocol):
    """A way to run firmware.

    `run` raises RunTimeout for a run that exceeds `time_limit`, in seconds of this machine, and EmulationFailed for a
    crash or a run that ends without a valid result line."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def run(self, firmware: Firmware, time_limit: float) -> Outcome: ...


_OUTPUT = re.compile(r"output (\d+) (\d+) ((?:[0-9a-f]{2})+)")
_GUARD = re.compile(r"(guard|state) (\d+) (before|after) (-?\d+)")
_MISUSE = re.compile(r"misuse (\d+) (-?\d+) (.+)")
_CHANGED = re.compile(r"changed (-?\d+) (.+)")
_MASKED = re.compile(r"masked (\d+) (\d+)")
_WITHIN = re.compile(r"within (\d+) (-?\d+)")
_REGISTER = re.compile(r"register (\w+) (\w+)")
_SPREAD = re.compile(r"spread least=(none|-?\d+) most=(none|-?\d+) step=(none|-?\d+)")
_RESULT = re.compile(r"result runs=(\d+) bytes=(\d+) crc=([0-9a-f]{8}) ticks=(none|-?\d+) stack=(none|\d+)"
                     r"(?: mean=(none|-?\d+))?")  # fmt: skip

#: bits of the core's Configurable Fault Status Register, and what they say
_FAULTS = {
    1 << 16: " at an undefined instruction: the module's, or one that the emulator lacks",
    1 << 1: " at an access to memory that is not the module's",
}


def parse_outcome(log: str, firmware: Firmware, tick_ns: float) -> Outcome:
    """Outcome that the firmware's records (firmware/verify.c) describe.

    `tick_ns` is the number of instructions per tick of the emulated SysTick. EmulationFailed if the records report a
    failure, or are incomplete or damaged.
    """
    outputs: dict[int, dict[int, bytearray]] = {}
    guards: list[str] = []
    result = None
    spread: list[int | None] = [None] * 3
    for line in log.splitlines():
        if match := _OUTPUT.fullmatch(line):
            run, index = int(match[1]), int(match[2])
            of_run = outputs.setdefault(run, {})
            of_run.setdefault(index, bytearray()).extend(bytes.fromhex(match[3]))
        elif sentence := _broken_promise(line):
            guards.append(sentence)
        elif match := _SPREAD.fullmatch(line):
            spread = [_instructions(ticks, tick_ns) for ticks in match.groups()]
        elif match := _RESULT.fullmatch(line):
            result = match
        elif line.startswith("wrong "):
            raise EmulationFailed(_wrong_instruction(firmware.emulator, line.removeprefix("wrong ")))
        elif line.startswith(("error ", "crash ")):
            raise emulation_failure("the firmware stopped" + _reason(line), log)
    if result is None:
        raise emulation_failure("the firmware ended without a result line", log)
    runs = [[bytes(output) for _, output in sorted(outputs.get(run, {}).items())] for run in range(int(result[1]))]
    written = b"".join(output for run in runs for output in run)
    if len(written) != int(result[2]) or zlib.crc32(written) != int(result[3], 16):
        raise emulation_failure("the outputs were damaged in transmission (length or CRC differs)", log)
    ticks, stack, mean_ticks = result.group(4, 5, 6)
    if ticks != "none" and int(ticks) < 0:
        raise emulation_failure(
            f"the emulator's clock ran backwards by {-int(ticks)} thousandths of a tick, so no count is right", log
        )
    if firmware.runs == 1 and runs[0] != runs[1]:  # a model with state has two new instances in these
        guards.append("run 1: the same inputs gave other outputs than in run 0")
    least, most, longest_step = spread
    return Outcome(
        outputs=runs[: firmware.runs],
        instructions=_instructions(ticks, tick_ns),
        instructions_mean=_instructions(mean_ticks or "none", tick_ns),
        stack_bytes=None if stack == "none" else int(stack),
        guards=list(dict.fromkeys(guards)),  # a register may change in every run
        log=log,
        spread=None if least is None or most is None else (least, most),
        longest_step=longest_step,
    )


def _instructions(ticks: str, tick_ns: float) -> int | None:
    # the firmware counts thousandths of ticks, and subtracts a function of one instruction
    return None if ticks == "none" else round(int(ticks) * tick_ns / 1000) + 1


def _broken_promise(line: str) -> str | None:
    """Return a sentence about the promise of the module that a line of output reports as broken; None for other
    lines."""
    if match := _GUARD.fullmatch(line):
        memory = {"guard": "arena", "state": "state"}[match[1]]
        return f"run {match[2]}: a byte {match[3]} the {memory} changed ({memory}[{match[4]}])"
    if match := _MISUSE.fullmatch(line):
        return f"run {match[1]}: {match[3]}: the module returned {match[2]}"
    if match := _CHANGED.fullmatch(line):
        when = f"run {match[1]}: " if int(match[1]) >= 0 else ""
        return f"{when}the module changed {match[2]}"
    if match := _MASKED.fullmatch(line):
        return f"run {match[1]}: the module masked interrupts: one came {match[2]} ticks late"
    if match := _WITHIN.fullmatch(line):
        given = "other outputs than in run 0" if match[2] == "0" else f"status {match[2]}"
        return f"run {match[1]}: an interrupt made an inference with another arena, which gave {given}"
    if match := _REGISTER.fullmatch(line):
        return f"{match[1]} returned with {match[2]} changed, which is its caller's"
    if line.startswith("promise "):
        return f"a promise of the header is not kept: {line.removeprefix('promise ')}"
    if line.startswith("weights "):
        return f"the bytes of the array {line.removeprefix('weights ')} are not the plan's"
    return None


def _reason(crash: str) -> str:
    status = re.search(r"\bcfsr=([0-9a-f]{8})", crash)
    return next((text for bit, text in _FAULTS.items() if status and int(status[1], 16) & bit), "")


def _wrong_instruction(emulator: str, instruction: str) -> str:
    name, other = {"renode": ("Renode", "QEMU (--emulator qemu)"), "qemu": ("QEMU", "another version of it")}[emulator]
    return (
        f"this {name} computes {instruction.upper()} wrongly, so its results would say nothing about the module"
        f" (hint: use {other}, or a build of {name} that computes it correctly)"
    )


def emulation_failure(reason: str, log: str) -> EmulationFailed:
    """Return EmulationFailed, with the reason and the last lines of the log as its message."""
    return EmulationFailed(failure_text(reason, log))


def failure_text(reason: str, log: str) -> str:
    """Return the reason and the last lines of the log."""
    lines = [line for line in log.splitlines() if line and not line.startswith("output ")]
    return "\n  ".join([reason, *lines[-12:]])


def running_inference(log: str) -> int:
    """Number (from 0) of the inference during which a firmware was ended, by the outputs in its log."""
    return max((int(match[1]) + 1 for match in map(_OUTPUT.fullmatch, log.splitlines()) if match), default=0)
