"""Fused elementwise loops: the C of each operator alone, and networks with many such operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases.common import operator, tensor
from core_rotation import share_of_core
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from fused_loop_networks import fused_loop_networks
from hypothesis import HealthCheck, given, settings
from op_harness import TARGETS, cases_of
from op_harness import assert_exact as assert_kernels_exact
from random_graphs import Sketch
from test_op_kernels import drawn, target_or_skip
from test_step import in_least_pieces

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import element_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.elementwise.merged import merged
from tinyfuse.ops.elementwise.table import Table

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


class Chain:
    """Builds a chain of operators of one shape, each on the last result."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0):
        self.rng = np.random.default_rng(seed)
        self.shape, self.ops, self.last = shape, list[Op](), tensor(shape, 0.05, 3)

    def on(self, kind: str, *others: Tensor, scale: float = 0.06, zero_point: int = -7, first: bool = False, **options):
        """Adds an operator on the last result and others, or, with `first`, on others and the last result."""
        inputs = (*others, self.last) if first else (self.last, *others)
        dtype = "bool" if kind.startswith(("GREATER", "LESS", "EQUAL", "NOT", "LOGICAL")) else "int8"
        output = tensor(self.shape, None if dtype == "bool" else scale, zero_point, dtype)
        attributes = FAMILIES[kind].attributes(options)
        self.ops.append(Op(kind, inputs, (output,), attributes, len(self.ops)))
        assert element_of(self.ops[-1]) is not None
        self.last = output
        return self

    def table(self, channels: bool) -> Chain:
        shape = (self.shape[-1],) * channels + (256,)
        data = self.rng.integers(-128, 128, shape).astype(np.int8)
        kind = "CHANNEL_TABLES" if channels else "TABLE"
        output = tensor(self.shape, 0.05, 0)
        self.ops.append(Op(kind, (self.last, tensor(shape, None, data=data)), (output,), Table(()), len(self.ops)))
        self.last = output
        return self

    def image(self, scale: float = 0.04) -> Tensor:
        return tensor(self.shape, scale, -20)

    def constant(self, *shape: int) -> Tensor:
        return tensor(shape, 0.03, 5, data=self.rng.integers(-128, 128, shape).astype(np.int8))

    def loop(self) -> Op:
        """The chain as one operator, with names and indexes for its tensors."""
        together = merged(tuple(self.ops))
        return operator(together.kind, together.inputs, together.output, together.attributes)


def loops(shape: tuple[int, ...]) -> list[Op]:
    """Fused loops of every operator, with operands of each broadcast shape, sums with and without single rounding, and
    multipliers on both sides of 1."""
    channels = (1,) * (len(shape) - 1) + shape[-1:]

    def chain(seed: int = 0) -> Chain:
        return Chain(shape, seed)

    c = chain()
    found = [
        c.on("MUL", c.image()).on("ADD", c.image(), fused_activation_function="RELU6").on("SUB", c.image(), first=True),
        chain().table(False).on("MUL", tensor(shape, 0.04, -20)).table(False),
        chain().on("MUL", tensor(shape, 0.4, 9), scale=0.001).on("MUL", tensor((), 0.3, 1), scale=0.02),
        chain().on("MUL", tensor(channels, 0.04, 2), scale=0.03).on("ADD", c.constant(shape[-1])).table(False),
        chain().on("SQUARED_DIFFERENCE", tensor(shape, 0.06)).on("MAXIMUM", c.constant()).on("MINIMUM", c.image()),
        chain().on("ADD", tensor(shape, 30.0, 4), scale=0.0002).on("SUB", tensor(shape, 9.0, 4), scale=0.0003),
        chain().on("RELU").on("ADD", c.constant(*shape), scale=0.08, zero_point=100),
        chain().on("RELU6", scale=0.05, zero_point=3).on("MUL", c.image(), scale=0.00198322),
        chain().on("MUL", c.image(), scale=0.00198322).on("SUB", tensor(shape, 6.1084, 4), scale=0.00199574),
        chain().on("MUL", c.constant(shape[-1]), scale=0.000002).on("MUL", c.image(), scale=90.0),
        chain().table(True).on("ADD", tensor(channels[1:], 0.04, 2)).table(True),
    ]
    for kind in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
        x, other = chain(), tensor(shape, 0.07, -9)
        first = x.last
        x.on(kind, other).on("LOGICAL_OR", tensor(shape, None, dtype="bool")).on("LOGICAL_NOT")
        x.on("LOGICAL_AND", tensor((1,), None, dtype="bool"))
        if kind != "LESS":  # its result is bool
            x.on("SELECT_V2", first, other)
        found.append(x)
    return [each.loop() for each in found]


