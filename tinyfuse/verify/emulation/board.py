"""Memories of the emulated boards: chooses places, and checks sizes before anything is compiled."""

from __future__ import annotations

from tinyfuse.errors import UsageError
from tinyfuse.targets import Target

#: RAM of the harness: its stack, the arena's guards, the C library's data
_HARNESS_BYTES = 128 << 10


def weights_memory(target: Target, weight_bytes: int) -> str:
    """Memory region for the weights: BULK if they would fill more than half of the flash, which also holds the code."""
    assert target.flash is not None
    return "FLASH" if 2 * weight_bytes < target.flash[1] else "BULK"


def room_for_inputs(target: Target, weight_bytes: int, ram_bytes: int) -> int:
    """Bytes of a board's memory that are left for inputs; negative if the rest does not fit."""
    assert target.ram is not None
    if _HARNESS_BYTES + ram_bytes > target.ram[1]:
        return -1
    bulk = (target.bulk or target.ram)[1] - (0 if target.bulk else _HARNESS_BYTES + ram_bytes)
    return bulk - (weight_bytes if weights_memory(target, weight_bytes) == "BULK" else 0)


def check_board(target: Target, weight_bytes: int, ram_bytes: int, run_bytes: int, runs: int) -> None:
    """Raise UsageError if the board lacks memory for weights, for `ram_bytes` of arena and states, and for the inputs
    of the runs, `run_bytes` each. The host always has enough."""
    if target.ram is None:
        return
    room = room_for_inputs(target, weight_bytes, ram_bytes)
    if runs * run_bytes <= room:
        return
    fitting = room // run_bytes if run_bytes else 0
    hint = f"--runs {fitting} fit" if fitting > 0 else "--emulator host runs the model's portable kernels here"
    beside = f" and {target.bulk[1] >> 20} MB beside it" if target.bulk else ""
    raise UsageError(
        f"the emulated {target.name} has {target.ram[1] >> 20} MB of RAM{beside}: too little for weights of"
        f" {weight_bytes:,} bytes, an arena of {ram_bytes:,} and {runs} inputs of {run_bytes:,} (hint: {hint})"
    )
