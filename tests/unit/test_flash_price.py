"""The price of a byte of flash (schedule/variants/flash_price.py) decides about per-channel tables; --max-flash raises it."""

from __future__ import annotations

import re

import pytest
from executors import assert_exact, plan_of
from random_graphs import Sketch

from tinyfuse.api.writing import check_flash
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.errors import DoesNotFit
from tinyfuse.plan import Plan


def normalized_network(size: int) -> bytes:
    """A .tflite of two int8 convolutions, each followed by a factor and a term for each channel."""
    s = Sketch(3)
    image = s.value((1, size, size, 3))
    x = image
    for _ in range(2):
        x = s.conv(x, 32, (3, 3))
        x = s.scale_channels(s.scale_channels(x, "MUL"), "ADD")
    return s.build([image], [s.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))])


def tables(plan: Plan) -> int:
    """Number of operators with per-channel lookup tables."""
    return sum(op.kind in ("CHANNEL_TABLES", "LOOKED_UP") for op in plan.graph.ops)


@pytest.mark.parametrize("optimize", ("balanced", "ram"))
@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m55"))
def test_tables_of_channels_that_save_few_instructions_a_byte_are_not_made(target: str, optimize: str) -> None:
    plan = plan_of(normalized_network(12), target, optimize=optimize)
    assert tables(plan) == 0 and plan.weight_bytes < 2 * 32 * 256
    assert_exact(plan_of(normalized_network(12), optimize=optimize), runs=2)


def test_they_are_where_flash_is_free_or_a_byte_saves_enough() -> None:
    assert tables(plan_of(normalized_network(12), "cortex-m4", optimize="speed", weights="auto")) == 2
    # some hundred instructions of a product of 64 bits for each element, 32 times as many elements as tables have bytes
    assert tables(plan_of(normalized_network(48), "cortex-m0plus")) == 2


@pytest.mark.parametrize(
    ("target", "size", "options"),
    [("cortex-m4", 12, {"optimize": "speed", "weights": "auto"}), ("cortex-m0plus", 48, {"weights": "packed"})],
)
def test_a_little_flash_takes_them_back(target: str, size: int, options: dict[str, str]) -> None:
    data = normalized_network(size)
    wanted, packed = (plan_of(data, target, **given) for given in (options, options | {"weights": "packed"}))
    limit = packed.weight_bytes + estimated_code_bytes(packed) - 12_000
    plan = plan_of(data, target, max_flash=limit, **options)
    assert (tables(wanted), tables(plan)) == (2, 0)
    check_flash(plan, None)


@pytest.mark.parametrize("options", [{}, {"optimize": "speed", "weights": "auto"}, {"weights": "compressed"}])
def test_what_does_not_fit_says_what_would(options: dict[str, str]) -> None:
    data = normalized_network(12)
    with pytest.raises(DoesNotFit) as told:
        check_flash(plan_of(data, "cortex-m4", max_flash=1000, **options), None)
    (least,) = re.findall(r"--max-flash (\d+) would fit", str(told.value))
    check_flash(plan_of(data, "cortex-m4", max_flash=int(least), **options), None)
    with pytest.raises(DoesNotFit):
        check_flash(plan_of(data, "cortex-m4", max_flash=int(least) - 1, **options), None)
