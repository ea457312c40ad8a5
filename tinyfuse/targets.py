"""Targets: loads targets/*.toml, which describe cores."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyfuse.board_timing import BoardTiming
from tinyfuse.chip_families import find_family
from tinyfuse.errors import UsageError
from tinyfuse.once import hashed_once
from tinyfuse.resources import resource_dir


@hashed_once
@dataclass(frozen=True)
class Target:
    """A core that code is generated for (targets/NAME.toml), or a variant of one.

    name         "cortex-m4"; "cortex-m4+nofp" without its FPU; "host" is the machine that runs tinyfuse.
    description  one line for people.
    cpu          -mcpu value; None if the code is for any core, and its tests run on the host.
    any_compiler other compilers than those for Arm or a PC may be used: the code checks what it needs of them
    dsp, mve     the plan relies on the DSP extension, on Helium (integer MVE).
    dual_issue   it issues two instructions per cycle, such as a load and a multiplication; an instruction with several
                 loads issues alone.
    fpu          float32 is computed by instructions, not by a library.
    flags        compiler flags that select core, FPU and float ABI.
    cost_table   name of the table that predicts its instructions (targets/costs/NAME.toml); None without one.
    float_costs  name of a table with float kernels that cost_table lacks, and that take the same instructions here.
    cycle_table  name of the table that predicts its cycles (targets/cycles/NAME.toml); None without one.
    boards       boards with known timing, for `--timing`.
    qemu_machine, qemu_tick_ns, renode_cpu   how to emulate it; None if the emulator cannot.
    flash, ram   (origin, bytes) of the emulated board's memories.
    bulk         (origin, bytes) of a larger memory, for inputs and for weights beyond the flash; None: the RAM.
    """

    name: str
    description: str
    cpu: str | None
    dsp: bool
    mve: bool
    flags: tuple[str, ...]
    any_compiler: bool = False
    dual_issue: bool = False
    fpu: bool = False
    cost_table: str | None = None
    float_costs: str | None = None
    cycle_table: str | None = None
    boards: tuple[BoardTiming, ...] = ()
    qemu_machine: str | None = None
    qemu_tick_ns: float | None = None
    renode_cpu: str | None = None
    flash: tuple[int, int] | None = None
    ram: tuple[int, int] | None = None
    bulk: tuple[int, int] | None = None


@cache
def all_targets() -> dict[str, Target]:
    """All targets by name, in the order of the file names, each followed by its variants."""
    targets = {}
    for path in sorted(resource_dir("targets").glob("*.toml")):
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        targets[path.stem] = _target(path.stem, fields, {})
        for name, changes in fields.get("variants", {}).items():
            targets[f"{path.stem}+{name}"] = _target(f"{path.stem}+{name}", fields, changes)
    return targets


def _target(name: str, fields: dict[str, Any], changes: dict[str, Any]) -> Target:
    """Target from a file's `fields`; `changes` are a variant's fields of [core]."""
    core, emulation, boards = fields["core"] | changes, fields.get("emulation", {}), fields.get("boards", {})
    # a variant with another instruction set takes other kernels
    same_kernels = all(core[key] == fields["core"][key] for key in ("dsp", "mve"))
    return Target(
        name=name,
        description=core["description"],
        cpu=core.get("cpu"),
        dsp=core["dsp"],
        mve=core["mve"],
        flags=tuple(core["flags"]),
        any_compiler=core.get("any_compiler", False),
        dual_issue=core.get("dual_issue", False),
        fpu=core.get("fpu", False),
        cost_table=(core if same_kernels else changes).get("cost_table"),
        float_costs=(core if same_kernels else changes).get("float_costs"),
        cycle_table=(core if same_kernels else changes).get("cycle_table"),
        boards=tuple(BoardTiming(name=name, **board) for name, board in boards.items()),
        qemu_machine=emulation.get("qemu_machine"),
        qemu_tick_ns=emulation.get("qemu_tick_ns"),
        renode_cpu=emulation.get("renode_cpu"),
        flash=tuple(emulation["flash"]) if "flash" in emulation else None,
        ram=tuple(emulation["ram"]) if "ram" in emulation else None,
        bulk=tuple(emulation["bulk"]) if "bulk" in emulation else None,
    )


#: cores without a target of their own -> the target whose code they run, and why
_OTHER_CORES = {
    "Cortex-M0": ("cortex-m0plus", "both are Armv6-M"),
    "Cortex-M1": ("cortex-m0plus", "both are Armv6-M"),
    "SC000": ("cortex-m0plus", "both are Armv6-M"),
    "Cortex-M23": ("cortex-m0plus", "Armv8-M Baseline has all of Armv6-M"),
    "SC300": ("cortex-m3", "both are Armv7-M"),
    "Cortex-M35P": ("cortex-m33", "both are Armv8-M Mainline; without DSP it is cortex-m33+nodsp"),
    "STAR-MC1": ("cortex-m33", "both are Armv8-M Mainline; without DSP it is cortex-m33+nodsp"),
    "Cortex-M52": ("cortex-m55", "both are Armv8.1-M; without Helium it is cortex-m55+nomve"),
}
#: other names of targets; the F of a Cortex-M4F is its FPU, which cortex-m4 has
_OTHER_NAMES = {"cortexm0+": "cortex-m0plus", "cortexm4f": "cortex-m4"}


def load_target(name: str) -> Target:
    """Finds a target by name, in any spelling ("Cortex-M4", "cortexm4", "m4"). UsageError that suggests one if there is
    none."""
    known = _by_plain_name()
    target = known.get(_plain(name)) or known.get(f"cortex{_plain(name)}")
    if target is None:
        raise UsageError(f"unknown target {name!r}; {_advice(name)}")
    return all_targets()[target]


def target_of_core(name: str) -> str | None:
    """Target whose code a core runs; None if there is none."""
    others = {_plain(core): target for core, (target, _) in _OTHER_CORES.items()}
    return (_by_plain_name() | others).get(_plain(name))


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.strip().lower())


@cache
def _by_plain_name() -> dict[str, str]:
    return {_plain(target): target for target in all_targets()} | _OTHER_NAMES


def _advice(name: str) -> str:
    plain = _plain(name)
    core = _by_plain_name().get(plain.partition("+")[0])
    if "+" in plain and core is not None:
        variants = [target.removeprefix(core) for target in all_targets() if target.startswith(f"{core}+")]
        return f"{core} has the variants {', '.join(variants)}" if variants else f"{core} has no variants"
    for core, (target, why) in _OTHER_CORES.items():
        if plain in (_plain(core), _plain(core).removeprefix("cortex")):
            return f"--target {target} makes code that a {core} runs: {why}"
    if plain.startswith("cortexm"):
        alike = difflib.get_close_matches(plain, _by_plain_name(), n=1, cutoff=0.85)
        if alike:
            return f"did you mean {_by_plain_name()[alike[0]]}?"
    family = find_family(name)
    if family is not None and not family.in_packs:
        return str(family)
    if family is not None or re.match(r"(?!arm|cortex|m\d)[a-z]+\d", plain):
        known = f"{family}, or " if family is not None else "a microcontroller goes with "
        return f"{known}--device: `tinyfuse devices {name}` lists those of that name"
    return f"known targets: {', '.join(all_targets())}"
