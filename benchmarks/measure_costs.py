"""Measures every kernel over a grid of operators and writes a target's cost table.

    python benchmarks/measure_costs.py --cmsis-nn PATH [--targets cortex-m4 cortex-m55]

writes targets/costs/TARGET.toml, which `--optimize`, `tinyfuse explain` and `tinyfuse profile` predict
from: run it after a kernel was changed. It takes a few minutes a target and needs what `tinyfuse
profile` needs. A firmware runs all the operators that one kernel is measured on, each alone and, where
the kernel streams, after a RELU in a group of two; QEMU counts the instructions of each.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cost_grid import chain, drawn_for, like, rectifier  # noqa: E402

from tinyfuse.compiler import plan_groups  # noqa: E402
from tinyfuse.cost.fit import Fit, fit  # noqa: E402
from tinyfuse.cost.predict import group_stream  # noqa: E402
from tinyfuse.cost.table import cost_table, entry_name, loop_features  # noqa: E402
from tinyfuse.ir import Graph, Op  # noqa: E402
from tinyfuse.kernels.base import Context, Kernel  # noqa: E402
from tinyfuse.kernels.cmsis.common import SEVERAL_ROWS  # noqa: E402
from tinyfuse.kernels.convolution_counts import LOOKED_UP  # noqa: E402
from tinyfuse.kernels.counts import Counts  # noqa: E402
from tinyfuse.kernels.registry import kernels_for, kernels_of  # noqa: E402
from tinyfuse.ops import FAMILIES  # noqa: E402
from tinyfuse.options import OPTIMIZE, WEIGHTS, Options  # noqa: E402
from tinyfuse.plan import Plan, Stage  # noqa: E402
from tinyfuse.profile.image import read_image  # noqa: E402
from tinyfuse.profile.measure import Profile, measure  # noqa: E402
from tinyfuse.profile.plugin import build_plugin, run_counted  # noqa: E402
from tinyfuse.schedule.legality import Legality  # noqa: E402
from tinyfuse.targets import Target, all_targets, load_target  # noqa: E402
from tinyfuse.toolchain import cmsis_nn  # noqa: E402
from tinyfuse.verify.emulation.inputs import input_set  # noqa: E402
from tinyfuse.verify.emulation.module import build_module  # noqa: E402
from tinyfuse.verify.emulation.qemu import Qemu  # noqa: E402

#: operators drawn of each kind; more of those with many features
DRAWN = {"CONV_2D": 90, "DEPTHWISE_CONV_2D": 50, "FULLY_CONNECTED": 30, "MERGED": 90}
DRAWN_OF_OTHERS = 18
#: and for a kernel that accepts few of its kind
DRAWN_FOR = {
    "tinyfuse_winograd_rows_s8": 2500, "tinyfuse_pointwise_narrow_s8": 600, "tinyfuse_softmax_lookup_s8": 60,
    "tinyfuse_rows_matmul_s8": 40,
}  # fmt: skip
#: for a kernel that looks weights up (`Kernel.costs_with`): the rest of its costs are known
DRAWN_OF_LOOKED_UP = 16

#: stages of the groups that the row loop is measured on
CHAINS = (2, 3, 5, 8, 12, 18)

#: dtypes of which a RELU makes rows
_RECTIFIED = ("int8", "int16", "float32")

#: a table with fewer says nothing
FEWEST = 3


@dataclass(frozen=True)
class Sample:
    """One stage that was measured: of its instructions, `own` are the group's own code around the
    kernel (the row loop, the arguments)."""

    kind: str
    kernel: Kernel
    entry: str
    counts: Counts
    loop: Counts
    instructions: int
    own: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=emulated)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="print the fits of these alone, and write nothing")
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="with --kinds: of their kernels these alone")
    parser.add_argument("--missing", action="store_true", help="with --update: kernels without an entry alone")
    parser.add_argument("--update", action="store_true", help="with --kinds: write their entries into the tables")
    parser.add_argument("--fewer", type=int, default=1, metavar="N", help="every N-th operator of the grid alone")
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`; without one, ours alone")
    parser.add_argument("--output", type=Path, default=HERE.parent / "targets" / "costs", metavar="DIR")
    args = parser.parse_args()
    tree = cmsis_nn.find_cmsis_nn(args.cmsis_nn)
    for name in args.targets:
        target = load_target(name)
        path = args.output / f"{target.cost_table}.toml"
        jobs = kernels_to_measure(args.kinds, args.kernels)
        if args.missing:
            jobs = [job for job in jobs if lacks(path.read_text(), job[1], target)]
        samples, compiler = measure_all(target, tree, jobs, args.fewer)
        loop, kernels = fit_all(samples, jobs)
        for entry, (found, count) in kernels.items():
            print(f"{entry}: {count} shapes, error {found.mean:.1%}, at most {found.worst:.1%}")
        written = toml(about(tree, compiler), loop, kernels)
        if args.kinds and args.update:
            path.write_text(updated(path.read_text(), written))
        elif not args.kinds:
            args.output.mkdir(parents=True, exist_ok=True)
            path.write_text(written)
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
    found = (entry for entry in _entries(table)[1] if entry.partition(" ")[0] == name)
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
        image = read_image(firmware.elf, plan.options.name, source, plan.arena_bytes, core.mve)
        _, counts = run_counted(Qemu(), firmware, image, build_plugin(), 600)
        return measure(counts, image, None), firmware.compiler


def _samples(plan: Plan, profile: Profile, kind: str, last: bool = True) -> Iterator[Sample]:
    """Of the stages of that kind; `last`: of each group the last stage alone."""
    for group in plan.groups:
        for number, loop in enumerate(loop_features(group.stages, group_stream(plan, group))):
            stage = group.stages[number]
            if stage.op.kind == kind and (number == len(group.stages) - 1 or not last):
                yield _sample(stage, loop, profile, group.index, number, plan.context)


def _sample(stage: Stage, loop: Counts, profile: Profile, group: int, number: int, context: Context) -> Sample:
    parts = [(part, used.instructions) for part, used in profile.parts.get(group, {}).items() if part.stage == number]
    entry, counts = (
        entry_name(stage.op, stage.kernel, stage.by_row, context),
        stage.kernel.counts(stage.op, stage.by_row),
    )
    instructions = sum(instructions for _, instructions in parts)
    if stage.kernel.costs_with is not None:  # what the table has of the kernel that it is like is no part of the entry
        table = cost_table(context.target.cost_table)
        known = table.kernels[entry] if table else {}
        instructions -= round(sum(factor * counts.get(name, 0) for name, factor in known.items()))
        entry = stage.kernel.costs_with
        counts = {name: count for name, count in counts.items() if name in LOOKED_UP}
    own = sum(n for part, n in parts if not part.function or part.function.startswith("tinyfuse_rows"))
    return Sample(stage.op.kind, stage.kernel, entry, counts, loop, instructions, own)


# --- fitting -------------------------------------------------------------------------------------


def fit_all(samples: list[Sample], jobs: list[tuple[str, str]]) -> tuple[Fit, dict[str, tuple[Fit, int]]]:
    """The factors of the loop from the own code around our kernels, then those of every job's kernel."""
    loop = fit([(s.loop, s.own) for s in samples if s.kernel.library == "tinyfuse" and s.own > 0])
    by_entry: dict[str, dict[tuple, tuple[Counts, float]]] = {}  # each sample once: forms by rows share whole calls
    for sample in samples:
        around = sum(factor * sample.loop.get(name, 0) for name, factor in loop.factors.items())
        if sample.instructions > around and (sample.kind, sample.kernel.name) in jobs:
            found = sample.counts, sample.instructions - around
            by_entry.setdefault(sample.entry, {})[*sample.counts.values(), sample.instructions] = found
    every = {key: list(found.values()) for key, found in sorted(by_entry.items()) if len(found) >= FEWEST}
    kernels = {key: (fit(found), len(found)) for key, found in every.items()}
    return loop, kernels


