"""Predicted and measured instructions of plans, operator by operator, and bytes of code.

python tests/support/predictions.py TARGET DTYPE FIRST COUNT [KIND]    networks of sized_networks.py, worst kernels last

KIND: images (the default) or lines.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from sized_networks import line_network, sized_network

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.cost.predict import plan_stages
from tinyfuse.cost.table import entry_name
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.profile.image import Part, arena_columns, read_image
from tinyfuse.profile.measure import Usage, measure
from tinyfuse.profile.plugin import build_plugin, run_counted
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation.code_size import measure_code
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.emulation.qemu import Qemu
from tinyfuse.verify.emulation.result import Outcome


@dataclass(frozen=True)
class Prediction:
    """One stage: its entry in the cost table, the operator, the predicted and the measured instructions."""

    entry: str
    op: str
    predicted: float | None
    measured: int


def predictions(data: bytes, target: str, **options: str) -> list[Prediction]:
    """Predictions for every stage of a model's plan, and measurements of one inference of random inputs at -O2."""
    graph = read_tflite("model.tflite", data)
    plan = compile_graph(graph, load_target(target), Options("net", **{"kernels": "tinyfuse", **options}))
    return list(compared(plan))


def code_prediction(data: bytes, target: str, **options: str) -> list[Prediction]:
    """Predicted and linked code bytes of a model's plan as a whole, at -O2."""
    graph = read_tflite("model.tflite", data)
    plan = compile_graph(graph, load_target(target), Options("net", **{"kernels": "tinyfuse", **options}))
    return [Prediction("code", "", estimated_code_bytes(plan), code_bytes(plan))]


def code_bytes(plan: Plan) -> int:
    """Linked code bytes of a plan's module at -O2."""
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        return measure_code(plan, None, Path(folder)).module


def measured_parts(plan: Plan) -> tuple[Outcome, dict[int, dict[Part, Usage]]]:
    """Outcome of one inference of random inputs at -O2, and what its parts took."""
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        firmware = build_module(plan, None, input_set(plan.source, 1, 0), "qemu", "O2", work)
        source = (work / "module" / f"{plan.options.name}.c").read_text()
        image = read_image(firmware.elf, plan.options.name, source, arena_columns(plan), plan.context.target.mve)
        qemu = Qemu()
        outcome, counts = run_counted(qemu, firmware, image, build_plugin(qemu.version), None, 600)
        return outcome, measure(counts, image, timed=False).parts


def compared(plan: Plan) -> Iterator[Prediction]:
    _, parts = measured_parts(plan)
    for group, values in zip(plan.groups, plan_stages(plan), strict=True):
        took: dict[int, int] = defaultdict(int)
        for part, used in parts.get(group.index, {}).items():
            took[part.stage or 0] += used.instructions
        for number, (stage, value) in enumerate(zip(group.stages, values, strict=True)):
            entry = entry_name(stage.op, stage.kernel, stage.by_row, plan.context)
            yield Prediction(entry, str(stage.op), value, took[number])


def error(found: list[Prediction]) -> float:
    """Relative error for a whole model; infinite if a stage has no prediction."""
    if any(each.predicted is None for each in found):
        return float("inf")
    return sum(each.predicted or 0 for each in found) / sum(each.measured for each in found) - 1


#: networks by KIND
NETWORKS = {"images": sized_network, "lines": line_network}


def main(target: str, dtype: str, first: str, count: str, kind: str = "images") -> None:
    off: dict[str, list[tuple[float, str]]] = defaultdict(list)
    errors: list[float] = []
    for seed in range(int(first), int(first) + int(count)):
        try:
            found = predictions(NETWORKS[kind](seed, dtype), target)
        except CompileError as refusal:
            print(f"{target} {dtype} {kind} {seed}: {refusal}", flush=True)
            continue
        errors.append(error(found))
        total = sum(each.measured for each in found)
        print(f"{target} {dtype} {kind} {seed}: {total:,} instructions, {errors[-1]:+.1%}", flush=True)
        for each in found:
            share = "?" if each.predicted is None else f"{each.predicted / max(1, each.measured) - 1:+.0%}"
            weight = ((each.predicted or 0) - each.measured) / total
            off[each.entry].append((weight, f"{share} of {each.measured:,}"))
    for entry, shares in sorted(off.items(), key=lambda item: sum(abs(weight) for weight, _ in item[1])):
        print(f"  {sum(weight for weight, _ in shares):+.1%} {entry}: {'; '.join(text for _, text in shares[:8])}")
    off_by = [abs(each) for each in errors]
    print(f"{target} {dtype} {kind}: mean {sum(off_by) / len(off_by):.1%}, worst {max(off_by):.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
