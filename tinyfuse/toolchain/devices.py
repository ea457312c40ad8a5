"""Finds microcontrollers by name: core, FPU, RAM and flash from the data of CMSIS-Packs.

cmsis-pack-manager keeps most data of the packs' descriptions. The rest (whether a Cortex-M33 has DSP, or a Cortex-M55
MVE) is read from the descriptions themselves.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tinyfuse.banks import MOST_BANKS, Bank
from tinyfuse.chip_families import find_family
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.targets import all_targets, target_of_core
from tinyfuse.toolchain.pack_manager import Entry, Progress, index_url, open_cache, update_descriptions

#: targets whose cores are licensed with or without DSP or MVE
_WITH_OPTIONS = ("cortex-m33", "cortex-m55", "cortex-m85")
#: most names that a message lists
_LISTED = 12


@dataclass(frozen=True)
class Device:
    """A microcontroller, or one core of it.

    name    name of the pack's device, "STM32L4R5ZITx", or with the core's, "STM32H745ZITx:CM7".
    target  name of a target.
    ram, flash  bytes of the largest contiguous memory of each sort.
    pack    "Keil::STM32L4xx_DFP 2.6.1".
    memories  the core's memories as memory banks, in --memory's notation.
    """

    name: str
    target: str
    ram: int
    flash: int
    pack: str
    memories: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.target}, {self.ram:,} bytes RAM, {self.flash:,} bytes flash ({self.pack})"


def find_device(name: str, progress: Progress) -> Device:
    """Finds the device of that name.

    The beginning of names will do if all these devices are alike; NAME:CORE selects one of several cores. Device data
    is downloaded if the cache has none. UsageError if no device, or several different devices, match, or if no target
    fits the core.
    """
    part, _, core = name.upper().partition(":")
    family = find_family(part)
    if family is not None and not family.in_packs:
        raise UsageError(f"no CMSIS-Pack describes {name!r}; {family}")
    found = matching_entries(part, progress)
    found = [entry for entry in found if entry["name"].upper() == part] or found
    if not found:
        raise UsageError(
            f"no device is called {name!r} in the downloaded CMSIS-Pack data; `tinyfuse devices --update` downloads "
            f"newer data, `tinyfuse devices PART` lists names{_target_hint(part)}"
        )
    cores = [device for entry in found for device in _devices(entry)]
    chosen = [d for d in cores if not core or d.name.upper().endswith(f":{core}")]
    if not chosen:
        raise UsageError(f"{name!r} has no such core; there are {_listed(d.name for d in cores)}")
    if len({(d.target, d.ram, d.flash) for d in chosen}) > 1:
        raise UsageError(f"{name!r} matches different devices; give one of {_listed(d.name for d in chosen)}")
    return chosen[0]


def matching_entries(part: str, progress: Progress, update: bool = False) -> list[Entry]:
    """Cached entries of the devices whose names begin with `part`, in any case, ordered by name."""
    try:
        index = update_descriptions(progress) if update else open_cache().index or update_descriptions(progress)
    except ToolMissing as missing:
        raise ToolMissing(missing.tool, f"{missing.hint}{_target_hint(part)}") from None
    if not index:
        raise ToolMissing("device data", f"{index_url()} can't be reached{_target_hint(part)}")
    return [index[name] for name in sorted(index) if name.upper().startswith(part.upper())]


def _target_hint(part: str) -> str:
    """Hint at --target, for when no device data is available."""
    family = find_family(part)
    return "; name a --target instead" if family is None else f"; without a device's limits: {family}"


def all_devices(part: str, progress: Progress, update: bool) -> list[Device]:
    """Devices whose names begin with `part` and that a target fits."""
    found = []
    for entry in matching_entries(part, progress, update):
        try:
            found += _devices(entry)
        except UsageError:
            continue
    return found


def _listed(names: Iterable[str]) -> str:
    every = sorted(set(names))
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def _devices(entry: Entry) -> list[Device]:
    """Device for each of the entry's cores."""
    pack = entry["from_pack"]
    processors = entry["processors"]
    devices = []
    for processor in processors:
        if processor.get("unit", 0) > 0:  # a further unit of the same core
            continue
        core = processor.get("name")
        named = {name: m for name, m in entry["memories"].items() if m.get("p_name") in (None, core)}
        regions = list(named.values())
        devices.append(
            Device(
                name=entry["name"] if len(processors) == 1 or not core else f"{entry['name']}:{core}",
                target=_target(entry, processor),
                ram=_largest(m for m in regions if m["access"]["read"] and m["access"]["write"]),
                flash=_largest(m for m in regions if m["access"]["read"] and not m["access"]["write"]),
                pack=f"{pack['vendor']}::{pack['pack']} {pack['version']}",
                memories=_banks(named),
            )
        )
    return devices


