"""Measures the code of every kernel and writes a target's table of code.

    python benchmarks/measure_code.py [--targets cortex-m4 cortex-m55] [--networks 24] [--missing]

writes targets/code/NAME.toml, from which `--max-flash`, `report --costs` and `tinyfuse.estimate` predict bytes of code:
run it after a kernel was changed. It compiles, and runs nothing: the modules that reach every kernel on every path
(tests/support/compiler_modules.py) and networks of the sizes that models have (cost_networks.py), each group as a
function of its own. Of the object file's sections, those that a group's function refers to say which C functions its
kernels share with others; the rest is its own. It takes two minutes of processor time a target.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(TESTS / each) for each in ("support", "unit", "exact", "emulated"))]

from compiler_modules import modules  # noqa: E402
from cost_files import entries_of as entry_texts  # noqa: E402
from cost_grid import drawn_for, operators  # noqa: E402
from cost_networks import networks  # noqa: E402
from measure_costs import LAYERS, drawn_job, grid_plan, kernels_to_measure  # noqa: E402
from sized_networks import DTYPES  # noqa: E402

from tinyfuse.cost.code import calls_in, code_entry, code_table, every_group, loop_parts, module_parts  # noqa: E402
from tinyfuse.kernels.core.kernel import Context  # noqa: E402
from tinyfuse.kernels.counts.common import Counts  # noqa: E402
from tinyfuse.kernels.registry import kernels_for  # noqa: E402
from tinyfuse.plan import Plan, Stage  # noqa: E402
from tinyfuse.targets import Target, all_targets, load_target  # noqa: E402
from tinyfuse.verify.emulation.compilers import find_compiler  # noqa: E402
from tinyfuse.verify.emulation.elf import open_elf  # noqa: E402
from tinyfuse.verify.emulation.module import write_module  # noqa: E402

#: how often a network's group counts beside one of the modules that reach everything: kernels among neighbours are what
#: is predicted
NETWORK_WEIGHT = 3

#: layers of a plan with several of a kind
SEVERAL = 8

#: errors are weighed with this many bytes more than a group has
SMALL = 100

#: keeps factors near 0 that samples can't tell; and those of `ALONE`, where no module has several calls
RIDGE, RIDGE_ALONE = 1e-5, 1e-4

#: counts where a call is the only one of its entry in a module
ALONE = "alone"

#: the module's functions of firmware that calls them all
API = "init|run|input|output|input_bytes|output_bytes|reset|begin|feed_rows|finish|slide|step"

#: of the functions that a module shares
SHARED = re.compile(r"\.(?:text|rodata)\.(tinyfuse\w*)")


#: the beginning of a section with a group's function
GROUP = re.compile(r"\.text\.\w+_group_\d+")


class Section(NamedTuple):
    """Of an object file: its bytes, and the names of the sections that it refers to."""

    size: int
    refers: frozenset[str]


#: begins the entries of what is no kernel's: of `module_parts` and `loop_parts`
PART = "module."
PARTS = tuple(PART + name for name in ("api", "row_loops", "slides"))


@dataclass(frozen=True)
class Piece:
    """What a group's bytes are of: an entry and its counts."""

    entry: str
    counts: Counts


@dataclass(frozen=True)
class Sample:
    """A group, or what a module has beside its groups. own: bytes that nobody shares; shared: C functions that it
    calls."""

    pieces: tuple[Piece, ...]
    own: int
    shared: frozenset[str]
    weight: int


