"""What the stages of a plan take, counted in QEMU, as samples to fit costs to: for measure_costs.py."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cost_fits import QUANTITIES, Figures, Sample  # noqa: E402
from cost_networks import networks  # noqa: E402

from tinyfuse.board_timing import BoardTiming  # noqa: E402
from tinyfuse.cost.predict import called_once, group_stream, lies_over_input  # noqa: E402
from tinyfuse.cost.table import (  # noqa: E402
    CostTable,
    board_table,
    cost_table,
    entry_name,
    flash_table,
    is_once,
    is_sole,
    loop_features,
    reads_ring,
    rows_made,
)
from tinyfuse.ir import Op  # noqa: E402
from tinyfuse.kernels.core.context import Context  # noqa: E402
from tinyfuse.kernels.counts.common import RINGED, Counts  # noqa: E402
from tinyfuse.kernels.counts.layers import LUT_COUNTS, PALETTIZED_COUNTS  # noqa: E402
from tinyfuse.kernels.layers.common.taps import LISTS_OF_TAPS  # noqa: E402
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by  # noqa: E402
from tinyfuse.plan import Group, Plan, Stage  # noqa: E402
from tinyfuse.profile.cycles import core as core_of  # noqa: E402
from tinyfuse.profile.image import FLASH, arena_columns, read_image  # noqa: E402
from tinyfuse.profile.measure import Profile, Usage, measure  # noqa: E402
from tinyfuse.profile.plugin import build_plugin, run_counted  # noqa: E402
from tinyfuse.targets import Target  # noqa: E402
from tinyfuse.toolchain import cmsis_nn  # noqa: E402
from tinyfuse.verify.emulation.inputs import input_set  # noqa: E402
from tinyfuse.verify.emulation.module import build_module  # noqa: E402
from tinyfuse.verify.emulation.qemu import Qemu  # noqa: E402

#: kinds whose sums are requantized by one of several roundings
_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")

#: how often a network's stage counts beside an operator of the grid: kernels among neighbours are what is predicted
NETWORK_WEIGHT = 2

#: so many times fewer instructions than the table has say that the compiler counts a call's code elsewhere
FAR_BELOW = 4


def counted(plan: Plan, tree: cmsis_nn.Tree | None) -> tuple[Profile, str]:
    """The profile of a plan's inference at -O2, and the compiler."""
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work, core = Path(folder), plan.context.target
        pipeline = core_of(core.cpu)
        firmware = build_module(
            plan, tree if plan.uses_cmsis_nn else None, input_set(plan.source, 1, 0), "qemu", "O2", work
        )
        source = (work / "module" / f"{plan.options.name}.c").read_text()
        image = read_image(firmware.elf, plan.options.name, source, arena_columns(plan), core.mve)
        qemu = Qemu()
        _, counts = run_counted(qemu, firmware, image, build_plugin(qemu.version), pipeline, 600)
        return measure(counts, image, pipeline is not None), firmware.compiler


def samples_of(
    plan: Plan, profile: Profile, kind: str, last: bool = True, left_out: Collection[str] = ()
) -> Iterator[Sample]:
    """Of the stages of that kind; `last`: of each group the last stage alone. Without those whose output's name is in
    `left_out`, and those of layers that round half to even and have the entry of a form that they are like: integers
    take up to 40 % more instructions there, and nothing in the counts tells these layers from the others."""
    for group in plan.groups:
        found = list(zip(group.stages, _group_samples(plan, profile, group), strict=True))
        yield from (
            each for stage, each in (found[-1:] if last else found)
            if each.kind == kind and not borrows_entry(stage.op, each.entry)
            and not (stage.op.outputs and stage.op.output.name in left_out)
        )  # fmt: skip


def borrows_entry(op: Op, entry: str) -> bool:
    """Whether a layer that rounds half to even has an entry of another form."""
    return op.kind in _LAYERS and rounds_by(op, FLOAT_HALF_EVEN) and "half_even" not in entry


def samples_called_once(plan: Plan, profile: Profile) -> Iterator[Sample]:
    """Of the stages whose kernel the module calls once."""
    once = called_once(plan)
    for group in plan.groups:
        for stage, each in zip(group.stages, _group_samples(plan, profile, group), strict=True):
            if is_once(stage, plan.context, once):
                sole = is_sole(stage, plan.context, once)
                yield replace(each, weight=NETWORK_WEIGHT, alone=True, sole=sole)