class WideChain(Chain):
    """Builds a chain of int16 or float32 operators of one shape."""

    def __init__(self, shape: tuple[int, ...], dtype: str):
        super().__init__(shape)
        self.dtype, self.last = dtype, wide(shape, dtype)

    def on(self, kind: str, *others: Tensor, scale: float = 0.0003, first: bool = False, **options) -> WideChain:
        inputs = (*others, self.last) if first else (self.last, *others)
        compares = kind.startswith(("GREATER", "LESS", "EQUAL", "NOT"))
        output = tensor(self.shape, None, dtype="bool") if compares else wide(self.shape, self.dtype, scale)
        self.ops.append(Op(kind, inputs, (output,), FAMILIES[kind].attributes(options), len(self.ops)))
        assert element_of(self.ops[-1]) is not None, kind
        self.last = output
        return self

    def image(self, scale: float = 0.0002) -> Tensor:
        return wide(self.shape, self.dtype, scale)

    def constant(self, *shape: int) -> Tensor:
        values = _values(self.rng, wide(shape, self.dtype))
        return replace(wide(shape, self.dtype), data=np.where(np.isfinite(values), values, 2).astype(self.dtype))


def wide(shape: tuple[int, ...], dtype: str, scale: float = 0.0002) -> Tensor:
    return tensor(shape, scale if dtype == "int16" else None, 0, dtype)


def wide_loops(shape: tuple[int, ...], dtype: str) -> list[Op]:
    """Fused loops of every operator, int16 or float32."""
    channels = (1,) * (len(shape) - 1) + shape[-1:]

    def chain() -> WideChain:
        return WideChain(shape, dtype)

    c = chain()
    found = [
        c.on("MUL", c.image()).on("ADD", c.image(), fused_activation_function="RELU6").on("SUB", c.image(), first=True),
        chain().on("MUL", wide(channels, dtype), scale=0.0001).on("ADD", c.constant(shape[-1])).on("RELU6"),
        chain().on("SQUARED_DIFFERENCE", c.image(0.0003)).on("MAXIMUM", c.constant()).on("MINIMUM", c.image()),
        chain().on("ADD", wide(shape, dtype, 0.01), scale=0.0002).on("SUB", c.constant(*shape)).on("MUL", c.constant()),
        chain().on("MUL", wide((), dtype)).on("SQUARED_DIFFERENCE", wide(channels[1:], dtype), scale=0.004),
    ]
    if dtype == "float32":
        found.append(chain().on("RELU").on("DIV", c.image()).on("PRELU", c.constant(shape[-1])))
        for kind in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
            x = chain()
            first = x.last
            x.on(kind, c.image())
            if kind != "LESS":
                x.on("SELECT_V2", first, c.image())
            found.append(x)
    return [each.loop() for each in found]


#: fours and rests of channels and of rows, rows of one pixel, one channel, other ranks
SHAPES = ((1, 3, 4, 8), (1, 2, 5, 13), (1, 4, 1, 3), (1, 2, 6, 1), (2, 3, 2, 4), (3, 7))


