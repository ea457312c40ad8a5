"""A test of the tests: `verify` sees every fault that is seeded into generated C, except those listed as equivalent.

CI takes a sample of every kind; `--campaign` takes all of them in parts, writes the table and says what survived.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from executors import plan_of
from mutations import Mutant, mutants
from random_graphs import Sketch
from single_unit_firmware import build_plan
from stream_models import STREAM_MODELS

from tinyfuse.emit import emit
from tinyfuse.errors import TinyfuseError
from tinyfuse.plan import Plan
from tinyfuse.verify.comparison import compare, problems
from tinyfuse.verify.emulation import find_emulator, module
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.streams import join_streams, split_streams

HAS_QEMU = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
pytestmark = pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")

TARGET, RUNS, FRAMES, SECONDS = "cortex-m4", 8, 8, 10


# --- small models that have what generated C is made of -------------------------------------------


def chain() -> Plan:
    """A chain with rings, windows and padding."""
    sketch = Sketch(1)
    x = sketch.value((1, 9, 7, 4))
    y = sketch.depthwise(sketch.conv(x, 6, (3, 3), (2, 1)), (3, 3))
    return plan_of(
        sketch.build([x], [sketch.conv(y, 8, (1, 1))]), TARGET, kernels="tinyfuse", optimize="ram", recompute=1.0
    )


def residual() -> Plan:
    """A tensor with two readers, an ADD, and a fully connected layer."""
    sketch = Sketch(2)
    x = sketch.value((1, 6, 5, 4))
    y = sketch.add(x, sketch.conv(x, 4, (3, 3)))
    data = sketch.build([x], [sketch.fully_connected(sketch.conv(y, 6, (3, 3), (2, 2)), 5)])
    return plan_of(data, TARGET, kernels="tinyfuse")


def state() -> Plan:
    return plan_of(STREAM_MODELS["every kind of state"], TARGET, kernels="tinyfuse")


def fed() -> Plan:
    sketch = Sketch(1)
    x = sketch.value((1, 9, 5, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    return plan_of(sketch.build([x], [y]), TARGET, kernels="tinyfuse", feed_rows=True)


def two_ends() -> Plan:
    """A model with two inputs and two outputs."""
    sketch = Sketch(3)
    a, b = sketch.value((1, 5, 4, 3)), sketch.value((1, 5, 4, 3))
    y = sketch.conv(sketch.add(a, b), 4, (3, 3))
    return plan_of(sketch.build([a, b], [y, sketch.fully_connected(y, 7)]), TARGET, kernels="tinyfuse")


def by_two() -> Plan:
    """A kernel that makes two rows a call, for an odd number of rows, in a ring. Its layers reach both ends of int8."""
    sketch = Sketch(5)
    x = sketch.value((1, 9, 8, 8))
    y = sketch.conv(sketch.depthwise(sketch.relu(x), (3, 3)), 8, (3, 3))
    data = sketch.build([x], [sketch.pool(y, "MAX_POOL_2D", (2, 2), (1, 1))])
    plan = plan_of(data, TARGET, kernels="tinyfuse", optimize="ram", max_ram=1, weights="winograd", recompute=1.0)
    assert [len(group.stages) for group in plan.groups] == [2, 2]
    return plan


MODELS = {"chain": chain, "residual": residual, "state": state, "fed": fed, "two ends": two_ends, "by two": by_two}


# --- what is no fault ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoFault:
    """A change that breaks no promise, and the reason: mutants of `kind` whose text matches `change`. They lie in
    parameters of the kernel whose name matches `kernel`, and these have the fields that `given` says."""

    kind: str
    change: str
    why: str
    given: Callable[[dict[str, int]], bool] = lambda fields: True
    kernel: str = ""

    def covers(self, mutant: Mutant) -> bool:
        named = (
            self.kind == mutant.kind and re.search(self.change, str(mutant)) and re.search(self.kernel, mutant.kernel)
        )
        return bool(named) and self.given(mutant.fields)


def _unpadded(fields: dict[str, int]) -> bool:
    return fields["kernel_h"] == fields["kernel_w"] == 1 or fields["pad_top"] == fields["pad_left"] == 0


NO_FAULTS = [
    NoFault("clamp", r"act_min = -128.* became .*-129", "the kernels saturate to int8 before they clamp"),
    NoFault("clamp", r"act_max = 127.* became .* 128", "the kernels saturate to int8 before they clamp"),
    NoFault("window", "dilation_h", "a window of one row", lambda p: p["kernel_h"] == 1),
    NoFault("window", "dilation_w", "a window of one column", lambda p: p["kernel_w"] == 1),
    NoFault("zero point", r"\.in_zero_point", "it fills the padding alone, and there is none", _unpadded),
    NoFault("zero point", "state_zero_point", "a state of int16 has none", kernel="svdf_s16"),
    NoFault("size", "in_ring", "more rows than the tensor has: no ring", lambda p: p["in_ring"] >= p["in_h"]),
    NoFault("size", "in_h", "no window reaches below the image", lambda p: p.get("pad_top") == 0),
    NoFault("reset", r"(state \+ \d+u, \w+), \d+u\); .* became .*\1, \d+u\);", "the next line sets the byte behind"),
    NoFault("argument", r", \d, TINYFUSE_\w+\);' became .*, \d, TINYFUSE", "how many pixels are computed at once, of a"
            " row that has no more, or slower", lambda p: p["out_w"] <= 3),
    NoFault("argument", r", (4, TINYFUSE_\w+\);' became .*, 3|3, TINYFUSE_\w+\);' became .*, 2|2, TINYFUSE_\w+\);' became"
            r" .*, 1), TINYFUSE", "fewer pixels at once: slower, and equal"),
    NoFault("argument", r"tinyfuse_copy\(s4, t23, 4\).* became .*, 5\)", "a byte more, between two states"),
    NoFault("argument", r"_4x2_.*, 4, TINYFUSE_\w+\);' became .*, 5, TINYFUSE", "always four: the C takes no other"),
    NoFault("size", r"\.block = 4", "always four: the C takes no other", kernel="4x2"),
    NoFault("size", r"\.block = 3,.* became .*2", "computed two by two: slower, and equal"),
    NoFault("size", r"\.out_w = (3.*4|4.*5|7.*8|8.*9),", "a pixel too many, in bytes that nothing uses then"),
    NoFault("size", r"\.batches = 1,.* 2|\.out_c = (5.*6|7.*8),", "outputs too many, in bytes nothing uses then"),
    NoFault("size", r"\.in_c = 54,.* 55", "the weights have zeros up to a multiple of four"),
    NoFault("clamp", r"act_max = 127,.* 126", "no drawn input drives the layer higher than -53", lambda p: p.get("in_c") == 54),
    NoFault("offset", r"'v1' int8\[1,9,5,4\], a ring of 3.* became .*arena \+ 523u", "nothing lies in the byte below"),
    NoFault("loop", r"if \(.*y\d < \d+ && .* became", "the other half of the condition, or the loop's end, is narrower"),
    NoFault("loop", r"for \(.*; y\d < (5;.* y\d < 6;|3;.* y\d < 4;)", "a row too many, in bytes that nothing uses then"),
    NoFault("row", r"(y1 \+ 1\).* became .*y1 \+ 2\)|y1 \+ 2,.* became .*y1 \+ 3,)", "of two stages, the first runs where the last"
            " can't: it lacks no fewer rows"),
    NoFault("row", r"y\d = tinyfuse_min\(y\d \+ 2, .* became .*y\d \+ 1,", "of two rows one is made again: slower, and equal"),
    NoFault("argument", r"winograd_rows_s8\(.*min\(y\d \+ 2, 9\) - 1.* became .*min\(y\d \+ 2, 10\) - 1", "where the row behind the"
            " last lies, which nothing reads"),
    NoFault("condition", r"if \(y\d < .* became 'if \(1\)", "of two stages, the first runs where the last can't"),
    NoFault("multiplier", r"\.\w+multiplier = \d{9,}", "2**-31 of a product: it counts where a sum lies that near to a tie,"
            " which none of the drawn ones does; those in NAME_weights.c are held against the plan"),
]  # fmt: skip


def equivalent(mutant: Mutant) -> str | None:
    """Reason why the mutant is no fault; None if `verify` must see it."""
    if mutant.unread:
        return "a field that the kernel doesn't read"
    return next((each.why for each in NO_FAULTS if each.covers(mutant)), None)


# --- judging ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A model with its inputs and expected outputs."""

    plan: Plan
    inputs: list[list[np.ndarray]]
    expected: list[list[np.ndarray]]

    def verdict(self, files: dict[str, str], work: Path) -> str:
        """The failure that `verify` reports for a module of these files; "" if it reports none."""
        plan, machine = self.plan, find_emulator("qemu", self.plan.context.target)
        shutil.rmtree(work, ignore_errors=True)
        try:
            with patch.object(module, "emit", lambda plan: files):
                firmware = build_plan(plan, None, self.inputs, "qemu", FRAMES, True, work)
            outcome = machine.run(firmware, SECONDS)
        except TinyfuseError as error:
            return str(error)
        found = problems(plan, firmware, outcome)
        if compare(plan, self.expected, outcome.outputs).mismatches:
            found.append("outputs differ")
        return "; ".join(found)


