"""A plan's module evaluated over a user's data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyfuse.api.writing import cmsis_nn_tree
from tinyfuse.compiler import compile_graph
from tinyfuse.data.labels import Labels, labels_of_values, read_labels
from tinyfuse.data.samples import AllData, open_samples
from tinyfuse.evaluate.evaluation import evaluate_plan, scored_output
from tinyfuse.evaluate.options import EvaluateOptions, parse_values
from tinyfuse.evaluate.result import Evaluation
from tinyfuse.evaluate.streams import feeding_of
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation import Emulator, find_tools

#: a file or folder of labels, or the labels
LabelData = str | os.PathLike[str] | Array | Sequence[int] | Sequence[float] | Sequence[str]


def evaluate_module(
    plan: Plan, model: bytes, data: AllData, labels: LabelData, classes: tuple[str, ...],
    float_model: str | os.PathLike[str] | None, how: EvaluateOptions, cmsis_nn_path: str | None, progress: Progress,
) -> Evaluation:  # fmt: skip
    """`Module.evaluate` after the check of its options."""
    machine = find_tools(how.emulator, plan.context.target, how.compiler)
    if machine.name == "host" and plan.uses_cmsis_nn:  # our kernels compute the same bits here
        options = replace(plan.options, kernels="tinyfuse", max_ram=None, max_step=None, max_flash=None)
        plan = compile_graph(plan.source, plan.context.target, options, progress)
    return evaluate_on(
        plan, cmsis_nn_tree(plan, cmsis_nn_path), model, machine, data, labels, classes,
        None if float_model is None else os.fspath(float_model), how, progress,
    )  # fmt: skip


def evaluate_on(
    plan: Plan, tree: Tree | None, model: bytes, machine: Emulator, data: AllData, labels: LabelData,
    classes: tuple[str, ...], float_path: str | None, how: EvaluateOptions, progress: Progress,
) -> Evaluation:  # fmt: skip
    """Evaluation of a plan's module on a machine that runs it. `classes` are names in the output's order; with () the
    plan's labels are used."""
    feeding = feeding_of(plan)
    samples = open_samples(data, feeding.inputs, streams=feeding.streams, values=parse_values(how.values))
    output = scored_output(plan, how.scores)
    names = classes or (plan.options.labels[output] if output < len(plan.options.labels) else ())
    found = _labels(labels, names)
    return evaluate_plan(plan, tree, model, machine, samples, found, names, how, float_path, progress)


def _labels(labels: LabelData, classes: tuple[str, ...]) -> Labels:
    if isinstance(labels, (str, os.PathLike)):
        return read_labels(labels, classes)
    return labels_of_values(labels if isinstance(labels, np.ndarray) else list(labels), classes)


def mistake_inputs(plan: Plan, data: AllData, found: Evaluation, how: EvaluateOptions) -> dict[int, Array]:
    """Real numbers of the first input, for each mistake of an evaluation. They are read a second time."""
    feeding, wanted = feeding_of(plan), {mistake.sample for mistake in found.mistakes}
    samples = open_samples(data, feeding.inputs, streams=feeding.streams, values=parse_values(how.values))
    first, inputs = feeding.inputs[0], {}
    for batch in samples.batches(limit=max(wanted) + 1) if wanted else ():
        for sample in wanted & set(range(batch.start, batch.start + batch.count)):
            inputs[sample] = batch.real[first.name][sample - batch.start].copy()
    return inputs
