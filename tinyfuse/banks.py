"""Memory banks as users name them: `--memory dtcm=64K --memory qspi=8M:slow`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tinyfuse.errors import UsageError
from tinyfuse.options import parse_size

#: parts of names that make a bank flash, unless :ram or :flash says
FLASH_NAMES = ("flash", "rom", "spi", "xip")

#: parts of names that make a bank fast, unless :fast or :slow says: tightly coupled memories (DTCM, ITCM, CCM)
FAST_NAMES = ("tcm", "ccm")

#: more than any microcontroller has
MOST_BANKS = 8

_BANK = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,31})=([^:]*)((?::[a-z]+)*)")
_EXAMPLE = "write NAME=SIZE, as dtcm=64K, and behind it :fast, :slow, :code, :ram or :flash, as qspi=8M:slow"


@dataclass(frozen=True)
class Bank:
    """A piece of a device's memory that the module may use.

    name   region's name in the linker script
    bytes  size of the module's share
    flash  read-only, holds weights; otherwise it holds arena and state
    slow   for data that is read seldom
    code   holds the module's code, and nothing else
    fast   for data that is read most often
    """

    name: str
    bytes: int
    flash: bool
    slow: bool
    code: bool = False
    fast: bool = False

    @property
    def rank(self) -> int:
        """Sort key: 0 for fast banks, 1 for others, 2 for slow ones."""
        return 2 if self.slow else 0 if self.fast else 1

    def __str__(self) -> str:
        """Text that --memory takes for it."""
        kind = "" if _contains_any(self.name, FLASH_NAMES) == self.flash else ":flash" if self.flash else ":ram"
        fast = ":fast" if self.fast and not _contains_any(self.name, FAST_NAMES) else ""
        return f"{self.name}={self.bytes}{kind}{':slow' if self.slow else ''}{':code' if self.code else ''}{fast}"


def parse_banks(texts: Iterable[str]) -> tuple[Bank, ...]:
    """Parses the banks of --memory, in order.

    Raises UsageError for a malformed text, and for two banks of the same name; case is ignored, because names become
    macros.
    """
    banks = tuple(map(_parse_bank, texts))
    seen: set[str] = set()
    for bank in banks:
        if bank.name.upper() in seen:
            raise UsageError(f"--memory {bank.name}: two banks have this name; give each its own")
        seen.add(bank.name.upper())
    if sum(bank.code for bank in banks) > 1:
        raise UsageError("--memory: two banks have :code; only one may have it")
    if len(banks) > MOST_BANKS:
        raise UsageError(f"--memory: {len(banks)} banks; at most {MOST_BANKS} are possible")
    return banks


def _parse_bank(text: str) -> Bank:
    found = _BANK.fullmatch(text)
    if found is None:
        raise UsageError(f"--memory {text!a} is not a memory bank; {_EXAMPLE}")
    name, size, words = found[1], parse_size(found[2]), found[3].split(":")[1:]
    if not size:
        raise UsageError(f"--memory {text!a}: the bank has no bytes; {_EXAMPLE}")
    unknown = [word for word in words if word not in ("slow", "fast", "ram", "flash", "code")]
    contrary = {"ram", "flash"} <= set(words) or len({"slow", "fast", "code"} & set(words)) > 1
    if unknown or len(set(words)) < len(words) or contrary:
        raise UsageError(f"--memory {text!a}: {':'.join(unknown or words)!r} does not describe a bank; {_EXAMPLE}")
    flash = "flash" in words or (_contains_any(name, FLASH_NAMES) and "ram" not in words)
    fast = "fast" in words or (_contains_any(name, FAST_NAMES) and not {"slow", "code"} & set(words))
    return Bank(name, size, flash, "slow" in words, "code" in words, fast)


def _contains_any(name: str, parts: Iterable[str]) -> bool:
    return any(part in name.lower() for part in parts)