def _group_samples(plan: Plan, profile: Profile, group: Group) -> list[Sample]:
    loops = loop_features(group.stages, group_stream(plan, group))
    return [
        _sample(stage, loop, profile, group.index, number, plan)
        for number, (stage, loop) in enumerate(zip(group.stages, loops, strict=True))
    ]


def _sample(stage: Stage, loop: Counts, profile: Profile, group: int, number: int, plan: Plan) -> Sample:
    context = plan.context
    parts = [(part, used) for part, used in profile.parts.get(group, {}).items() if part.stage == number]
    entry, counts = (
        entry_name(stage.op, stage.kernel, stage.by_row, context),
        stage.kernel.counts(stage.op, stage.by_row),
    )
    if not reads_ring(plan.groups[group].stages, number, loop):
        counts = {name: count for name, count in counts.items() if not name.startswith(RINGED)}
    if lies_over_input(plan, stage):
        counts = {name: count for name, count in counts.items() if name not in stage.kernel.copied(stage.op)}
    made = rows_made(stage, loop)
    counts = {name: count * made for name, count in counts.items()} if made < 1 else counts
    took, beside = _figures(used for _, used in parts), Figures()
    if stage.kernel.costs_with is not None:  # what the table has of the kernel that it is like is no part of the entry
        tables = _tables(context.target)
        known = {name: table.kernels.get(entry, {}) if table else {} for name, table in tables.items()}
        beside = Figures(
            *(round(sum(factor * counts.get(n, 0) for n, factor in known[name].items())) for name in QUANTITIES)
        )
        took = Figures(*(getattr(took, name) - getattr(beside, name) for name in QUANTITIES))
        entry = stage.kernel.costs_with
        counts = {name: count for name, count in counts.items() if name in PALETTIZED_COUNTS + LUT_COUNTS}
    took = _without_parts(took, stage, context)
    own = _figures(used for part, used in parts if not part.function or part.function.startswith("tinyfuse_rows"))
    lists = stage.kernel.copy_of_code(stage.op, context) == LISTS_OF_TAPS  # which all forms fill by the same code
    windows = stage.kernel.costs_with is None and (bool(stage.kernel.calls_too(stage.op)) or lists)
    return Sample(stage.op.kind, stage.kernel, entry, counts, loop, took, own, windows=windows, beside=beside)


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
    return {
        "instructions": cost_table(target.cost_table),
        "cycles": board_table(target, BoardTiming()),
        "flash": flash_table(target),
    }


def network_samples(target: Target, count: int, dtypes: Iterable[str]) -> Iterator[Sample]:
    """Samples of all stages of so many networks of each of these dtypes. Where the compiler has joined the code of
    calls in a group, so that one of them has hardly any, no stage of the group tells what it takes."""
    for plan in (plan for dtype in dtypes for plan in networks(target, dtype, count)):
        profile, _ = counted(plan, None)
        once = called_once(plan)
        for group in plan.groups:
            found = _group_samples(plan, profile, group)
            if any(_joined(stage, each, plan.context) for stage, each in zip(group.stages, found, strict=True)):
                continue
            for stage, each in zip(group.stages, found, strict=True):
                other = each.kernel.costs_with is not None and stage.kernel.single_calls_as(stage.op) is None
                alone = is_once(stage, plan.context, once) and not other
                yield replace(each, weight=NETWORK_WEIGHT, alone=alone, sole=is_sole(stage, plan.context, once))


def _joined(stage: Stage, sample: Sample, context: Context) -> bool:
    """Whether what its kernel took must have been counted elsewhere: it is nothing, or far below what is known."""
    if stage.kernel.costs_with is not None or stage.kernel.work(stage.op, context):
        return False  # of these the sample has a part
    table = _tables(context.target)["instructions"]
    known = table and table.kernel(stage.op, stage.kernel, stage.by_row, context)
    took = sample.took.instructions - sample.own.instructions
    return took <= 0 or FAR_BELOW * took < (known or 0.0)
