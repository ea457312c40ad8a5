"""Measures code sizes of kernels and writes a core's table.

    python benchmarks/measure_code.py [--targets cortex-m4 ...] [--networks 12] [--kernels tinyfuse_conv_row_s8 ...]

writes targets/code/NAME.toml, from which `--max-flash`, `report --costs` and `tinyfuse.estimate` predict bytes of code.
Run it with `--kernels` after a kernel's C was changed. It links random networks (cost_networks.py), and for each path
of a kernel a module with one call and one with two. The sizes are those that explain which functions these modules
have, and their bytes, beginning with those of the table. A module takes a fifth of a second to compile; nothing is run.
Kernels whose call is about as large as usual, and that share no functions, get no line.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(HERE.parent / "tests" / each) for each in ("support", "emulated"))]

from cost_grid import drawn_for  # noqa: E402
from cost_networks import networks  # noqa: E402
from measure_costs import OURS, kernels_to_measure, side_by_side  # noqa: E402
from sized_networks import DTYPES  # noqa: E402

from tinyfuse.cost.code import CALL, Sizes, calls_in, code_entry, every_group, module_bytes, most_alike, specialized  # noqa: E402
from tinyfuse.ir import Op  # noqa: E402
from tinyfuse.kernels.core.context import Context  # noqa: E402
from tinyfuse.kernels.registry import kernels_for, kernels_of  # noqa: E402
from tinyfuse.plan import Plan  # noqa: E402
from tinyfuse.targets import Target, all_targets, load_target  # noqa: E402
from tinyfuse.verify.emulation.code_size import link_code  # noqa: E402
from tinyfuse.verify.emulation.compilers import find_compiler  # noqa: E402
from tinyfuse.verify.emulation.elf import open_elf  # noqa: E402

#: operators that are drawn to find some of each path of a kernel
DRAWN = 24

#: bytes of a usual call; a kernel whose calls differ by less than `LITTLE` and share no functions gets no line
USUAL, LITTLE = 90, 60

#: passes over the modules, each with the functions that the sizes of the last one lead to
PASSES = 4

#: shares of a module's bytes, and of a call's, that are an error as large as 1
MODULE_ERROR, CALL_ERROR = 0.05, 0.3

#: what compilers append to names of specialized functions
CLONE = re.compile(r"(\.(constprop|isra|part|cold)\.?\d*)+$")


@dataclass(frozen=True)
class Linked:
    """A linked module: entry of each call, bytes of its calls with their functions, and of each shared function."""

    calls: tuple[str, ...]
    code: int
    functions: Sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    tables = dict.fromkeys(target.cost_table for target in all_targets().values() if target.cost_table)
    parser.add_argument("--targets", nargs="+", choices=list(tables), default=list(tables))
    parser.add_argument("--networks", type=int, default=12, metavar="N", help="of each dtype")
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="of these alone; other lines stay")
    args = parser.parse_args()
    for name in args.targets:
        target, path = load_target(name), HERE.parent / "targets" / "code" / f"{name}.toml"
        if not path.exists():  # plans want one
            path.write_text(toml("", {}, {}))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            modules = list(pool.map(link, plans_of(target, args.networks, args.kernels)))
        known = tomllib.loads(path.read_text())
        kernels, functions = fitted(known["kernels"], known["functions"], modules)
        if args.kernels:
            kept = {entry: sizes for entry, sizes in known["kernels"].items() if kernel_of(entry) not in args.kernels}
            used = {name for sizes in kept.values() for name in sizes}
            kernels = {entry: each for entry, each in kernels.items() if kernel_of(entry) in args.kernels} | kept
            functions |= {name: size for name, size in known["functions"].items() if name in used}
        path.write_text(toml(f"{find_compiler(target, 'qemu', 'O2').version}, -O2", kernels, functions))
    return 0


def kernel_of(entry: str) -> str:
    return entry.partition(" ")[0]


def first_part(entry: str) -> str:
    """A kernel's name with the first part of its path."""
    return entry.partition(", ")[0]