@dataclass(frozen=True)
class Code:
    """What was measured. functions: name -> (bytes, bytes where one operator alone calls it)."""

    factors: Mapping[str, Mapping[str, float]]
    shapes: Counter[str]
    shared: Mapping[str, tuple[str, ...]]
    functions: Mapping[str, tuple[int, int]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    tables = dict.fromkeys(target.cost_table for target in all_targets().values() if target.cost_table)
    parser.add_argument("--targets", nargs="+", choices=list(tables), default=list(tables))
    parser.add_argument("--networks", type=int, default=24, metavar="N", help="of each dtype")
    parser.add_argument("--missing", action="store_true", help="kernels without an entry alone, added to the table")
    parser.add_argument("--output", type=Path, default=HERE.parent / "targets", metavar="DIR")
    args = parser.parse_args()
    for name in args.targets:
        target, path = load_target(name), args.output / "code" / f"{name}.toml"
        compiler = f"{find_compiler(target, 'qemu', 'O2').version}, -O2"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():  # plans want one
            path.write_text(toml(compiler, Code({key: {} for key in PARTS}, Counter(), {}, {})))
        if args.missing:
            text = added(path.read_text(), toml(compiler, compiled(missing_kernels(target))))
        else:
            plans = [*modules(name), *several_layers(target)]
            found = [(plan, 1) for plan in (*plans, *with_kernels_beside(kernels_of_plans(plans), target))]
            found += [(plan, NETWORK_WEIGHT) for dtype in DTYPES for plan in networks(target, dtype, args.networks)]
            text = toml(compiler, compiled(found))
        path.write_text(text)
        print(f"{name}: {text.count('[kernels.')} entries", flush=True)
    return 0


def compiled(found: list[tuple[Plan, int]]) -> Code:
    """What plans, each with its weight, say once they are compiled."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda each: sections_of(each[0]), found))
    return measured([(plan, weight, one) for (plan, weight), one in zip(found, objects, strict=True)])


# --- measuring -----------------------------------------------------------------------------------


def several_layers(target: Target) -> Iterator[Plan]:
    """Plans with several layers of a kind, which share their kernels' functions, and with several merged loops."""
    layers = [operators(kind, 3 * SEVERAL, dtype) for kind, dtype in itertools.product(LAYERS, DTYPES)]
    loops = [drawn_for(f"tinyfuse_fused_loop_{dtype}", "FUSED_LOOP", 4 * SEVERAL) for dtype in ("s8", "s16", "f32")]
    for drawn in (*layers, *loops):
        for i in range(0, len(drawn), SEVERAL):
            yield grid_plan(drawn[i : i + SEVERAL], Context(target, kernels="tinyfuse"))


def with_kernels_beside(known: Collection[str], target: Target) -> Iterator[Plan]:
    """Plans with those kernels of ours that are not known."""
    for kind, name in kernels_to_measure(None, None):
        job = drawn_job(target, None, kind, name, 1) if name not in known else None
        for way in job.tried if job else ():
            context = replace(way.context(target, lacks=job.rivals), kernels="tinyfuse")
            ops = [op for op in job.ops if any(k.name == name and k.accepts(op, context) for k in kernels_for(op))]
            if ops:
                yield grid_plan(ops[:SEVERAL], context)
                break


def kernels_of_plans(plans: Iterable[Plan]) -> set[str]:
    """The names of those that they call, and of those that these call."""
    groups = [(each, group) for plan in plans for each, group in every_group(plan)]
    stages = [(stage, each.context) for each, group in groups for stage in group.stages]
    return {kernel_of(piece.entry) for stage, context in stages for piece in pieces_of(stage, context)}


def kernel_of(entry: str) -> str:
    return entry.partition(" ")[0]


def missing_kernels(target: Target) -> list[tuple[Plan, int]]:
    """Plans with the kernels that the target's table has no entry of."""
    table = code_table(target.cost_table)
    known = {kernel_of(entry) for entry in table.kernels} if table else set[str]()
    plans = [plan for plan in modules(target.name) if not kernels_of_plans([plan]) <= known]
    return [(plan, 1) for plan in (*plans, *with_kernels_beside(known | kernels_of_plans(plans), target))]


def added(table: str, measured: str) -> str:
    """A table's text with the functions of another one, and the entries of its kernels, that it has none of."""
    ours, theirs = tomllib.loads(table), tomllib.loads(measured)
    names = {kernel_of(entry) for entry in ours["kernels"]}
    new = {entry for entry in theirs["kernels"] if kernel_of(entry) not in names}
    functions = {**theirs["functions"], **ours["functions"]}
    wanted = {name for entry in new for name in theirs["kernels"][entry]["shared"]} | ours["functions"].keys()
    head, known = entry_texts(table)
    head = head.partition("[functions]\n")[0] + "[functions]\n"
    head += "".join(f"{name} = {functions[name]}\n" for name in sorted(wanted))
    texts = known | {entry: text for entry, text in entry_texts(measured)[1].items() if entry in new}
    return "\n".join([head, *(text for _, text in sorted(texts.items()))])


def sections_of(plan: Plan) -> dict[str, Section]:
    """Those of a plan's compiled module, whose groups are functions of their own, of which none stands for one like
    it."""
    compiler, name = find_compiler(plan.context.target, "qemu", "O2"), plan.options.name
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        module = write_module(plan, work / "module", (f"-D{name.upper()}_CODE_ATTR=__attribute__((noinline))",))
        flags = ("-std=c99", "-w", "-fno-ipa-icf", f"-I{module.folder}", *module.flags)
        compiler.run([*flags, "-c", module.folder / module.sources[0], "-o", work / "module.o"], name, work)
        return read_sections(work / "module.o")


def read_sections(path: Path) -> dict[str, Section]:
    """Code and constants of an object file that has a section for each function and array."""
    with path.open("rb") as file:
        elf = open_elf(file)
        every = list(elf.iter_sections())
        symbols = elf.get_section_by_name(".symtab")
        sizes = {s.name: s["sh_size"] for s in every if s.name.startswith((".text.", ".rodata")) and s["sh_size"]}
        refers = defaultdict[str, set[str]](set)
        for section in every:
            source = every[section["sh_info"]].name if section.name.startswith(".rel.") else ""
            for relocation in section.iter_relocations() if source in sizes else ():
                number = symbols.get_symbol(relocation["r_info_sym"])["st_shndx"]
                if isinstance(number, int) and every[number].name in sizes:
                    refers[source].add(every[number].name)
    return {name: Section(size, frozenset(refers[name])) for name, size in sizes.items()}


def reached(sections: Mapping[str, Section], start: Iterable[str], without: Collection[str] = ()) -> set[str]:
    """The sections that these refer to, themselves included, however many steps away; `without` these, and what is
    reached through them alone."""
    found, waiting = set[str](), list(start)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in without:
            found.add(name)
            waiting += sections[name].refers
    return found


def function_of(section: str) -> str | None:
    """The function that it is a part, or a copy for some constants, of; None where nobody shares it."""
    match = SHARED.match(section)
    return match[1] if match else None


def samples_of(plan: Plan, weight: int, sections: Mapping[str, Section]) -> Iterator[Sample]:
    """Of each group that has a function of its own, and of what is no group's."""
    functions = functions_of(plan, sections)
    named = set(filter(None, functions))
    api = reached(
        sections, [each for each in sections if re.fullmatch(rf"\.text\.{plan.options.name}_(?:{API})", each)]
    )
    api -= reached(sections, named)
    yield Sample(tuple(parts(module_parts(plan))), own_bytes(sections, api), frozenset(), weight)
    groups = list(every_group(plan))
    stages = [(stage, each.context) for each, group in groups for stage in group.stages]
    calls = Counter(piece.entry for stage, context in stages for piece in pieces_of(stage, context))
    for function, (each, group) in zip(functions, groups, strict=True):
        # what runs a graph calls its groups, which are samples of their own
        found = reached(sections, [function], named - {function}) if function else set[str]()
        shared = frozenset(name for part in found if (name := function_of(part)) is not None)
        pieces = [piece for stage in group.stages for piece in pieces_of(stage, each.context)]
        pieces = [replace(piece, counts={**piece.counts, ALONE: calls[piece.entry] == 1}) for piece in pieces]
        pieces += parts(loop_parts(each, group))
        yield Sample(tuple(pieces), own_bytes(sections, found), shared, weight)


def functions_of(plan: Plan, sections: Iterable[str]) -> list[str | None]:
    """Of each of `every_group` the section of its function; None where the compiler has left it out, for it does
    nothing."""
    name, there = plan.options.name, {match[0]: each for each in sections if (match := GROUP.match(each))}
    prefixes = [name, *(f"{name}_subgraph_{number}" for number in plan.subplans)]
    plans = [plan, *plan.subplans.values()]
    return [
        there.get(f".text.{prefix}_group_{group.index}")
        for prefix, each in zip(prefixes, plans, strict=True)
        for group in each.groups
    ]


def parts(found: Mapping[str, Counts]) -> Iterator[Piece]:
    """What is no kernel's."""
    yield from (Piece(PART + name, counts) for name, counts in found.items())


def own_bytes(sections: Mapping[str, Section], found: Iterable[str]) -> int:
    """Of these sections, those that no function of a kernel's is in."""
    return sum(sections[each].size for each in found if function_of(each) is None)


def pieces_of(stage: Stage, context: Context) -> Iterator[Piece]:
    for kernel, op, by_row in calls_in(stage.op, stage.kernel, stage.by_row, context):
        yield Piece(code_entry(op, kernel, by_row, context), kernel.code_counts(op, by_row))


# --- what it says of kernels ---------------------------------------------------------------------


def measured(compiled: list[tuple[Plan, int, dict[str, Section]]]) -> Code:
    samples = [list(samples_of(*one)) for one in compiled]
    every = [sample for of_one in samples for sample in of_one]
    shared = {name: users_of(name, every) for name in sorted({name for each in every for name in each.shared})}
    sizes = defaultdict[str, tuple[list[int], list[int]]](lambda: ([], []))
    for of_one, (_, weight, sections) in zip(samples, compiled, strict=True):
        calls = [piece.entry for sample in of_one for piece in sample.pieces]
        size = Counter[str]()
        for section, part in sections.items():
            size[function_of(section) or PART] += part.size
        for name in set(size) & set(shared):
            sizes[name][sum(entry in shared[name] for entry in calls) == 1].extend([size[name]] * weight)
    functions = {name: (mean(several or alone), mean(alone or several)) for name, (several, alone) in sizes.items()}
    used = {entry: tuple(name for name in shared if entry in shared[name]) for entry in entries_of(every)}
    return Code(
        factors_of(every), Counter(piece.entry for each in every for piece in each.pieces), used,
        {name: functions[name] for name in sorted(functions) if shared[name]},
    )  # fmt: skip


def entries_of(samples: Iterable[Sample]) -> list[str]:
    return sorted({piece.entry for sample in samples for piece in sample.pieces})


def mean(sizes: list[int]) -> int:
    return round(sum(sizes) / len(sizes))


def users_of(function: str, samples: list[Sample]) -> set[str]:
    """The entries whose calls reach a shared function. A kernel may, or not, as its operator is: of each, what is true
    of most groups; and where several stages are in one, those that explain most groups."""
    found = [({piece.entry for piece in s.pieces}, function in s.shared, s.weight) for s in samples]

    def wrong(users: set[str]) -> int:
        return sum(weight for entries, has, weight in found if has != bool(entries & users))

    some = {entry for entries, has, _ in found if has for entry in entries}
    users, least = set[str](), wrong(set())
    while some:
        best, entry = min((wrong(users ^ {entry}), entry) for entry in some)
        if best >= least:
            break
        users, least = users ^ {entry}, best
    return users


def factors_of(samples: list[Sample]) -> dict[str, dict[str, float]]:
    """By entry, bytes a count, so that the groups' own bytes come out, by least squares of relative errors; none is
    negative. `ALONE` tells what a call takes less."""
    names = sorted({(piece.entry, name) for each in samples for piece in each.pieces for name in piece.counts})
    column = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(samples) + len(names), len(names)))
    wanted = np.zeros(len(rows))
    for i, sample in enumerate(samples):
        weight = sample.weight**0.5 / (sample.own + SMALL)
        for piece in sample.pieces:
            for name, count in piece.counts.items():
                rows[i, column[piece.entry, name]] += weight * (-count if name == ALONE else count)
        wanted[i] = weight * sample.own
    rows[len(samples) :] = np.diag([RIDGE_ALONE if name == ALONE else RIDGE for _, name in names])
    kept = list(range(len(names)))
    while True:  # what would be negative is 0, until nothing is
        solved = np.linalg.lstsq(rows[:, kept], wanted, rcond=None)[0]
        if (solved >= 0).all():
            break
        kept = [i for i, factor in zip(kept, solved, strict=True) if factor >= 0]
    factors = dict(zip(kept, solved, strict=True))
    found = defaultdict[str, dict[str, float]](dict)
    for i, (entry, name) in enumerate(names):
        found[entry][name] = float(factors.get(i, 0.0))
    return found