@pytest.mark.parametrize("target", TARGETS)
def test_loops_alone(target: str, tmp_path: Path) -> None:
    core, rng = target_or_skip(target), np.random.default_rng(1)
    cases = [
        case
        for shape in SHAPES
        for op in loops(shape)
        for case in cases_of(op, Context(core, kernels="tinyfuse"), [_values(rng, t) for t in op.activations])
    ]
    wanted = {"tinyfuse_fused_loop_s8"} | ({"tinyfuse_fused_loop_fours_s8"} if core.mve else set())
    assert {case.kernel.name for case in cases} == wanted
    assert_kernels_exact(cases, core, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_wide_loops_alone(target: str, tmp_path: Path) -> None:
    core, rng = target_or_skip(target), np.random.default_rng(1)
    ops = [op for shape in SHAPES[::2] for dtype in ("int16", "float32") for op in wide_loops(shape, dtype)]
    cases = [
        case
        for op in ops
        for case in cases_of(op, Context(core, kernels="tinyfuse"), [_values(rng, t) for t in op.activations])
    ]
    wanted = {"tinyfuse_fused_loop_s16", "tinyfuse_fused_loop_f32"} | (
        {"tinyfuse_fused_loop_fours_s16"} if core.mve else set()
    )
    assert {case.kernel.name for case in cases} == wanted
    assert_kernels_exact(cases, core, tmp_path)


def _values(rng: np.random.Generator, t: Tensor) -> np.ndarray:
    """Input values: the whole range of integers, or floats of which a few are equal."""
    if t.dtype in ("int8", "int16"):
        return rng.integers(*((-128, 128) if t.dtype == "int8" else (-32768, 32768)), t.shape).astype(t.dtype)
    if t.dtype == "float32":
        special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.0])
        drawn = rng.normal(0, 4, t.shape).astype(np.float32)
        return np.where(rng.random(t.shape) < 0.2, rng.choice(special, t.shape), drawn).astype(np.float32)
    return rng.random(t.shape) < 0.5


def has_loop(plan) -> bool:
    return any(op.kind == "FUSED_LOOP" for op in plan.graph.ops)


@settings(max_examples=4, **_SETTINGS)
@given(fused_loop_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


#: of compiling a network
WAYS = ({}, {"optimize": "ram"}, {"step": True}, {"optimize": "speed"}, {"fusion": "basic"})


def exact_modules(target: str, networks: list[bytes], first: int = 0) -> int:
    """Checks all networks with one set of options in one program; returns how many of them have fused loops."""
    plans = [plan_of(data, target, **WAYS[(first + n) % len(WAYS)]) for n, data in enumerate(networks)]
    assert_all_exact(plans, runs=3)
    return sum(map(has_loop, plans))


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_modules_are_exact(target: str, pytestconfig: pytest.Config) -> None:
    target_or_skip(target)
    networks = share_of_core(target, [data for data, _ in drawn(fused_loop_networks(), 10)], pytestconfig)
    assert exact_modules(target, networks) >= len(networks) // 3


@pytest.mark.parametrize("target", ["host", "cortex-m55"])
def test_loops_in_pieces(target: str) -> None:
    """Loops over channels by pixels, others by elements; with Helium less than four are left to the other loop."""
    target_or_skip(target)
    plans = [plan_of(data, target, step=True) for data, _ in drawn(fused_loop_networks(), 12)]
    divided = [in_least_pieces(plan) for plan in plans if has_loop(plan) and plan.graph.inputs[0].elements > 40]
    assert {stage.op.kind for plan in divided for group in plan.groups for stage in group.stages if stage.pieces > 1}
    assert_all_exact(divided, runs=2)


def test_names_of_tensors_that_rewrites_made() -> None:
    """Such tensors are named by their number in the function; these names must differ from the loop's variables."""
    s = Sketch(1)
    x = s.value((1, 1, 24, 4))
    y = s.conv(x, 4, (1, 3))
    y = s.add(s.add(s.conv(y, 4, (1, 3)), y, kind="MUL"), y)
    plan = plan_of(s.build([x], [s.conv(y, 4, (3, 3))]), optimize="ram")
    (loop,) = (op for op in plan.graph.ops if op.kind == "FUSED_LOOP")
    assert loop.output.index < 0
    assert_all_exact([plan])


@pytest.mark.parametrize("fusion", ["basic", "rows"])
def test_loops_behind_a_split_of_which_nobody_reads_the_first_part(fusion: str) -> None:
    """A find of a campaign, where it ended in a traceback."""
    s = Sketch(1)
    x = s.value((1, 3, 2, 3))
    _, y, z = s.split(x, 1, 3)
    plan = plan_of(s.build([x], [s.add(s.add(y, z), z, kind="MUL")]), "cortex-m0plus", fusion=fusion, optimize="speed")
    assert_all_exact([plan], runs=3, on_host=True)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(fused_loop_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("target", "count"), [("host", 2000), ("cortex-m0plus", 40), ("cortex-m4", 100), ("cortex-m55", 100)]
)
def test_many_modules_are_exact(target: str, count: int) -> None:
    networks = [data for data, _ in drawn(fused_loop_networks(), count)]
    chunks = (exact_modules(target, networks[n : n + 20], n // 20) for n in range(0, count, 20))
    assert sum(chunks) > count / 4