def plans_of(target: Target, count: int, names: list[str] | None) -> Iterator[Plan]:
    """Yields random networks, and modules with one call and two calls on each path of the kernels `names`, or all."""
    plans = [plan for dtype in DTYPES for plan in networks(target, dtype, count)]
    yield from plans
    found = defaultdict[str, list[tuple[Op, Context]]](list)
    for each, group in (pair for plan in plans for pair in every_group(plan)):
        for stage in group.stages:
            if not names or stage.kernel.name in names:
                entry = code_entry(stage.op, stage.kernel, stage.by_row, each.context)
                found[entry].append((stage.op, each.context))
    for kind, name in kernels_to_measure(None, names):
        for entry, op, context in drawn_operators(target, kind, name):
            found[entry].append((op, context))
    for entry, ((first, context), *others) in found.items():
        if not first.outputs:  # changes a state
            continue
        yield side_by_side([[first]], context)
        alike = [ops[0] for other, ops in found.items() if other != entry and first_part(other) == first_part(entry)]
        differing = (op for op, _ in others + alike if op.input.shape != first.input.shape)
        second = next((op for op in differing if not tensors(op) & tensors(first)), None)
        if second:
            yield side_by_side([[first], [second]], context)


def tensors(op: Op) -> set[int]:
    return {tensor.index for tensor in (*op.activations, *op.outputs)}


def drawn_operators(target: Target, kind: str, name: str) -> Iterator[tuple[str, Op, Context]]:
    """Yields operators for which this kernel of ours is chosen: (entry, operator, context)."""
    kernels = [kernel for kernel in kernels_of(kind) if kernel.name == name and kernel.library == "tinyfuse"]
    others = frozenset(kernel.name for kernel in kernels_of(kind)) - {name}
    for op in drawn_for(name, kind, DRAWN) if kernels else ():
        for context in (way.context(target, lacks=others, kernels="tinyfuse") for way in OURS):
            chosen = next((each for each in kernels_for(op) if each.name == name and each.accepts(op, context)), None)
            if chosen:
                yield code_entry(op, chosen, not chosen.whole, context), op, context
                break


def link(plan: Plan) -> Linked:
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        path, code = link_code(plan, Path(folder))
        with path.open("rb") as file:
            symbols = list(open_elf(file).get_section_by_name(".symtab").iter_symbols())
    functions = Counter[str]()
    for symbol in symbols:
        if symbol.name.startswith("tinyfuse_") and symbol["st_size"]:
            functions[CLONE.sub("", symbol.name)] += symbol["st_size"]
    calls = tuple(
        code_entry(op, kernel, by_row, each.context)
        for each, group in every_group(plan)
        for stage in group.stages
        for kernel, op, by_row in calls_in(stage.op, stage.kernel, stage.by_row, each.context)
    )
    return Linked(calls, max(0, code.module - module_bytes(plan)), dict(functions))


def fitted(known: dict[str, Sizes], functions: Sizes, modules: Sequence[Linked]) -> tuple[dict[str, Sizes], Sizes]:
    """Sizes of kernels and functions (see CodeTable) that explain the modules, from those that were `known`."""
    kernels, functions = {entry: dict(sizes) for entry, sizes in known.items()}, dict(functions)
    for each in modules:
        if len(each.calls) == 1:
            before = dict.fromkeys(most_alike(known, each.calls[0]) or {}, 0)
            own = {CALL: max(0, each.code - sum(each.functions.values()))}
            kernels[each.calls[0]] = before | own | each.functions
    for each in modules:
        for entry in each.calls:
            kernels.setdefault(entry, dict(most_alike(kernels, entry) or {CALL: USUAL}))
        calls = [kernels[entry] for entry in each.calls]
        if len({*map(kernel_of, each.calls)}) == 1:
            for name in each.functions.keys() - {name for call in calls for name in call}:
                for call in calls:
                    call[name] = 0
            functions |= {name: max(size, functions.get(name, 0)) for name, size in each.functions.items()}
    for _ in range(PASSES):
        functions |= fit_functions(kernels, modules)
    fit_calls(kernels, modules)
    return kernels, functions