# --- the file ------------------------------------------------------------------------------------


def toml(compiler: str, code: Code) -> str:
    lines = [
        "# Bytes of code of every kernel, measured; made by benchmarks/measure_code.py, not by hand.",
        "# factors: bytes of a call, its constants included, a count of `Kernel.code_counts`; shared: functions that",
        "# it calls, each of which a module has once; alone: bytes less of a call that is a module's only one of the",
        "# entry; shapes: how many calls were compiled.",
        f'[about]\ncompiler = "{compiler}"',
    ]
    kernels = [entry for entry in sorted(code.factors) if not entry.startswith(PART)]
    for entry in sorted(set(code.factors) - set(kernels)):
        lines += ["", f"[{entry}]", *entry_lines(code, entry)]
    lines += ["", "# bytes, and bytes where one operator alone calls it", "[functions]"]
    lines += [f"{name} = [{several}, {alone}]" for name, (several, alone) in code.functions.items()]
    lines += [] if kernels else ["", "[kernels]"]
    for entry in kernels:
        lines += ["", f'[kernels."{entry}"]', *entry_lines(code, entry)]
    return "\n".join(lines) + "\n"


def entry_lines(code: Code, entry: str) -> list[str]:
    factors = dict(code.factors[entry])
    alone = factors.pop(ALONE, 0.0)
    return [
        f"shapes = {code.shapes[entry]}", f"factors = {inline(factors)}",
        *([f"alone = {alone:.4g}"] if abs(alone) >= 1 else []),
        f"shared = [{', '.join(map(quoted, code.shared.get(entry, ())))}]",
    ]  # fmt: skip


def quoted(name: str) -> str:
    return f'"{name}"'


def inline(factors: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name} = {factor:.4g}" for name, factor in factors.items()) + "}"


if __name__ == "__main__":
    sys.exit(main())
