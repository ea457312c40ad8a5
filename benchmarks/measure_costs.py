"""Measures every kernel over a grid of operators and writes a target's cost tables.

    python benchmarks/measure_costs.py --cmsis-nn PATH [--targets cortex-m4 cortex-m55]

writes targets/costs/NAME.toml (instructions, and bytes loaded from flash) and targets/cycles/NAME.toml (estimated
cycles per instruction), which `--optimize`, `tinyfuse explain` and `tinyfuse profile` predict from: run it after a
kernel was changed. It takes half an hour a target and needs what `tinyfuse profile` needs. A firmware runs all the
operators that one kernel is measured on, each alone and, where the kernel streams, after a RELU in a group of two; QEMU
counts the instructions of each, and runs the core's pipeline (profile/cycles.py) over them.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cost_files import Tables, about  # noqa: E402
from cost_fits import FEWEST, Fits, Sample, fit_all  # noqa: E402
from cost_grid import chain, drawn_for, like, rectifier  # noqa: E402
from cost_places import as_in_file  # noqa: E402
from cost_samples import counted, network_samples, samples_called_once, samples_of  # noqa: E402
from plan_parts import plan_groups  # noqa: E402
from sized_networks import DTYPES  # noqa: E402

from tinyfuse.board_timing import BoardTiming  # noqa: E402
from tinyfuse.cost.table import entry_name  # noqa: E402
from tinyfuse.ir import Graph, Op, Tensor  # noqa: E402
from tinyfuse.kernels.cmsis.common import SEVERAL_ROWS  # noqa: E402
from tinyfuse.kernels.core.context import Context, Objective  # noqa: E402
from tinyfuse.kernels.registry import kernels_for, kernels_of  # noqa: E402
from tinyfuse.ops import FAMILIES  # noqa: E402
from tinyfuse.ops.core.convolution import clamp_range  # noqa: E402
from tinyfuse.options import OPTIMIZE, WEIGHTS, Options  # noqa: E402
from tinyfuse.plan import Plan  # noqa: E402
from tinyfuse.schedule.groups.legality import Legality  # noqa: E402
from tinyfuse.schedule.kernel_choice.select import kernel_for  # noqa: E402
from tinyfuse.targets import Target, all_targets, load_target  # noqa: E402
from tinyfuse.toolchain import cmsis_nn  # noqa: E402

#: operators drawn of each kind; more of those with many features
DRAWN = {
    "CONV_2D": 90, "DEPTHWISE_CONV_2D": 50, "FULLY_CONNECTED": 30, "FUSED_LOOP": 90, "TILED": 40, "LOOKED_UP": 90,
    "PLANES_TO_ROWS": 30, "ROWS_TO_PLANES": 30, "AVERAGE_POOL_2D": 48, "MAX_POOL_2D": 48,
}  # fmt: skip
DRAWN_OF_OTHERS = 12
#: kinds whose results are the grid's, or compilers leave out what they know is overwritten unread
NEEDED = ("DYNAMIC_UPDATE_SLICE",)
#: and for a kernel that accepts few of its kind
DRAWN_FOR = {
    "tinyfuse_winograd_rows_s8": 2500, "tinyfuse_winograd_along_row_s8": 2500,
    "tinyfuse_pointwise_few_channels_s8": 600, "tinyfuse_softmax_lookup_s8": 60,
    "tinyfuse_mul_s8": 60, "tinyfuse_dense_s16": 120,
    "tinyfuse_rows_matmul_s8": 40, "tinyfuse_pointwise_4x2_mve_s8": 500, "tinyfuse_conv_4x2_columns_mve_row_s8": 1500,
    "tinyfuse_conv_4x2_chunks_mve_row_s8": 300,
    "tinyfuse_pointwise_2x4_mve_s8": 300, "tinyfuse_conv_weight_stationary_mve_row_s8": 500,
    "tinyfuse_depthwise_1d_mve_s8": 4000,
    "tinyfuse_depthwise_weight_stationary_row_s8": 150, "tinyfuse_pointwise_s8": 800,
    "tinyfuse_conv_packed_row_s8": 300,
    "tinyfuse_pointwise_4x2_s8": 1200, "tinyfuse_conv_4x2_row_s8": 250,
    "tinyfuse_conv_int16_weights_row_s8": 300, "tinyfuse_pointwise_int16_weights_s8": 500,
    "tinyfuse_depthwise_1d_s8": 400,
    "tinyfuse_dense_five_outputs_s8": 300, "tinyfuse_dense_int16_weights_s8": 150,
    "tinyfuse_dense_one_vector_mve_s8": 200, "tinyfuse_depthwise_mve_row_s8": 200, "tinyfuse_dense_s8": 400,
    "tinyfuse_dense_wide_s8": 200,
    "tinyfuse_depthwise_interleaved_mve_row_s8": 230,
}  # fmt: skip
#: for a layer whose weights are looked up (`Kernel.costs_with`): the rest of its costs are known
DRAWN_OF_LOOKED_UP = 16

#: stages of the groups that the row loop is measured on, and columns of their rows, which sliding rings move
CHAINS, WIDTHS = (2, 3, 5, 8, 12, 18), (2, 24)

#: operators in one firmware, and bytes of RAM of all their tensors; layers have rivals on more operators than are drawn
MOST_OPERATORS, MOST_BYTES, LAYERS = 120, 2_500_000, ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
#: kinds whose kernels compilers inline into each call of a module, unless it has many: operators in one firmware
INLINED = dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), 4)


class Way(NamedTuple):
    """What decides which form of a kernel is taken: fields of Context."""

    optimize: str
    weights: str = "packed"
    at_once: int = 1
    min_scratch: bool = False
    cycles: BoardTiming | None = None

    def context(self, target: Target, **other: Any) -> Context:
        objective = Objective(self.optimize, self.at_once, min_scratch=self.min_scratch)
        return Context(target, weights=self.weights, cycles=self.cycles, objective=objective, **other)


#: those of ours that are measured
OURS = (
    *(Way(optimize, weights) for optimize in OPTIMIZE for weights in WEIGHTS),
    Way("ram", min_scratch=True),
    Way("speed", cycles=BoardTiming()),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=emulated)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="print the fits of these alone, and write nothing")
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="with --kinds: of their kernels these alone")
    parser.add_argument("--entries", default="", metavar="TEXT", help="with --kernels: entries that contain this alone")
    parser.add_argument("--missing", action="store_true", help="kernels without an entry alone")
    parser.add_argument("--update", action="store_true", help="write the entries of these kernels into the tables")
    parser.add_argument("--cycles", action="store_true", help="write the tables of cycles alone")
    parser.add_argument("--fewer", type=int, default=1, metavar="N", help="every N-th operator of the grid alone")
    parser.add_argument(
        "--networks", type=int, default=0, metavar="N", help="and on stages of N networks a dtype, which count twice"
    )
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="of these networks")
    parser.add_argument(
        "--singles",
        type=int,
        default=0,
        metavar="N",
        help="and on N modules that call each kernel once, and N of one layer",
    )
    parser.add_argument(
        "--alone", action="store_true", help="what kernels take that are called once, of those entries that there are"
    )
    parser.add_argument("--loop", action="store_true", help="with --update: the factors of the row loop, too")
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`; without one, ours alone")
    parser.add_argument("--output", type=Path, default=HERE.parent / "targets", metavar="DIR")
    args = parser.parse_args()
    tree = cmsis_nn.find_cmsis_nn(args.cmsis_nn)
    for name in args.targets:
        target, tables = load_target(name), Tables(args.output, not args.cycles)
        known = tables.entries(target) if args.missing else set()
        wanted = kernels_to_measure(args.kinds, args.kernels)
        jobs = [drawn_job(target, tree, *job, args.fewer, args.entries) for job in wanted]
        jobs = [job for job in jobs if not job.entries <= known]
        done, samples = list[Job](), list(network_samples(target, args.networks, args.dtypes))
        samples += [*single_samples(target, jobs, args.singles), *sole_samples(target, jobs, args.singles)]
        if args.alone:
            tables.update_alone(
                target, [each for each in samples if each.kernel.name in (args.kernels or [each.kernel.name])]
            )
            continue
        for part, found, compiler in measure_all(target, tree, jobs):
            done, samples, head = done + part, samples + found, about(tree, compiler)
            if args.update:  # each part at once: what was measured is kept where the rest isn't
                entries = frozenset().union(*(job.entries for job in part))
                fits = fit_all(samples, [(job.kind, job.name) for job in done if job.entries & entries])
                fits = replace(fits, kernels={name: fit for name, fit in fits.kernels.items() if args.entries in name})
                tables.update(target, head, fits, args.loop)
                tell(fits)
        if not args.update and samples:
            fits = fit_all(samples, [(job.kind, job.name) for job in done])
            tell(fits)
            if not args.kinds and not args.kernels and not args.missing:
                tables.write(target, head, fits)
    return 0


def tell(found: Fits) -> None:
    for entry, fits in found.kernels.items():
        errors = ", ".join(f"{name} off by {fit.mean:.1%}, at most {fit.worst:.1%}" for name, fit in fits.items())
        print(f"{entry}: {found.shapes[entry]} shapes, {errors}", flush=True)


# --- measuring -----------------------------------------------------------------------------------


def kernels_to_measure(kinds: list[str] | None, names: list[str] | None) -> list[tuple[str, str]]:
    """(kind, kernel's name), of these alone where they are given."""
    return [
        (kind, name) for kind, family in FAMILIES.items() if not kinds or kind in kinds
        for name in dict.fromkeys(kernel.name for kernel in kernels_of(family.kind)) if not names or name in names
    ]  # fmt: skip


def measure_all(
    target: Target, tree: cmsis_nn.Tree | None, jobs: list[Job]
) -> Iterator[tuple[list[Job], list[Sample], str]]:
    """Parts of the jobs, with samples of their kernels and the compiler that made them; with progress on stderr. The
    first part is the row loop."""
    samples, compiler = measure_loops(target)
    yield [], samples, compiler
    parts = batches(jobs)
    for number, part in enumerate(parts, 1):
        names = " ".join(f"{job.kind} {job.name}" for job in part)
        print(f"[{number}/{len(parts)}] {target.name} {names}", end=": ", file=sys.stderr, flush=True)
        found, version = measure_together(target, tree, part)
        print(len(found), file=sys.stderr, flush=True)
        yield part, found, version or compiler


@dataclass(frozen=True)
class Job:
    """A kernel and the operators that it is measured on. entries: those that they have in the table; rivals: other
    kernels that may compute one of them; tried: what it is measured with."""

    kind: str
    name: str
    ops: list[Op]
    entries: frozenset[str]
    rivals: frozenset[str]
    tried: tuple[Way, ...]

    @property
    def alone(self) -> bool:
        """In firmware of its own."""
        return self.tried != OURS or self.kind in INLINED

    @property
    def bytes(self) -> int:
        """Of RAM, about."""
        return sum(tensor.bytes for op in self.ops for tensor in (*op.activations, *op.outputs)) * 2


def drawn_job(
    target: Target, tree: cmsis_nn.Tree | None, kind: str, name: str, fewer: int, part: str = ""
) -> Job:  # fmt: skip
    """The job of a kernel for its entries that contain `part`, without operators where it can't be measured."""
    kernels = [kernel for kernel in kernels_of(kind) if kernel.name == name]
    library, looked_up = kernels[0].library == "cmsis-nn", kernels[0].costs_with
    tried = OURS
    if library:
        tried = tuple(Way("speed", at_once=rows) for rows in (1, *SEVERAL_ROWS))
    if looked_up is not None:
        tried = (Way("balanced", kernels[0].weights),)
    count = (
        DRAWN_OF_LOOKED_UP if looked_up and kind in LAYERS else DRAWN_FOR.get(name, DRAWN.get(kind, DRAWN_OF_OTHERS))
    )
    drawn = drawn_for(name, kind, count) if tree or not library else []
    ops, entries, rivals = [], set(), set[str]()
    # of what has no weights, how they are stored says nothing
    ways = tried if library or looked_up or kind in LAYERS else tuple(map(Way, OPTIMIZE))
    for op in drawn:
        found = {looked_up} if looked_up else set()
        for kernel, way in itertools.product(kernels_for(op), ways):
            context = way.context(target, kernels="mixed")
            if not kernel.accepts(op, context):
                continue
            if kernel.name != name:
                rivals.add(kernel.name)
            elif looked_up is None:
                forms = [False] * kernel.whole + [True] * kernel.by_row
                entries_of_op = (entry_name(op, kernel, by_row, context) for by_row in forms)
                found |= {entry for entry in entries_of_op if part in entry}
        ops += [op] * bool(found)
        entries |= found
    others = frozenset(kernel.name for kernel in kernels_of(kind)) - {name}
    if not looked_up:
        ops = ops[::fewer] if len(ops) >= FEWEST * fewer else ops[:FEWEST]
    return Job(kind, name, ops, frozenset(entries), others if kind in LAYERS else others & rivals, tried)


def batches(jobs: list[Job]) -> list[list[Job]]:
    """Jobs side by side in one firmware, as far as none is a rival of another and all fit."""
    parts: list[list[Job]] = []
    for job in jobs:
        for part in parts:
            apart = any(job.name in other.rivals or other.name in job.rivals for other in part)
            too_many = sum(len(other.ops) for other in (*part, job)) > MOST_OPERATORS
            too_large = sum(other.bytes for other in (*part, job)) > MOST_BYTES
            if not (job.alone or part[0].alone or apart or too_many or too_large):
                part.append(job)
                break
        else:
            parts.append([job])
    return parts


def measure_loops(target: Target) -> tuple[list[Sample], str]:
    """Samples of cheap stages in groups of many, for what the row loop itself takes. Without a kind, as code that tens
    of calls share is not what networks have."""
    context = Context(target, kernels="tinyfuse")
    plan = side_by_side([chain(length, width) for length in CHAINS for width in WIDTHS], context)
    profile, compiler = counted(plan, None)
    kinds = ("RELU6", "MAX_POOL_2D")
    return [replace(each, kind="") for kind in kinds for each in samples_of(plan, profile, kind, last=False)], compiler


def single_samples(target: Target, jobs: list[Job], count: int) -> Iterator[Sample]:
    """Yield the samples of up to 2 * `count` modules, each with one operator of every tinyfuse kernel of a set.

    The first half has the kernels that default options choose for the jobs' operators, the second half those that only
    --optimize speed chooses.
    """
    known: set[str] = set()
    for way in (Way("balanced"), Way("speed", "auto")):
        context, of_kernels = way.context(target, kernels="tinyfuse"), dict[str, list[Op]]()
        for op in (op for job in jobs if not job.alone for op in job.ops):
            found = kernel_for(op, context, None)
            if found is not None and found[0].library == "tinyfuse" and found[0].name not in known:
                of_kernels.setdefault(found[0].name, []).append(op)
        known |= of_kernels.keys()
        several = [ops for ops in of_kernels.values() if len(ops) >= FEWEST]
        for number in range(count if several else 0):
            plan = side_by_side([[ops[number * len(ops) // count]] for ops in several], context)
            profile, _ = counted(plan, None)
            yield from samples_called_once(plan, profile)


def sole_samples(target: Target, jobs: list[Job], count: int) -> Iterator[Sample]:
    """Samples of so many modules with one layer each that gathers windows, and nothing else that calls its code.
    Without a clamp, which in networks other layers have, too."""
    context = Context(target, kernels="tinyfuse")
    ops: list[Op] = []
    for op in (op for job in jobs if not job.alone for op in job.ops):
        found = kernel_for(op, context, None)
        gathers = found is not None and found[0].library == "tinyfuse" and found[0].calls_too(op)
        if found is not None and gathers and not found[0].counts(op, True).get("clamped_outputs"):
            ops.append(op)
    for number in range(min(count, len(ops))):
        plan = side_by_side([[ops[number * len(ops) // count]]], context)
        profile, _ = counted(plan, None)
        yield from samples_called_once(plan, profile)


def measure_together(target: Target, tree: cmsis_nn.Tree | None, jobs: list[Job]) -> tuple[list[Sample], str]:
    """Samples of the operators of some jobs, on every path of their kernels that some --optimize and --weights take."""
    lacks = frozenset().union(*(job.rivals for job in jobs))
    seen, samples, compiler = set(), [], ""
    version = tree.version if tree else (7, 0)
    for way in jobs[0].tried:
        context = way.context(target, kernels="mixed", cmsis_nn=version, lacks=lacks)
        ops: list[Op] = []
        for job in jobs:
            # the first of several forms that accepts it, as the plan takes it
            paths = {
                op: kernel.path(op, True, context)
                for op in job.ops
                for kernel in reversed(kernels_for(op))
                if kernel.name == job.name and kernel.accepts(op, context)
                and (kernel.costs_with or entry_name(op, kernel, kernel.by_row, context) in job.entries)
            }  # fmt: skip
            new = [op for op, path in paths.items() if (op, path, way.at_once) not in seen]
            seen.update((op, paths[op], way.at_once) for op in new)
            # calls of a path stay together, or a single one would be compiled for its constants
            ops += sorted(new, key=paths.__getitem__) if len(new) >= FEWEST else []
        if not ops:
            continue
        kinds = {job.kind for job in jobs}
        for some in shares(ops, INLINED.get(ops[0].kind, MOST_OPERATORS)):
            beside = clamped_below(some)
            plan = grid_plan([*some, *beside], context)
            if tree and tree.missing(plan.cmsis_nn_functions):
                break
            profile, compiler = counted(plan, tree)
            left_out = frozenset(op.output.name for op in beside)
            samples += [
                sample for kind in sorted(kinds) for sample in samples_of(plan, profile, kind, left_out=left_out)
            ]
    return samples, compiler


def shares(ops: list[Op], most: int) -> Iterator[list[Op]]:
    """Yields lists of about equal length, of at most `most` operators each: one firmware a list. Compilers take more
    than twice as long for twice as many."""
    parts = -(-len(ops) // most)
    yield from (ops[len(ops) * part // parts : len(ops) * (part + 1) // parts] for part in range(parts))


def clamped_below(ops: list[Op]) -> list[Op]:
    """Returns one of the layers with a clamp whose lower bound is not int8's, as one of most networks has: where all
    clamps of a module begin at -128, compilers leave half of their loop out."""
    layers = (op for op in ops if op.kind in LAYERS and op.output.dtype == "int8" and clamp_range(op) == (-128, 127))
    found = next((op for op in layers if op.output.zero_point == -128), None)
    if found is None:
        return []
    quant = replace(found.output.quantization, zero_point=(-100,))
    output, attributes = replace(like(found.output), quant=quant), replace(found.attributes, activation="RELU")
    weights = found.inputs[1:]
    return [replace(found, inputs=(like(found.input), *weights), outputs=(output,), attributes=attributes)]


def grid_plan(ops: list[Op], context: Context) -> Plan:
    """A model of all the operators side by side: a group of each, and one of a RELU before it."""
    groups = [[op] for op in ops]
    for op in ops:
        # with one row there is no loop
        if op.outputs and _rectified(op.input) and len(op.output.shape) == 4 and op.output.shape[1] > 1:
            middle = like(op.input)
            output = replace(op.output, index=-1)
            pair = [rectifier(middle), replace(op, inputs=(middle, *op.inputs[1:]), outputs=(output,))]
            if Legality(_graph([pair]), context).refusal(pair) is None:
                groups.append(pair)
    return side_by_side(groups, context)


def _rectified(tensor: Tensor) -> bool:
    """Whether a RELU makes such rows."""
    return tensor.dtype == "float32" or (tensor.dtype in ("int8", "int16") and tensor.quant is not None)


def _graph(groups: list[list[Op]]) -> Graph:
    every = tuple(op for group in groups for op in group)
    made = {tensor for op in every for tensor in op.outputs}
    read = dict.fromkeys(tensor for op in every for tensor in op.activations)
    last = next(op for op in reversed(every) if op.outputs)  # not one that changes a state
    outputs = tuple(op.output for op in every if op is last or op.kind in NEEDED)
    return Graph("grid", "", every, tuple(t for t in read if t not in made), outputs)


def side_by_side(groups: list[list[Op]], context: Context) -> Plan:
    graph = _graph(groups)
    source = replace(graph, ops=tuple(map(as_in_file, graph.ops)))
    return plan_groups(source, graph, groups, context, Options("grid"))


if __name__ == "__main__":
    sys.exit(main())