def fit_functions(kernels: dict[str, Sizes], modules: Sequence[Linked]) -> Sizes:
    """Sets the sizes of functions in `kernels` to what modules link for specialized calls, 0 if that is mostly nothing,
    and drops functions that other calls mostly do not link. Returns sizes of functions that several calls use."""
    alone, together = defaultdict[tuple[str, str], list[int]](list), defaultdict[tuple[str, str], list[int]](list)
    several = defaultdict[str, list[int]](list)
    for module in modules:
        calls = [kernels[entry] for entry in module.calls]
        linked = [
            (entry, special, {name for name, size in call.items() if name != CALL and (size or not special)})
            for entry, call, special in zip(module.calls, calls, specialized(calls), strict=True)
        ]
        callers = Counter(name for _, _, names in linked for name in names)
        for entry, special, _ in linked:
            others = {name for other, _, names in linked if other != entry for name in names}
            for name in kernels[entry].keys() - others - {CALL}:
                (alone if special else together)[entry, name].append(module.functions.get(name, 0))
        for name in [name for name, count in callers.items() if count > 1 and name in module.functions]:
            several[name].append(module.functions[name])
    for (entry, name), sizes in alone.items():
        found = [size for size in sizes if size]
        kernels[entry][name] = round(sum(found) / len(found)) if 2 * len(found) > len(sizes) else 0
    for (entry, name), sizes in together.items():
        if 2 * sum(size > 0 for size in sizes) < len(sizes):
            del kernels[entry][name]
    return {name: round(sum(sizes) / len(sizes)) for name, sizes in several.items()}


def fit_calls(kernels: dict[str, Sizes], modules: Sequence[Linked]) -> None:
    """Sets bytes of calls in `kernels` to those that explain the modules, by least squares of relative errors; what
    modules do not tell stays as it is."""
    column = {entry: i for i, entry in enumerate(sorted({entry for each in modules for entry in each.calls}))}
    before = np.array([kernels[entry][CALL] for entry in column])
    rows, wanted = np.zeros((len(modules), len(column))), np.zeros(len(modules))
    for i, each in enumerate(modules):
        for entry in each.calls:
            rows[i, column[entry]] += 1
        wanted[i] = each.code - sum(each.functions.values())
    weights = 1 / (MODULE_ERROR * np.array([max(1, each.code) for each in modules]))
    near = np.diag(1 / (LITTLE / 2 + CALL_ERROR * before))
    system = np.vstack([rows * weights[:, None], near])
    found = np.linalg.lstsq(system, np.concatenate([wanted * weights, near @ before]), rcond=None)[0]
    for entry, i in column.items():
        kernels[entry][CALL] = max(0, round(found[i]))


def toml(compiler: str, kernels: dict[str, Sizes], functions: Sizes) -> str:
    """Text of a table. Paths of a kernel that shares no functions are one line, or none if their calls are usual."""
    paths = defaultdict[str, list[str]](list)
    for entry in sorted(kernels):
        paths[kernel_of(entry)].append(entry)
    shown = dict[str, Sizes]()
    for name, entries in paths.items():
        call = round(sum(kernels[entry][CALL] for entry in entries) / len(entries))
        if any(len(kernels[entry]) > 1 for entry in entries):
            shown |= {entry: kernels[entry] for entry in entries}
        elif abs(call - USUAL) >= LITTLE:
            shown[name] = {CALL: call}
    used = {name for sizes in shown.values() for name in sizes} & functions.keys()
    lines = [
        "# Bytes of kernels' code; made by benchmarks/measure_code.py, not by hand (tinyfuse/cost/code.py).",
        f"usual = {USUAL}",
        f'[about]\ncompiler = "{compiler}"',
        "[functions]",
        *(f"{name} = {functions[name]}" for name in sorted(used)),
        "[kernels]",
    ]
    for entry, sizes in shown.items():
        lines.append(f'"{entry}" = {{{", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))}}}')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
