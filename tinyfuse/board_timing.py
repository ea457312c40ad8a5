"""Timing that a board adds to its core's cycles: waits for its flash, and the clock for milliseconds.

    cycles = fetch * cycles of the core + reads * wait states / line * bytes loaded from flash

The core's cycles are an estimate (tinyfuse/profile/cycles.py), so these are too. One read of the flash brings `line`
bytes. Weights are read from end to end, and each of their lines waits `reads` times: once, and again if it displaces
instructions from a prefetch buffer. `fetch` is the factor for fetching instructions: 1 from TCM or SRAM, little more
from flash behind a cache.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from tinyfuse.errors import UsageError

#: source of a timing that the user describes
BY_USER = "--timing"


@dataclass(frozen=True)
class BoardTiming:
    """A board's clock and flash; without arguments, a core that never waits.

    name         name for `--timing`.
    description  one line for people.
    mhz          the core's clock; None if only cycles are wanted.
    wait_states  wait cycles of a read from the flash with the weights; 0 for TCM, SRAM, or a cache that holds them.
    line         bytes per read.
    reads        waits per line of weights.
    fetch        factor on the core's cycles if code is fetched from flash.
    source       source of these figures.
    devices      start of the names of microcontrollers with this core, clock and flash.
    """

    name: str = ""
    description: str = ""
    mhz: float | None = None
    wait_states: int = 0
    line: int = 4
    reads: float = 1.0
    fetch: float = 1.0
    source: str = ""
    devices: str = ""

    @property
    def flash_byte(self) -> float:
        """Cycles that each byte loaded from flash waits."""
        return self.reads * self.wait_states / self.line

    def cycles(self, core: float, flash_bytes: float) -> float:
        """Cycles on the board, given the core's cycles and the bytes loaded from flash."""
        return self.fetch * core + self.flash_byte * flash_bytes

    def milliseconds(self, cycles: float | None) -> float | None:
        """Milliseconds of these cycles on the board; None if the clock or the cycles are not known."""
        return None if cycles is None or self.mhz is None else round(cycles / (1000 * self.mhz), 3)

    def __str__(self) -> str:
        """Description such as "120 MHz, 5 wait states for 8 bytes of flash"."""
        clock = "" if self.mhz is None else f"{self.mhz:g} MHz, "
        if not self.wait_states:
            return f"{clock}no wait states"
        states = "a wait state" if self.wait_states == 1 else f"{self.wait_states} wait states"
        return f"{clock}{states} for {self.line} bytes of flash"


_CLOCK = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)\s*MHz((?:,\w+=[^,]*)*)", re.IGNORECASE | re.ASCII)
_EXAMPLE = "or write a clock, as 120MHz, with wait states of flash and the bytes of a read, as 120MHz,wait=5,line=8"

_FACTOR = r"\d{1,2}(\.\d{1,6})?"
#: key -> pattern, least and largest value
_KEYS = {
    "wait": (r"\d{1,3}", 0, 100), "line": (r"\d{1,3}", 1, 256), "reads": (_FACTOR, 0, 99), "fetch": (_FACTOR, 1, 99),
}  # fmt: skip


def find_timing(text: str | None, boards: Collection[BoardTiming]) -> BoardTiming:
    """Finds the board with that name, or parses the text as one; a core that never waits for None. UsageError for other
    texts."""
    if text is None:
        return BoardTiming()
    named = next((board for board in boards if board.name == text.strip().lower()), None)
    if named is not None:
        return named
    clock = _CLOCK.fullmatch(text.strip())
    if clock is None:
        known = ", ".join(board.name for board in boards)
        raise UsageError(f"--timing {text!a}: {f'the target has {known}' if known else 'no such board'}; {_EXAMPLE}")
    if not float(clock[1]):
        raise UsageError(f"--timing {text!a}: a clock of 0 MHz never ends; {_EXAMPLE}")
    given: dict[str, str] = {}
    for word in filter(None, clock[2].split(",")):
        key, _, value = word.partition("=")
        if key not in _KEYS or key in given:
            raise UsageError(f"--timing {text!a}: {key} is not one of {', '.join(_KEYS)}, each once; {_EXAMPLE}")
        pattern, least, largest = _KEYS[key]
        if not re.fullmatch(pattern, value, re.ASCII) or not least <= float(value) <= largest:
            raise UsageError(f"--timing {text!a}: {key} is a number from {least} to {largest}; {_EXAMPLE}")
        given[key] = value
    if "wait" in given and "line" not in given:
        raise UsageError(f"--timing {text!a}: how many bytes come after these wait states? {_EXAMPLE}")
    return BoardTiming(
        name=text.strip(),
        mhz=float(clock[1]),
        wait_states=int(given.get("wait", 0)),
        line=int(given.get("line", 4)),
        reads=float(given.get("reads", 1)),
        fetch=float(given.get("fetch", 1)),
        source=BY_USER,
    )
