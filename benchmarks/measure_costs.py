"""Measures every kernel over a grid of operators and writes a target's cost tables.

    python benchmarks/measure_costs.py --cmsis-nn PATH [--targets cortex-m4 cortex-m55]

writes targets/costs/NAME.toml (instructions) and targets/cycles/NAME.toml (estimated cycles, and bytes loaded from
flash), which `--optimize`, `tinyfuse explain` and `tinyfuse profile` predict from: run it after a kernel was changed.
It takes half an hour a target and needs what `tinyfuse profile` needs. A firmware runs all the operators that one
kernel is measured on, each alone and, where the kernel streams, after a RELU in a group of two; QEMU counts the
instructions of each, and profile/cycles.py weighs them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cost_files import about, cycles_toml, entries_of, toml, updated  # noqa: E402
from cost_fits import FEWEST, QUANTITIES, Figures, Sample, fit_all, function_of  # noqa: E402
from cost_grid import chain, drawn_for, like, rectifier  # noqa: E402

from tinyfuse.compiler import plan_groups  # noqa: E402
from tinyfuse.cost.predict import group_stream  # noqa: E402
from tinyfuse.cost.table import CostTable, cost_table, cycle_table, entry_name, loop_features  # noqa: E402
from tinyfuse.ir import Graph, Op  # noqa: E402
from tinyfuse.kernels.base import Context  # noqa: E402
from tinyfuse.kernels.cmsis.common import SEVERAL_ROWS  # noqa: E402
from tinyfuse.kernels.convolution_counts import LOOKED_UP  # noqa: E402
from tinyfuse.kernels.counts import Counts  # noqa: E402
from tinyfuse.kernels.registry import kernels_for, kernels_of  # noqa: E402
from tinyfuse.ops import FAMILIES  # noqa: E402
from tinyfuse.options import OPTIMIZE, WEIGHTS, Options  # noqa: E402
from tinyfuse.plan import Plan, Stage  # noqa: E402
from tinyfuse.profile.cycles import timing  # noqa: E402
from tinyfuse.profile.image import FLASH, arena_columns, read_image  # noqa: E402
from tinyfuse.profile.measure import Profile, Usage, measure  # noqa: E402
from tinyfuse.profile.plugin import build_plugin, run_counted  # noqa: E402
from tinyfuse.schedule.legality import Legality  # noqa: E402
from tinyfuse.targets import Target, all_targets, load_target  # noqa: E402
from tinyfuse.toolchain import cmsis_nn  # noqa: E402
from tinyfuse.verify.emulation.inputs import input_set  # noqa: E402
from tinyfuse.verify.emulation.module import build_module  # noqa: E402
from tinyfuse.verify.emulation.qemu import Qemu  # noqa: E402

#: operators drawn of each kind; more of those with many features
DRAWN = {"CONV_2D": 90, "DEPTHWISE_CONV_2D": 50, "FULLY_CONNECTED": 30, "MERGED": 90, "TILED": 40}
DRAWN_OF_OTHERS = 18
#: and for a kernel that accepts few of its kind
DRAWN_FOR = {
    "tinyfuse_winograd_rows_s8": 2500, "tinyfuse_pointwise_narrow_s8": 600, "tinyfuse_softmax_lookup_s8": 60,
    "tinyfuse_rows_matmul_s8": 40, "tinyfuse_pointwise_four_mve_s8": 500, "tinyfuse_conv_columns_mve_row_s8": 500,
}  # fmt: skip
#: for a kernel that looks weights up (`Kernel.costs_with`): the rest of its costs are known
DRAWN_OF_LOOKED_UP = 16

#: stages of the groups that the row loop is measured on
CHAINS = (2, 3, 5, 8, 12, 18)

#: dtypes of which a RELU makes rows
_RECTIFIED = ("int8", "int16", "float32")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=emulated)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="print the fits of these alone, and write nothing")
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="with --kinds: of their kernels these alone")
    parser.add_argument("--missing", action="store_true", help="with --update: kernels without an entry alone")
    parser.add_argument("--update", action="store_true", help="with --kinds: write their entries into the tables")
    parser.add_argument("--cycles", action="store_true", help="write the tables of cycles alone")
    parser.add_argument("--fewer", type=int, default=1, metavar="N", help="every N-th operator of the grid alone")
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`; without one, ours alone")
    parser.add_argument("--output", type=Path, default=HERE.parent / "targets", metavar="DIR")
    args = parser.parse_args()
    tree = cmsis_nn.find_cmsis_nn(args.cmsis_nn)
    for name in args.targets:
        target = load_target(name)
        jobs = kernels_to_measure(args.kinds, args.kernels)
        if args.missing:
            table = args.output / ("cycles" if args.cycles else "costs") / f"{target.cost_table}.toml"
            jobs = [job for job in jobs if lacks(table.read_text(), job[1], target)]
        samples, compiler = measure_all(target, tree, jobs, args.fewer)
        found = fit_all(samples, jobs)
        for entry, fits in found.kernels.items():
            errors = ", ".join(f"{name} off by {fit.mean:.1%}, at most {fit.worst:.1%}" for name, fit in fits.items())
            print(f"{entry}: {found.shapes[entry]} shapes, {errors}")
        head = about(tree, compiler)
        texts = {} if args.cycles else {args.output / "costs" / f"{target.cost_table}.toml": toml(head, found)}
        if target.cycle_table is not None:
            known = cost_table(target.cost_table)
            if known and args.kinds:  # of these kernels alone
                names = {name for _, name in jobs}
                ours = {entry: each for entry, each in known.kernels.items() if function_of(entry) in names}
                known = replace(known, kernels=ours)
            texts[args.output / "cycles" / f"{target.cycle_table}.toml"] = cycles_toml(head, found, target, known)
        for path, text in texts.items():
            if args.kinds and args.update:
                path.write_text(updated(path.read_text(), text))
            elif not args.kinds:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    return 0


# --- measuring -----------------------------------------------------------------------------------


def kernels_to_measure(kinds: list[str] | None, names: list[str] | None) -> list[tuple[str, str]]:
    """(kind, kernel's name), of these alone where they are given."""
    return [
        (kind, name) for kind, family in FAMILIES.items() if not kinds or kind in kinds
        for name in dict.fromkeys(kernel.name for kernel in kernels_of(family.kind)) if not names or name in names
    ]  # fmt: skip


def lacks(table: str, name: str, target: Target) -> bool:
    """Whether a table's text has no entry of a kernel, as that target computes it."""
    soft = "_f32" in name and not target.fpu
    found = (entry for entry in entries_of(table)[1] if entry.partition(" ")[0] == name)
    return not any(entry.endswith("without FPU") == soft for entry in found)


def measure_all(
    target: Target, tree: cmsis_nn.Tree | None, jobs: list[tuple[str, str]], fewer: int
) -> tuple[list[Sample], str]:
    """Samples of every job's kernel, with progress on stderr, and the compiler that made them."""
    samples, compiler = measure_loops(target)
    for number, (kind, name) in enumerate(jobs, 1):
        print(f"[{number}/{len(jobs)}] {target.name} {kind} {name}", end=": ", file=sys.stderr, flush=True)
        found, version = measure_kernel(target, tree, kind, name, fewer)
        samples += found
        compiler = version or compiler
        print(len(found), file=sys.stderr, flush=True)
    return samples, compiler


def measure_loops(target: Target) -> tuple[list[Sample], str]:
    """Samples of cheap stages in groups of many, for what the row loop itself takes."""
    context = Context(target, kernels="tinyfuse")
    plan = _side_by_side([chain(length) for length in CHAINS for _ in range(2)], context)
    profile, compiler = counted(plan, None)
    return [
        sample for kind in ("RELU6", "MAX_POOL_2D") for sample in _samples(plan, profile, kind, last=False)
    ], compiler


def measure_kernel(
    target: Target, tree: cmsis_nn.Tree | None, kind: str, name: str, fewer: int
) -> tuple[list[Sample], str]:
    """Samples of the operators of a kind that the kernel of that name may compute, on every path that
    some --optimize and --weights take."""
    kernels = [kernel for kernel in kernels_of(kind) if kernel.name == name]
    if kernels[0].library == "cmsis-nn" and tree is None:
        return [], ""
    others = frozenset(kernel.name for kernel in kernels_of(kind)) - {name}
    drawn = drawn_for(name, kind, DRAWN_FOR.get(name, DRAWN.get(kind, DRAWN_OF_OTHERS)))[::fewer]
    seen, samples, compiler = set(), [], ""
    version = tree.version if tree else (7, 0)
    tried: Iterable[tuple[str, str, int]] = itertools.product(OPTIMIZE, WEIGHTS, (1,))
    if kernels[0].library == "cmsis-nn":
        tried = [("speed", "packed", rows) for rows in (1, *SEVERAL_ROWS)]
    if kernels[0].costs_with is not None:
        drawn, tried = drawn_for(name, kind, DRAWN_OF_LOOKED_UP), [("balanced", kernels[0].weights, 1)]
    for optimize, weights, at_once in tried:
        context = Context(target, version, "auto", others, optimize, weights, at_once=at_once)
        # the first of several forms that accepts it, as the plan takes it
        paths = {
            op: kernel.path(op, True, context)
            for op in drawn
            for kernel in reversed(kernels_for(op))
            if kernel.name == name and kernel.accepts(op, context)
        }
        ops = [op for op, path in paths.items() if (op, path, at_once) not in seen]
        seen.update((op, paths[op], at_once) for op in ops)
        if len(ops) < FEWEST:
            continue
        plan = grid_plan(ops, context)
        if tree and tree.missing(plan.cmsis_nn_functions):
            continue
        profile, compiler = counted(plan, tree)
        samples += _samples(plan, profile, kind)
    return samples, compiler


def grid_plan(ops: list[Op], context: Context) -> Plan:
    """A model of all the operators side by side: a group of each, and one of a RELU before it."""
    groups = [[op] for op in ops]
    for op in ops:
        # with one row there is no loop
        if op.input.dtype in _RECTIFIED and len(op.output.shape) == 4 and op.output.shape[1] > 1:
            middle = like(op.input)
            output = replace(op.output, index=-1)
            pair = [rectifier(middle), replace(op, inputs=(middle, *op.inputs[1:]), outputs=(output,))]
            if Legality(_graph([pair]), context).refusal(pair) is None:
                groups.append(pair)
    return _side_by_side(groups, context)


def _graph(groups: list[list[Op]]) -> Graph:
    every = tuple(op for group in groups for op in group)
    made = {tensor for op in every for tensor in op.outputs}
    read = dict.fromkeys(tensor for op in every for tensor in op.activations)
    return Graph("grid", "", every, tuple(t for t in read if t not in made), (every[-1].output,))


def _side_by_side(groups: list[list[Op]], context: Context) -> Plan:
    graph = _graph(groups)
    return plan_groups(graph, graph, groups, context, Options("grid"))


def counted(plan: Plan, tree: cmsis_nn.Tree | None) -> tuple[Profile, str]:
    """The profile of a plan's inference at -O2, and the compiler."""
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work, core = Path(folder), plan.context.target
        firmware = build_module(
            plan, tree if plan.uses_cmsis_nn else None, input_set(plan.source, 1, 0), "qemu", "O2", work
        )
        source = (work / "module" / f"{plan.options.name}.c").read_text()
        image = read_image(firmware.elf, plan.options.name, source, arena_columns(plan), core.mve)
        _, counts = run_counted(Qemu(), firmware, image, build_plugin(), 600)
        return measure(counts, image, timing(core.cpu)), firmware.compiler


def _samples(plan: Plan, profile: Profile, kind: str, last: bool = True) -> Iterator[Sample]:
    """Of the stages of that kind; `last`: of each group the last stage alone."""
    for group in plan.groups:
        for number, loop in enumerate(loop_features(group.stages, group_stream(plan, group))):
            stage = group.stages[number]
            if stage.op.kind == kind and (number == len(group.stages) - 1 or not last):
                yield _sample(stage, loop, profile, group.index, number, plan.context)


def _sample(stage: Stage, loop: Counts, profile: Profile, group: int, number: int, context: Context) -> Sample:
    parts = [(part, used) for part, used in profile.parts.get(group, {}).items() if part.stage == number]
    entry, counts = (
        entry_name(stage.op, stage.kernel, stage.by_row, context),
        stage.kernel.counts(stage.op, stage.by_row),
    )
    took = _figures(used for _, used in parts)
    if stage.kernel.costs_with is not None:  # what the table has of the kernel that it is like is no part of the entry
        tables = _tables(context.target)
        known = {name: table.kernels.get(entry, {}) if table else {} for name, table in tables.items()}
        took = Figures(
            *(
                getattr(took, name) - round(sum(factor * counts.get(n, 0) for n, factor in known[name].items()))
                for name in QUANTITIES
            )
        )
        entry = stage.kernel.costs_with
        counts = {name: count for name, count in counts.items() if name in LOOKED_UP}
    took = _without_parts(took, stage, context)
    own = _figures(used for part, used in parts if not part.function or part.function.startswith("tinyfuse_rows"))
    return Sample(stage.op.kind, stage.kernel, entry, counts, loop, took, own)


def _without_parts(took: Figures, stage: Stage, context: Context) -> Figures:
    """What is left without what the tables have of kernels that the stage's calls."""
    for name, table in _tables(context.target).items() if stage.kernel.work(stage.op, context) else ():
        for inner, part, times in stage.kernel.work(stage.op, context):
            cost = table.kernel(part, inner, True, context) if table else None
            took = replace(took, **{name: round(getattr(took, name) - times * (cost or 0))})
    return took


def _figures(usages: Iterable[Usage]) -> Figures:
    every = list(usages)
    return Figures(
        sum(used.instructions for used in every),
        sum(used.cycles or 0 for used in every),
        sum(used.loaded[FLASH] for used in every),
    )


def _tables(target: Target) -> dict[str, CostTable | None]:
    """By the names of Figures."""
    cycles = cycle_table(target.cycle_table)
    known = cost_table(target.cost_table), cycles and cycles.cycles, cycles and cycles.flash
    return dict(zip(QUANTITIES, known, strict=True))


if __name__ == "__main__":
    sys.exit(main())