@cache
def subject(name: str) -> Subject:
    return subject_of(MODELS[name](), RUNS)


def subject_of(plan: Plan, runs: int) -> Subject:
    """A model with `runs` inputs, or with four streams if it has a state."""
    frames, runs = (FRAMES, 4 * FRAMES) if plan.states else (None, runs)
    inputs = input_set(plan.source, runs, 0)
    return Subject(
        plan, inputs, join_streams(ReferenceOracle(plan.source).run_streams(split_streams(inputs, frames)), frames)
    )


@cache
def all_mutants(name: str) -> dict[str, list[Mutant]]:
    """Mutants of the model, grouped by kind."""
    plan, of_kind = subject(name).plan, {}
    for mutant in mutants(emit(plan), plan):
        of_kind.setdefault(mutant.kind, []).append(mutant)
    return of_kind


def sample(most: int) -> list[tuple[str, Mutant]]:
    """Draws at most `most` mutants of every kind and model, with a fixed seed."""
    rng, drawn = np.random.default_rng(0), []
    for name in MODELS:
        for found in all_mutants(name).values():
            chosen = rng.permutation(len(found))[:most]
            drawn += [(name, found[i]) for i in sorted(chosen)]
    return drawn


#: how often mutants of a kind were seen, are equivalent, and survived
Counts = dict[str, Counter[str]]
_ENDS = ("seen", "equivalent", "survived")


