"""Convolutions whose outputs are looked up as they are stored: their kernels alone, in networks, and when."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import normalized_networks
import numpy as np
import pytest
from cases.common import operator, tensor
from contexts import context_of
from conv_cases import Shape, make_op, random_input
from executors import assert_all_exact, assert_exact, plan_of
from op_harness import assert_exact as assert_kernels_exact
from op_harness import cases_of
from random_graphs import Sketch
from table_chains import tabled_networks
from test_op_kernels import drawn, target_or_skip

from tinyfuse.explain.explain_json import explain_json
from tinyfuse.ir import Op, Quant
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_luts.dsp import matmul_of
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.signed_rounding import SHIFT, signed_rounding
from tinyfuse.ops.core.convolution import channel_multipliers
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.layers.looked_up import looked_up
from tinyfuse.schedule.variants import fold_lookups
from tinyfuse.targets import load_target

#: blocks of three pixels, two and one; odd channels, one alone; windows of words, of few channels, over padding; rows
#: of many inputs
SHAPES = (
    Shape("CONV_2D", 3, 7, 8, 6), Shape("CONV_2D", 2, 5, 4, 7, activation="RELU"), Shape("CONV_2D", 2, 4, 12, 1),
    Shape("CONV_2D", 2, 3, 36, 5, per_channel=False), Shape("CONV_2D", 4, 7, 8, 6, (3, 3), activation="RELU6"),
    Shape("CONV_2D", 5, 8, 3, 4, (3, 3), (2, 2)), Shape("CONV_2D", 4, 6, 5, 3, (2, 3), dilation=(1, 2)),
    Shape("CONV_2D", 3, 5, 1, 9, (3, 2)),
    Shape("DEPTHWISE_CONV_2D", 5, 6, 10, 10, (3, 3)),
    Shape("DEPTHWISE_CONV_2D", 4, 9, 4, 4, (3, 3), (2, 2), activation="RELU"),
    Shape("DEPTHWISE_CONV_2D", 5, 4, 7, 7, (3, 3), (1, 2), padding="VALID", activation="RELU6"),
    Shape("CONV_2D", 3, 7, 64, 4), Shape("CONV_2D", 2, 5, 80, 2), Shape("CONV_2D", 1, 9, 36, 6, activation="RELU"),
    Shape("CONV_2D", 3, 7, 9, 8), Shape("CONV_2D", 2, 3, 16, 4), Shape("DEPTHWISE_CONV_2D", 3, 5, 5, 5, (3, 3)),
)  # fmt: skip


#: zero points of some of them, about zero, as a converter gives them where no RELU follows at once
OF_BOTH_SIGNS = {0: 7, 4: 5, 5: -20, 8: 3, 9: -9, 10: -1, 14: 6, 15: 0, 16: -1}
#: of multipliers that are too large for lines of one shift, and of both signs for any line
OF_LARGE_MULTIPLIERS = (10, 16)


def layers() -> list[Op]:
    """Each with random tables, and with those of a clamp behind a gain, of which the lowest half is one result."""
    rng, found = np.random.default_rng(3), []
    for number, shape in enumerate(SHAPES):
        layer = make_op(shape, rng, extreme=number == 1)
        if number in OF_BOTH_SIGNS:
            scale = layer.output.quant.scale[0] / (16 if number in OF_LARGE_MULTIPLIERS else 1)
            quant = Quant((scale,), (OF_BOTH_SIGNS[number],))
            layer = replace(layer, outputs=(replace(layer.output, quant=quant),))
        elif number % 4 == 3:  # which no lane holds
            layer.operand(1).values[..., 0] = -128
        channels = layer.output.shape[-1]
        gains = rng.uniform(0.5, 3, (channels, 1))
        for data in (
            rng.integers(-128, 128, 256), rng.integers(-128, 128, (channels, 256)),
            np.roll(np.clip(np.rint(np.arange(-128, 128) * gains), -10, 100), 128, axis=-1),
        ):  # fmt: skip
            last = Op("TABLE", (layer.output,), (tensor(layer.output.shape),), Table(()), 1)
            together = looked_up(layer, last, data.astype(np.int8))
            found.append(operator(together.kind, together.inputs, together.output, together.attributes))
    return found


@pytest.mark.parametrize(("optimize", "flags"), [("balanced", ""), ("ram", "-O0")])
def test_kernels(optimize: str, flags: str, tmp_path: Path) -> None:
    core, rng = target_or_skip("cortex-m4"), np.random.default_rng(1)
    context = context_of(core, kernels="tinyfuse", optimize=optimize)
    cases = [case for op in layers() for case in cases_of(op, context, [random_input(op, rng)])]
    reached = {(case.kernel.name, case.kernel.form(case.op, context)) for case in cases}
    kernels, forms = (
        ("pointwise_lut", "conv_packed_lut_row"),
        ("SINGLE_ROUNDING", "LANES", "WIDE", "SIGNED_ROUNDING"),
    )
    wanted = {(f"tinyfuse_{kernel}_s8", f"TINYFUSE_{form}") for kernel in kernels for form in forms}
    assert not wanted - reached, wanted - reached
    assert_kernels_exact(cases, core, tmp_path, flags, optimize=optimize)


def test_signed_rounding_step_where_the_interpreter_does() -> None:
    """Tests every accumulator that the weights can reach."""
    found = 0
    for op in layers():
        layer = op.attributes.layer
        tables = np.roll(op.attributes.table.operand(1).values, 128, axis=-1)
        line = signed_rounding(layer, tables) if tables.ndim == 1 else None
        if line is None:
            continue
        found += 1
        facts = layer_facts(layer)
        least, most = facts.least, facts.most
        multipliers, shifts = channel_multipliers(layer)
        more = line.bias - 256 * facts.bias
        for channel in range(len(least)):
            accumulators = np.arange(least[channel], most[channel] + 1)
            scaled = multiply_by_quantized_multiplier(accumulators, multipliers[channel], shifts[channel])
            stored = np.clip(scaled + layer.output.zero_point, -128, 127)
            sums = 256 * accumulators + more[channel]
            if not line.weights[channel].any():
                sums = np.full_like(sums, line.bias[channel])
            assert np.abs(sums).max() < 2**31
            high = (sums * line.multiplier[channel] >> 32) + np.where(sums < 0, 0, line.bend[channel])
            levels = np.clip(high >> SHIFT, -256, 255) + 256
            np.testing.assert_array_equal(line.table[levels], tables[stored + 128])
    assert found > 3


def normalized(kernel: tuple[int, int], more: str = "") -> bytes:
    """A convolution, MUL and ADD with constants a channel, and RELU; or another function."""
    s = Sketch(7)
    x = s.value((1, 29, 31, 12), 0.05, -3)  # enough pixels to pay for the flash of 14 channels' tables
    y = s.conv(x, 14, kernel)
    if more:
        return s.build([x], [s.unary(y, more)])
    y = s.scale_channels(s.scale_channels(y, "MUL"), "ADD")
    return s.build([x], [s.relu(y, "RELU", same=False)])


def looks(plan) -> list[tuple[str, ...]]:
    """What each such layer of a plan stands for."""
    return [op.attributes.kinds for op in plan.graph.ops if op.kind == "LOOKED_UP"]


def test_networks() -> None:
    """Runs networks whole and in steps in one program, C twins in another, and each kernel once with fed rows."""
    target = "cortex-m4"
    target_or_skip(target)
    ways: tuple[dict[str, Any], ...] = ({}, {"step": True}, {"optimize": "speed", "weights": "packed"})
    plans, fed = [], {}
    for kernel, more in product([(1, 1), (3, 3)], ["", "LOGISTIC"]):
        data = normalized(kernel, more)
        of_layer = [plan_of(data, target, kernels="tinyfuse", **way) for way in ways]
        fed[kernel] = plan_of(data, target, kernels="tinyfuse", feed_rows=True)
        kinds = (more,) if more else ("MUL", "ADD", "RELU")
        assert all(looks(plan) == [("CONV_2D", *kinds)] for plan in (*of_layer, fed[kernel]))
        plans += of_layer
    assert_all_exact(plans, runs=3)
    assert_all_exact(plans[:: len(ways)], runs=3, on_host=True)
    for plan in fed.values():
        assert_exact(plan, runs=2)


def wherever_it_may(monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """Random networks whose layers look up whether it pays or not, exact on the core; how many do."""
    monkeypatch.setattr(fold_lookups, "_instructions", lambda context, *ops: len(ops))
    networks = [data for data, _ in drawn(tabled_networks(), count)]
    ways: tuple[dict[str, Any], ...] = ({}, {"step": True}, {"optimize": "speed", "weights": "packed"})
    plans = [plan_of(data, "cortex-m4", kernels="tinyfuse", **ways[n % 3]) for n, data in enumerate(networks)]
    for start in range(0, count, 20):
        assert_all_exact(plans[start : start + 20], runs=3)
    return sum(map(bool, map(looks, plans)))


def test_random_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    target_or_skip("cortex-m4")
    assert wherever_it_may(monkeypatch, 12) > 0


@pytest.mark.campaign
def test_many_random_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    target_or_skip("cortex-m4")
    assert wherever_it_may(monkeypatch, 200) >= 10


@pytest.mark.campaign
@pytest.mark.parametrize("on_host", [False, True])
def test_many_normalized_layers(on_host: bool) -> None:
    """Batch normalizations as a converter leaves them, after layers of every depth that kernels distinguish."""
    target_or_skip("cortex-m4")
    rng, ways = np.random.default_rng(4), ({}, {"step": True}, {"optimize": "speed"}, {"weights": "packed"})
    plans = []
    for n in range(100):
        channels, pixels = 2 * int(rng.integers(1, 36)), int(rng.integers(3, 12))
        kind = rng.choice(["1x1", "1x1", "3x3", "depthwise", "dense"])
        data = normalized_networks.layer(kind, channels, True, pixels, seed=n)
        plans.append(plan_of(data, "cortex-m4", kernels="tinyfuse", **ways[n % 4]))
    for start in range(0, len(plans), 20):
        assert_all_exact(plans[start : start + 20], runs=3, on_host=on_host)
    assert sum(map(bool, map(looks, plans))) > 20


def test_who_takes_a_pass_over_the_row() -> None:
    """The least RAM, whose layers may be tiled; other cores; CMSIS-NN's kernels; a layer that somebody else reads, or
    of one column."""
    data = normalized((1, 1))
    for options in ({"optimize": "ram"}, {"kernels": "cmsis-nn"}, {"fusion": "none"}, {"weights": "unpacked"}):
        assert not looks(plan_of(data, "cortex-m4", **options)), options
    assert not any(looks(plan_of(data, target)) for target in ("host", "cortex-m0plus", "cortex-m55"))
    s = Sketch(7)
    x = s.value((1, 9, 11, 12))
    y = s.conv(x, 14, (1, 1))
    assert not looks(plan_of(s.build([x], [y, s.unary(y, "LOGISTIC")]), "cortex-m4"))
    s = Sketch(7)
    x = s.value((1, 40, 1, 12))
    assert not looks(plan_of(s.build([x], [s.unary(s.conv(x, 14, (1, 1)), "LOGISTIC")]), "cortex-m4"))


def test_tables_leave_more_layers_a_line() -> None:
    """Outputs on both sides of zero rarely have one; a RELU behind them makes one result of half of them."""
    context = Context(load_target("cortex-m4"), kernels="tinyfuse")
    plan = plan_of(normalized((1, 1)), "cortex-m4")
    (op,) = (op for op in plan.graph.ops if op.kind == "LOOKED_UP")
    assert matmul_of(op, context).form == "TINYFUSE_SINGLE_ROUNDING"


def test_explain_names_the_layer() -> None:
    (table,) = explain_json(plan_of(normalized((1, 1)), "cortex-m4"))["tables"]
    assert (table["kinds"], table["channels"], table["in_layer"]) == (["MUL", "ADD", "RELU"], 14, True)
