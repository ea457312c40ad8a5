"""Targets: what targets/*.toml says of a core, loaded and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from tinyfuse.errors import UsageError
from tinyfuse.resources import resource_dir


@dataclass(frozen=True)
class Target:
    """A core that code is generated for (targets/NAME.toml), or a variant of one.

    name         "cortex-m4"; "cortex-m4+nofp" without its FPU; "host" is the machine that runs tinyfuse
    description  one line for people
    cpu          -mcpu value, None on the host
    dsp, mve     whether the plan relies on the DSP extension, on Helium (integer MVE)
    flags        compiler flags that select core, FPU and float ABI
    cost_table   whose measured costs predict its instructions (targets/costs/NAME.toml), None for none
    qemu_machine, qemu_tick_ns, renode_cpu   how to emulate it; None where the emulator can't
    flash, ram   (origin, bytes) of the emulated board's memories
    bulk         of a larger one, for inputs, and for weights that the flash has no room for; None: the RAM
    """

    name: str
    description: str
    cpu: str | None
    dsp: bool
    mve: bool
    flags: tuple[str, ...]
    cost_table: str | None = None
    qemu_machine: str | None = None
    qemu_tick_ns: float | None = None
    renode_cpu: str | None = None
    flash: tuple[int, int] | None = None
    ram: tuple[int, int] | None = None
    bulk: tuple[int, int] | None = None


@cache
def all_targets() -> dict[str, Target]:
    """Every target, by name: in the order of the file names, each followed by its variants."""
    targets = {}
    for path in sorted(resource_dir("targets").glob("*.toml")):
        fields = tomllib.loads(path.read_text())
        targets[path.stem] = _target(path.stem, fields, {})
        for name, changes in fields.get("variants", {}).items():
            targets[f"{path.stem}+{name}"] = _target(f"{path.stem}+{name}", fields, changes)
    return targets


def _target(name: str, fields: dict, changes: dict) -> Target:
    """The target that a file's `fields` describe; `changes` are a variant's fields of [core]."""
    core, emulation = fields["core"] | changes, fields.get("emulation", {})
    # a variant with another instruction set takes other kernels
    same_kernels = all(core[key] == fields["core"][key] for key in ("dsp", "mve"))
    return Target(
        name=name,
        description=core["description"],
        cpu=core.get("cpu"),
        dsp=core["dsp"],
        mve=core["mve"],
        flags=tuple(core["flags"]),
        cost_table=(core if same_kernels else changes).get("cost_table"),
        qemu_machine=emulation.get("qemu_machine"),
        qemu_tick_ns=emulation.get("qemu_tick_ns"),
        renode_cpu=emulation.get("renode_cpu"),
        flash=tuple(emulation["flash"]) if "flash" in emulation else None,
        ram=tuple(emulation["ram"]) if "ram" in emulation else None,
        bulk=tuple(emulation["bulk"]) if "bulk" in emulation else None,
    )


def load_target(name: str) -> Target:
    """The target of that name; UsageError with the known names where there is none."""
    targets = all_targets()
    if name not in targets:
        raise UsageError(f"unknown target {name!r}; known targets: {', '.join(targets)}")
    return targets[name]