def survivors(drawn: Iterable[tuple[str, Mutant]], work: Path) -> tuple[list[str], Counts]:
    """Returns the faults that were not seen, and the number of each outcome for every kind."""
    counts: Counts = {}
    lived = []
    for name, mutant in drawn:
        seen = subject(name).verdict(mutant.files, work)
        why = equivalent(mutant)
        end = "seen" if seen else "equivalent" if why else "survived"
        counts.setdefault(mutant.kind, Counter())[end] += 1
        if end == "survived":
            lived.append(f"{name}: {mutant}")
    return lived, counts


def table(counts: Counts) -> str:
    """Formats a table with one row for each kind, and one for all."""
    total: Counter[str] = sum(counts.values(), Counter())
    rows = [f"{'kind':<20}{'seen':>6}{'equivalent':>12}{'survived':>10}"]
    for kind, ends in [*sorted(counts.items()), ("all", total)]:
        seen, equal, survived = (ends[end] for end in _ENDS)
        rows.append(f"{kind:<20}{seen:>6}{equal:>12}{survived:>10}")
    return "\n".join(rows)


@pytest.mark.parametrize("name", MODELS)
def test_unspoilt_modules_pass(tmp_path, name: str) -> None:
    assert subject(name).verdict(emit(subject(name).plan), tmp_path / "work") == ""


def test_a_sample_of_every_kind_is_seen(tmp_path) -> None:
    drawn = sample(1)
    kinds = {mutant.kind for _, mutant in drawn}
    one_of_each = [next(found for found in drawn if found[1].kind == kind) for kind in sorted(kinds)]
    assert len(kinds) >= 20
    lived, counts = survivors(one_of_each, tmp_path / "work")
    print(table(counts))
    assert not lived, "\n".join(lived)


#: the campaign's parts, which workers share; each minutes on one core
PARTS = 24


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_every_fault_is_seen(tmp_path, part: int, request: pytest.FixtureRequest) -> None:
    """`--cache-show 'mutations/*'` shows what each part counted; the table of all is in mutations.txt once all ran."""
    lived, counts = survivors(sample(10_000)[part::PARTS], tmp_path / "work")
    cache = request.config.cache
    cache.set(f"mutations/{part}", counts)
    found = [cache.get(f"mutations/{number}", None) for number in range(PARTS)]
    if None not in found:
        whole: Counts = {}
        for each in found:
            for kind, ends in each.items():
                whole.setdefault(kind, Counter()).update(ends)
        (request.config.rootpath / "mutations.txt").write_text(table(whole) + "\n")
    assert not lived, "\n".join(lived)
