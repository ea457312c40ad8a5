"""Cheap operators are computed again for later readers if that needs less RAM."""

from __future__ import annotations

import pytest
from attention_networks import Blocks
from executors import assert_exact, plan_of
from random_graphs import Sketch
from set_limits import set_limits
from test_rewrites import assert_same, graph_of, kinds

import tinyfuse
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.recompute import recomputable, recompute


def far_readers(outputs: bool = False) -> bytes:
    """A requantized image that is read at once and, together with the image, much later."""
    sketch = Sketch(1)
    x = sketch.value((1, 40, 8, 8))
    b = sketch.requantize(x)
    y = sketch.conv(b, 8, (1, 1))
    for _ in range(3):
        y = sketch.depthwise(y, (5, 3))
    z = sketch.add(sketch.add(y, b), x)
    last = sketch.pool(z, "AVERAGE_POOL_2D", (40, 8), (1, 1))
    return sketch.build([x], [last, b] if outputs else [last])


def test_each_later_reader_gets_a_copy() -> None:
    graph = graph_of(far_readers())
    (op,) = recomputable(graph)
    after = recompute(graph, op)
    assert kinds(after).count("QUANTIZE") == 2 and kinds(graph).count("QUANTIZE") == 1
    assert after.ops[kinds(after).index("ADD") - 1].kind == "QUANTIZE"
    assert [saving.rewrite for saving in after.savings] == ["recompute"]
    assert_same(graph, after)


def test_what_the_caller_wants_or_takes_work_is_kept() -> None:
    assert not recomputable(graph_of(far_readers(outputs=True)))
    sketch = Sketch(2)
    x = sketch.value((1, 8, 4, 4))
    y = sketch.conv(x, 4, (3, 3))
    assert not recomputable(graph_of(sketch.build([x], [sketch.add(y, sketch.depthwise(y, (3, 3)))])))


@pytest.mark.slow
def test_it_is_done_where_it_takes_less_ram(monkeypatch) -> None:
    data = far_readers()
    plan = plan_of(data, optimize="ram", feed_rows=True)
    assert "recompute" in [saving.rewrite for saving in plan.graph.savings]
    assert_exact(plan)
    assert kinds(plan_of(data, optimize="balanced").graph).count("TABLE") == 1
    set_limits(monkeypatch, RECOMPUTED=0)
    assert plan.arena_bytes < plan_of(data, optimize="ram", feed_rows=True).arena_bytes


def test_a_normalization_runs_again_as_a_whole() -> None:
    """Queries, keys and values read it; its own operators read one tensor, which the residual reads too."""
    b = Blocks(3)
    x = b.sketch.value((1, 12, 8))
    data = b.sketch.build([x], [b.sketch.add(x, b.attention(b.normalized(x), 2))])
    graph = rewrite(graph_of(data), "rows", "tinyfuse")
    op = recomputable(graph)[0]
    after = recompute(graph, op)
    assert kinds(graph).count("RSQRT") + kinds(graph).count("TABLE") == 1
    assert kinds(after).count("SQUARED_DIFFERENCE") == kinds(after).count("TABLE") == 3
    assert_same(graph, after)


@pytest.mark.slow
def test_what_runs_again_leaves_rows_from_outside_their_group() -> None:
    """A requantized value that runs again beside a CONCATENATION would keep the fed rows from having a group."""
    sketch = Sketch(1)
    x = sketch.value((1, 5, 4, 7))
    pooled = sketch.pool(x, "MAX_POOL_2D", (3, 3), (1, 1), "SAME")
    y = sketch.depthwise(sketch.depthwise(pooled, (3, 3)), (3, 3))
    z = sketch.pool(y, "MAX_POOL_2D", (2, 2), (1, 1), "SAME")
    others = [sketch.transpose_conv(z, 6, (3, 3), (2, 1)), sketch.concatenate([z, sketch.requantize_to(pooled, z)], 3)]
    last = sketch.depthwise(sketch.add(y, x), (3, 3))
    taller = sketch.concatenate([last, sketch.requantize_to(pooled, last)], 1)
    data = sketch.build([x], [*others, sketch.transpose_conv(taller, 4, (3, 3), (1, 1))])
    assert_exact(plan_of(data, optimize="ram", feed_rows=True), runs=3)


@pytest.mark.slow
def test_attention_keeps_keys_values_and_what_it_reads() -> None:
    tokens, width = 16, 16
    b = Blocks(4)
    x = b.sketch.value((1, tokens, width))
    data = b.sketch.build([x], [b.sketch.add(x, b.attention(b.normalized(x), 4))])
    small, plain = (plan_of(data, "cortex-m4", kernels="tinyfuse", optimize=o) for o in ("ram", "balanced"))
    assert small.arena_bytes < 3.6 * tokens * width < 4 * tokens * width < plain.arena_bytes
    assert_exact(small, runs=3, on_host=True)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_what_is_computed_again_has_a_price_in_instructions(target: str) -> None:
    """Tiles within 1.3 times the multiply-accumulates took 3.6 times the instructions on Helium."""
    sketch = Sketch(7)
    x = sketch.value((1, 16, 16, 3))
    y = sketch.conv(x, 16, (3, 3), activation="RELU")
    z = sketch.conv(sketch.conv(y, 16, (3, 3), activation="RELU"), 16, (3, 3))
    y = sketch.add(y, z)
    data = sketch.build([x], [sketch.pool(y, "AVERAGE_POOL_2D", y.shape[1:3], (1, 1))])
    once, again, often = (tinyfuse.compile(data, target, optimize="ram", recompute=limit) for limit in (1, 1.3, 8))
    assert again.predicted_instructions <= 1.3 * once.predicted_instructions
    assert often.plan.arena_bytes < again.plan.arena_bytes <= once.plan.arena_bytes