def _banks(memories: Mapping[str, Entry]) -> tuple[str, ...]:
    """Memory banks of these names, ordered by address, without unreadable and empty memories."""
    found: dict[str, str] = {}
    for name, memory in sorted(memories.items(), key=lambda named: (named[1]["start"], named[0])):
        safe = re.sub(r"\W", "_", name, flags=re.ASCII)[:32]
        if memory["access"]["read"] and memory["size"] and safe[:1].isalpha():
            flash = not memory["access"]["write"]
            found.setdefault(safe.upper(), str(Bank(safe, memory["size"], flash, slow=False)))
    return tuple(found.values())[:MOST_BANKS]


def _largest(regions: Iterable[Entry]) -> int:
    """Bytes of the largest contiguous memory; adjacent and overlapping regions count as one."""
    largest = start = end = 0
    for first, size in sorted((m["start"], m["size"]) for m in regions):
        if first > end:
            start = first
        end = max(end, first + size)
        largest = max(largest, end - start)
    return largest


def _target(entry: Entry, processor: Entry) -> str:
    """Target, with its variant, of a core. UsageError if there is none."""
    core, fpu = processor["core"], processor["fpu"]
    name = target_of_core(core)
    if name is None:
        raise UsageError(f"{entry['name']} has a {core}; tinyfuse has no target for it")
    options = _options(entry, processor.get("name")) if name in _WITH_OPTIONS else {}
    wanted = ""
    if name == "cortex-m7" and fpu == "SinglePrecision":
        wanted = "+nofp.dp"
    elif fpu == "None" and name not in ("cortex-m0plus", "cortex-m3"):
        wanted = "+nofp"
    if name == "cortex-m33" and options.get("Ddsp") == "NO_DSP":
        wanted += "+nodsp"
    if options.get("Dmve") == "NO_MVE":
        wanted = "+nomve"
    if name + wanted not in all_targets():
        raise UsageError(
            f"{entry['name']} has a {core} ({', '.join(options.values()) or fpu}); tinyfuse has no {name}{wanted}"
        )
    return name + wanted


def _options(entry: Entry, core: str | None) -> dict[str, str]:
    """Attributes Ddsp and Dmve of a device's processor; those of its subfamily or family if it has none."""
    pack = entry["from_pack"]
    path = Path(open_cache().data_path, f"{pack['vendor']}.{pack['pack']}.{pack['version']}.pdsc")
    found: dict[str, str] = {}
    for level in _levels(_families(path), entry["name"]):
        for processor in level.findall("processor"):
            if processor.get("Pname") in (None, core):
                found |= {key: value for key in ("Ddsp", "Dmve") if (value := processor.get(key))}
    return found


@cache
def _families(description: Path) -> list[xml.Element]:
    try:
        return xml.parse(description).getroot().findall("devices/family")
    except (OSError, xml.ParseError):
        return []


def _levels(elements: list[xml.Element], name: str) -> list[xml.Element]:
    """XML elements from a family down to the device or variant of this name; empty if it does not occur."""
    for element in elements:
        if name in (element.get("Dname"), element.get("Dvariant")):
            return [element]
        inner = [child for child in element if child.tag in ("subFamily", "device", "variant")]
        below = _levels(inner, name)
        if below:
            return [element, *below]
    return []