# --- writing -------------------------------------------------------------------------------------


def about(tree: cmsis_nn.Tree | None, compiler: str) -> dict[str, str]:
    return {
        "date": datetime.date.today().isoformat(),
        "compiler": f"{compiler}, -O2",
        "emulator": Qemu().version,
        "cmsis_nn": ".".join(map(str, tree.version)) if tree else "not measured",
    }


def toml(about: dict[str, str], loop: Fit, kernels: dict[str, tuple[Fit, int]]) -> str:
    lines = [
        "# Instructions of every kernel, measured; made by benchmarks/measure_costs.py, not by hand.",
        "# factors: instructions a count of each feature (tinyfuse/kernels/counts.py); shapes: how many",
        "# operators were measured; mean_error, worst_error: relative, of the fit on them.",
        "[about]", *(f'{key} = "{value}"' for key, value in about.items()),
        "", "[loop]", f"factors = {_inline(loop.factors)}",
    ]  # fmt: skip
    for entry, (found, count) in kernels.items():
        lines += [
            "", f'[kernels."{entry}"]', f"shapes = {count}", f"mean_error = {found.mean:.4f}",
            f"worst_error = {found.worst:.4f}", f"factors = {_inline(found.factors)}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def updated(table: str, measured: str) -> str:
    """A table's text with the entries of another one in the place of its own, which was measured with the same tools.
    What the table says of the row loop stays."""
    ours, theirs = tomllib.loads(table)["about"], tomllib.loads(measured)["about"]
    tools = ["compiler", "emulator", *(["cmsis_nn"] if '"arm_' in measured else [])]
    if any(ours[tool] != theirs[tool] for tool in tools):
        raise SystemExit(f"measured with {theirs}, the table with {ours}: measure all of it")
    head, entries = _entries(table)
    return "\n".join([head, *(text for _, text in sorted((entries | _entries(measured)[1]).items()))])


def _entries(table: str) -> tuple[str, dict[str, str]]:
    """What stands before the kernels' entries, and their texts by name."""
    head, *texts = table.split('[kernels."')
    return head.rstrip("\n") + "\n", {text[: text.index('"')]: f'[kernels."{text.rstrip()}\n' for text in texts}


def _inline(factors: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name} = {factor:.4g}" for name, factor in factors.items()) + "}"


if __name__ == "__main__":
    sys.exit(main())
