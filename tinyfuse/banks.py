"""Memory banks as a user names them: `--memory dtcm=64K --memory qspi=8M:slow`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tinyfuse.errors import UsageError
from tinyfuse.options import parse_size

#: what a bank's name has in it where nobody says `:ram` or `:flash` and it is flash
FLASH_NAMES = ("flash", "rom", "spi", "xip")

#: more than any microcontroller has memories
MOST_BANKS = 8

_BANK = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,31})=([^:]*)((?::[a-z]+)*)")
_EXAMPLE = "write NAME=SIZE, as dtcm=64K, and behind it :slow, :code, :ram or :flash, as qspi=8M:slow"


@dataclass(frozen=True)
class Bank:
    """A piece of a device's memory that the module may have.

    name   as the region is called in the linker script
    bytes  that are the module's
    flash  it is read alone, and holds weights; else it holds arena and state
    slow   what is read often should not lie here
    code   it holds the module's code, and nothing else
    """

    name: str
    bytes: int
    flash: bool
    slow: bool
    code: bool = False

    def __str__(self) -> str:
        """What is typed for it."""
        kind = "" if _sounds_flash(self.name) == self.flash else ":flash" if self.flash else ":ram"
        return f"{self.name}={self.bytes}{kind}{':slow' if self.slow else ''}{':code' if self.code else ''}"


def parse_banks(texts: Iterable[str]) -> tuple[Bank, ...]:
    """The banks that were named, in their order. UsageError for a text that is none, and for two of one name: macros
    are made of them, so that letters' case doesn't tell them apart."""
    banks = tuple(map(_bank, texts))
    seen: set[str] = set()
    for bank in banks:
        if bank.name.upper() in seen:
            raise UsageError(f"--memory {bank.name}: there are two banks of that name; give each its own")
        seen.add(bank.name.upper())
    if sum(bank.code for bank in banks) > 1:
        raise UsageError("--memory: two banks are for code; give one")
    if len(banks) > MOST_BANKS:
        raise UsageError(f"--memory: {len(banks)} banks are more than the {MOST_BANKS} that there may be")
    return banks


def _bank(text: str) -> Bank:
    found = _BANK.fullmatch(text)
    if found is None:
        raise UsageError(f"--memory {text!a} is no memory bank; {_EXAMPLE}")
    name, size, words = found[1], parse_size(found[2]), found[3].split(":")[1:]
    if not size:
        raise UsageError(f"--memory {text!a}: a bank of no bytes holds nothing; {_EXAMPLE}")
    unknown = [word for word in words if word not in ("slow", "ram", "flash", "code")]
    contrary = {"ram", "flash"} <= set(words) or {"slow", "code"} <= set(words)
    if unknown or len(set(words)) < len(words) or contrary:
        raise UsageError(f"--memory {text!a}: {':'.join(unknown or words)!r} is not what a bank can be; {_EXAMPLE}")
    flash = "flash" in words or (_sounds_flash(name) and "ram" not in words)
    return Bank(name, size, flash, "slow" in words, "code" in words)


def _sounds_flash(name: str) -> bool:
    return any(part in name.lower() for part in FLASH_NAMES)
