"""Concatenations and slices as views: when they are taken, what they save, and that they are exact."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_parts import plan_groups, prepare
from random_graphs import Sketch, Value
from tflite_builder import ModelBuilder

from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Tensor
from tinyfuse.options import FUSION, OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.places import Places
from tinyfuse.report.report_json import report_json
from tinyfuse.report.text import report_text
from tinyfuse.rewrite.views import every_view, views
from tinyfuse.schedule.groups.partition import partition

# --- models ----------------------------------------------------------------------------------


def two_towers(seed: int = 1) -> bytes:
    """Two inputs with a few layers each, concatenated for the last layer."""
    s = Sketch(seed)
    one, other = s.value((1, 24)), s.value((1, 30))
    left = s.fully_connected(s.fully_connected(one, 20, "RELU"), 13)
    right = s.requantize_to(s.fully_connected(s.fully_connected(other, 20, "RELU"), 16), left)
    return s.build([one, other], [s.softmax(s.fully_connected(s.concatenate([left, right], 1), 6))])


def heads(seed: int = 2) -> bytes:
    """A detector: boxes from two feature maps, reshaped and concatenated to one output."""
    s = Sketch(seed)
    image = s.value((1, 12, 12, 2))
    near = s.conv(image, 6, (3, 3), (2, 2), activation="RELU")
    far = s.conv(near, 8, (3, 3), (2, 2), activation="RELU")
    boxes = [s.conv(near, 8, (3, 3)), s.conv(far, 8, (1, 1))]
    boxes[1] = s.requantize_to(boxes[1], boxes[0])
    flat = [s.reshape(b, (1, b.shape[1] * b.shape[2] * 2, 4)) for b in boxes]
    return s.build([image], [s.concatenate(flat, 1)])


def attention(seed: int = 3) -> bytes:
    """Query, key and value of three tokens from one layer, split; the results of the heads are concatenated."""
    s = Sketch(seed)
    x = s.value((6, 4, 8))
    parts = s.split(s.dense(x, 8), 0, 6)
    mixed = [s.matmul(s.softmax(s.matmul(q, k, adj_y=True)), v) for q, k, v in (parts[:3], parts[3:])]
    mixed[1] = s.requantize_to(mixed[1], mixed[0])
    return s.build([x], [s.dense(s.concatenate(mixed, 0), 5)])


def tall(seed: int = 4) -> bytes:
    """Two images, made by rows, one above the other; then both halves of what is computed from them."""
    s = Sketch(seed)
    image = s.value((1, 10, 6, 3))
    upper = s.conv(s.depthwise(image, (3, 3)), 5, (1, 1))
    lower = s.requantize_to(s.conv(s.depthwise(image, (3, 3), (2, 1)), 5, (1, 1)), upper)
    x = s.conv(s.concatenate([upper, lower], 1), 4, (3, 3))
    top = s.slice(x, [0, 0, 0, 0], [1, 7, 6, 4])
    rest = s.slice(x, [0, 7, 0, 0], [1, 8, 6, 4])
    return s.build([image], [s.conv(top, 2, (3, 3)), s.conv(rest, 3, (1, 1))])


MODELS = {f.__name__: f for f in (two_towers, heads, attention, tall)}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_references_equal_tflm(make) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(make(), runs=20)


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_models_with_views_are_exact(target: str) -> None:
    if target != "host" and not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    plans = [
        plan_of(make(), target, name=f"net_{fusion}_{n}", optimize="speed", kernels="tinyfuse", fusion=fusion)
        for fusion in ("basic", "rows") for n, make in enumerate(MODELS.values())
    ]  # fmt: skip
    # groups of rows may come out faster without
    assert all(viewed(plan.graph) for plan in plans if plan.options.fusion == "basic")
    assert_all_exact(plans)


# --- conditions ------------------------------------------------------------------------------


def graph_of(sketch: Sketch, inputs: list[Value], outputs: list[Value]) -> Graph:
    return read_tflite("model.tflite", sketch.build(inputs, outputs))


def viewed(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops if op.view]


def offsets(graph: Graph) -> dict[str, tuple[str, int]]:
    """Maps each tensor that lies in another one to (root tensor, offset)."""
    places = Places(op for op in graph.ops if op.view or op.kind == "RESHAPE")
    found = {t: places.of(t) for op in graph.ops for t in (*op.activations, *op.outputs)}
    return {t.name: (place.root.name, place.offset) for t, place in found.items() if place.root is not t}


def test_a_concatenation_of_whole_pieces_is_a_view() -> None:
    s = Sketch(1)
    x = s.value((1, 4, 3, 2))
    a, b = s.relu(x), s.relu(x, "RELU6")
    graph = every_view(graph_of(s, [x], [s.concatenate([a, b], 1)]))
    assert offsets(graph) == {"v2": ("v4", 0), "v3": ("v4", 24)}


@pytest.mark.parametrize(("axis", "shape"), [(3, (1, 2, 1, 4)), (2, (1, 2, 3, 4)), (0, (2, 2, 2, 2))])
def test_what_lies_in_pieces_is_copied(axis: int, shape) -> None:
    """Parts of the first dimension of a batch are contiguous and need no copy."""
    s = Sketch(2)
    x = s.value(shape)
    joined = s.concatenate([s.relu(x), s.relu(x, "RELU6")], axis)
    assert bool(viewed(every_view(graph_of(s, [x], [joined])))) == (axis == 0)


def _twice(s: Sketch, x: Value) -> list[Value]:
    y = s.relu(x)
    return [s.concatenate([y, y], 1)]


def _twice_renamed(s: Sketch, x: Value) -> list[Value]:
    y = s.relu(x)
    return [s.concatenate([y, s.reshape(y, y.shape)], 1)]


def _with_a_constant(s: Sketch, x: Value) -> list[Value]:
    y, data = s.relu(x), s.rng.integers(-128, 128, x.shape).astype("int8")
    fixed = Value(
        s.model.tensor("fixed", x.shape, "int8", y.scale, y.zero_point, data=data), x.shape, y.scale, y.zero_point
    )
    return [s.concatenate([y, fixed], 1)]


def _with_a_slice(s: Sketch, x: Value) -> list[Value]:
    """A slice that is a view: it lies in its source."""
    y = s.relu(x)
    return [s.concatenate([s.relu(x, "RELU6"), s.slice(y, [0, 2], [1, 5])], 1), s.unary(y, "ABS")]


def _with_its_own_slice(s: Sketch, x: Value) -> list[Value]:
    y = s.relu(x)
    return [s.concatenate([s.slice(y, [0, 2], [1, 5]), y], 1)]


def _with_what_is_joined_already(s: Sketch, x: Value) -> list[Value]:
    y = s.relu(x)
    return [s.concatenate([y, s.relu(x, "RELU6")], 1), s.concatenate([s.requantize_to(s.unary(x, "TANH"), y), y], 1)]


@pytest.mark.parametrize(
    ("join", "copied"),
    [(_twice, 8), (_twice_renamed, 8), (_with_a_constant, 8), (_with_a_slice, 5), (_with_its_own_slice, 5),
     (_with_what_is_joined_already, 8)],
)  # fmt: skip
def test_a_part_that_has_another_place_is_copied_alone(join: Callable, copied: int) -> None:
    s = Sketch(3)
    x = s.value((1, 8), zero_point=5)
    plan = plan_of(s.build([x], join(s, x)), optimize="speed")
    copies = [op for op in plan.graph.ops if op.kind == "CONCATENATION" and not op.view]
    assert [op.output.bytes for op in copies] == [copied] and "CONCATENATION" in viewed(plan.graph)
    wholes = sum(op.output.bytes for op in plan.graph.ops if op.view for _ in op.outputs)
    assert plan.graph.savings[-1].copied_bytes == wholes - copied
    assert_exact(plan)


def test_a_concatenation_of_what_can_not_move_is_copied_at_once() -> None:
    s = Sketch(4)
    x = s.value((1, 8))
    y = s.relu(x)
    parts = [s.slice(y, [0, 3], [1, 5]), s.slice(y, [0, 0], [1, 3])]
    plan = plan_of(s.build([x], [s.concatenate(parts, 1)]), optimize="speed")
    assert viewed(plan.graph) == ["SLICE", "SLICE"]
    assert [len(op.inputs) for op in plan.graph.ops if op.kind == "CONCATENATION"] == [2]
    assert_exact(plan)


def test_parts_of_parts() -> None:
    """A concatenation of concatenations, a slice of a slice, a RESHAPE between."""
    s = Sketch(5)
    x = s.value((1, 8))
    a, b, c = s.relu(x), s.relu(x, "RELU6"), s.relu(x, same=True)
    inner = s.reshape(s.concatenate([a, b], 1), (1, 4, 4))
    outer = s.concatenate([s.reshape(c, (1, 2, 4)), inner], 1)
    cut = s.slice(s.slice(outer, [0, 1, 0], [1, 4, 4]), [0, 2, 0], [1, 1, 4])
    data = s.build([x], [s.unary(cut, "ABS"), outer])
    graph = every_view(read_tflite("model.tflite", data))
    assert viewed(graph) == ["CONCATENATION", "CONCATENATION", "SLICE", "SLICE"]
    assert {name: at for name, (_, at) in offsets(graph).items()} == {
        "v2": 8, "v3": 16, "v4": 0, "v5": 8, "v6": 8, "v8": 0, "v11": 4, "v14": 12,
    }  # fmt: skip
    assert_exact(plan_of(data, optimize="speed"))


def test_what_the_caller_brings_and_takes_may_be_parts() -> None:
    s = Sketch(6)
    x, y = s.value((1, 6), 0.1, 3), s.value((1, 10), 0.1, 3)
    both = s.concatenate([x, y], 1)
    first, second = s.split(both, 1, 2)
    data = s.build([x, y], [s.relu(first), second, both])
    plan = plan_of(data, optimize="speed")
    assert viewed(plan.graph) == ["CONCATENATION", "SPLIT"]
    place = {t.name: plan.offset(t) for t in (*plan.graph.inputs, *plan.graph.outputs)}
    assert place["v2"] == place["v1"] + 6 and place["v5"] == place["v1"] + 8
    assert_exact(plan)


def test_a_model_of_views_alone_runs_nothing() -> None:
    s = Sketch(7)
    x, y = s.value((1, 6), 0.1, 3), s.value((1, 10), 0.1, 3)
    plan = plan_of(s.build([x, y], [s.concatenate([x, y], 1)]), optimize="speed")
    assert not plan.groups and plan.arena_bytes == 16
    assert_exact(plan)


def test_a_source_is_not_overwritten_while_a_slice_is_read() -> None:
    """The RELU could run in place over `y`, but half of it is read after."""
    s = Sketch(8)
    x = s.value((1, 16))
    y = s.fully_connected(x, 16)
    half = s.slice(y, [0, 8], [1, 8])
    late = s.relu(y, same=False)
    data = s.build([x], [s.fully_connected(late, 5), s.fully_connected(half, 4)])
    plan = plan_of(data, optimize="speed")
    assert viewed(plan.graph) == ["SLICE"]
    assert_exact(plan)


def test_kernels_run_in_place_over_the_parts_that_nobody_reads_again() -> None:
    s = Sketch(9)
    x = s.value((1, 32))
    y = s.fully_connected(x, 64)
    first, second = s.split(y, 1, 2)
    data = s.build([x], [s.relu(s.add(first, second), same=False)])
    plan = plan_of(data, optimize="speed", kernels="tinyfuse")
    assert viewed(plan.graph) == ["SPLIT"]
    assert plan.arena_bytes == 32 + 64
    assert_exact(plan)


def test_parts_are_aligned_to_their_elements() -> None:
    """After three elements of a larger dtype, under sanitizers."""
    plans = []
    for dtype, scale, zero_point in (("float32", None, None), ("int16", 0.001, 0)):
        model = ModelBuilder()
        x, cut = (model.tensor(n, s, dtype, scale, zero_point) for n, s in (("x", (1, 7)), ("cut", (1, 4))))
        begin, size = (
            model.tensor(n, (2,), "int32", data=np.array(d, np.int32)) for n, d in (("b", [0, 3]), ("s", [1, 4]))
        )
        y = model.tensor("y", (1, 4), "int8", 0.1, 3)
        model.op("SLICE", [x, begin, size], [cut])
        model.op("QUANTIZE", [cut], [y])
        plans.append(plan_of(model.build([x], [y]), name=f"net{dtype}", optimize="speed"))
        assert viewed(plans[-1].graph) == ["SLICE"]
    assert_all_exact(plans)


def test_a_step_through_a_tensor_and_a_way_backwards_are_copied() -> None:
    s = Sketch(10)
    x = s.value((1, 8))
    y = s.relu(x)
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    parts = [
        s.moved("STRIDED_SLICE", y, (1, 4), [0, 0], [1, 8], [1, 2], **masks),
        s.moved("STRIDED_SLICE", y, (1, 8), [0, 7], [1, -9], [1, -1], **masks),
        s.moved("STRIDED_SLICE", y, (1, 3), [0, 4], [1, 7], [1, 1], **masks),
    ]
    graph = every_view(graph_of(s, [x], parts))
    assert [op.view for op in graph.ops if op.kind == "STRIDED_SLICE"] == [False, False, True]


# --- RAM -------------------------------------------------------------------------------------


def small_slice_of_a_large_tensor() -> bytes:
    """Reads sixteen of 2,000 values again, after a layer of 1,200."""
    s = Sketch(11)
    x = s.value((1, 8))
    large = s.fully_connected(x, 2000)
    small = s.slice(large, [0, 100], [1, 16])
    other = s.fully_connected(s.fully_connected(s.fully_connected(large, 8), 1200), 16)
    return s.build([x], [s.add(small, other)])


def test_a_view_that_would_take_more_ram_is_a_copy() -> None:
    data = small_slice_of_a_large_tensor()
    graph = read_tflite("model.tflite", data)
    assert viewed(every_view(graph)) == ["SLICE"] and not viewed(views(graph))
    fast, small = (plan_of(data, optimize=optimize) for optimize in ("speed", "ram"))
    assert viewed(fast.graph) and not viewed(small.graph)
    assert small.arena_bytes < fast.arena_bytes


def test_a_concatenation_in_place_saves_its_bytes() -> None:
    s = Sketch(12)
    x = s.value((1, 400), zero_point=5)
    data = s.build([x], [s.concatenate([s.relu(x), s.relu(x, "RELU6")], 1)])
    for fusion, arena in (("none", 1600), ("basic", 1200), ("rows", 1200)):
        assert plan_of(data, fusion=fusion, optimize="ram").arena_bytes == arena


@pytest.mark.parametrize("fusion", FUSION)
def test_fusion_none_copies(fusion: str) -> None:
    plan = plan_of(attention(), fusion=fusion, optimize="speed")
    assert bool(viewed(plan.graph)) == (fusion != "none")


def test_the_report_tells_what_is_not_copied() -> None:
    plan = plan_of(two_towers(), optimize="speed")
    data = report_json(plan, 0, None)
    (saved,) = (one for one in data["rewrites"] if one["pass"] == "every_view")
    assert (saved["what"], saved["copied_bytes_saved"]) == ("CONCATENATION", 29)
    left, right = data["views"]
    assert left["buffer"] == right["buffer"] and (left["offset"], right["offset"]) == (0, 13)
    assert "29  CONCATENATION" in report_text(plan, data)


# --- the checker -----------------------------------------------------------------------------


def parts_of(plan: Plan) -> list[Tensor]:
    """Views that groups find inside other tensors."""
    tensors = dict.fromkeys(t for group in plan.groups for t in (*group.inputs, *group.outputs))
    return [tensor for tensor in tensors if plan.storage[tensor].offset]


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_verify_plan_sees_a_part_in_a_wrong_place(make) -> None:
    plan = plan_of(make(), optimize="speed")
    verify_plan(plan)
    parts = parts_of(plan)
    assert parts
    for tensor in parts:
        storage = plan.storage[tensor]
        for wrong in (replace(storage, offset=storage.offset - 4), replace(storage, offset=0)):
            with pytest.raises(InternalFault):
                verify_plan(replace(plan, storage=plan.storage | {tensor: wrong}))


def test_verify_plan_sees_parts_that_changed_places() -> None:
    s = Sketch(13)
    x = s.value((1, 8))
    data = s.build([x], [s.concatenate([s.relu(x), s.relu(x, "RELU6")], 1)])
    plan = plan_of(data, optimize="speed")
    first, second = (plan.storage[t] for t in plan.graph.ops[-1].inputs)
    swapped = dict(zip(plan.graph.ops[-1].inputs, (second, first), strict=True))
    with pytest.raises(InternalFault, match="overwritten"):
        verify_plan(replace(plan, storage=plan.storage | swapped))


def test_verify_plan_sees_a_view_of_what_is_not_one_piece() -> None:
    """A copy's groups, with the copy left out."""
    s = Sketch(14)
    x = s.value((1, 4, 3, 2))
    plan = plan_of(s.build([x], [s.transpose(s.relu(x), (0, 2, 1, 3))]))
    (group,) = (g for g in plan.groups if g.ops[0].kind == "TRANSPOSE")
    with pytest.raises(InternalFault, match="overwritten"):
        verify_plan(replace(plan, groups=tuple(g for g in plan.groups if g is not group)))


# --- random graphs ---------------------------------------------------------------------------


@st.composite
def moving_networks(draw) -> bytes:
    """Vectors, matrices and small images that are repeatedly concatenated, sliced and reshaped between layers. Some
    have several readers, some are inputs or outputs."""
    s = Sketch(draw(st.integers(0, 2**20)))
    inputs = [s.value((1, draw(st.integers(2, 12))))]
    if draw(st.booleans()):
        inputs.append(s.value((1, draw(st.integers(2, 12))), inputs[0].scale, inputs[0].zero_point))
    pool = list(inputs)
    for _ in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(pool[-4:]))
        pool += _draw_move(draw, s, x, pool)
    outputs = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True))
    made = [value for value in outputs if value not in inputs]
    return s.build(inputs, made or [s.unary(pool[-1], "ABS")])


def _draw_move(draw, s: Sketch, x: Value, pool: list[Value]) -> list[Value]:
    length = x.shape[1]
    kind = draw(st.sampled_from(["layer", "relu", "join", "join", "cut", "split", "image", "add", "abs"]))
    if kind == "layer":
        return [s.fully_connected(x, draw(st.integers(1, 14)), draw(st.sampled_from(["NONE", "RELU"])))]
    if kind == "relu":
        return [s.relu(x, same=draw(st.booleans()))]
    if kind == "join":
        others = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
        alike = [v if (v.scale, v.zero_point) == (x.scale, x.zero_point) else s.requantize_to(v, x) for v in others]
        return [s.concatenate([x, *alike], 1)] if length + sum(v.shape[1] for v in alike) < 60 else []
    if kind == "cut":
        begin = draw(st.integers(0, length - 1))
        return [s.slice(x, [0, begin], [1, draw(st.integers(1, length - begin))])]
    if kind == "split" and length % 2 == 0:
        return s.split(x, 1, 2)
    if kind == "add":
        twins = [v for v in pool if v.shape == x.shape]
        return [s.add(x, draw(st.sampled_from(twins)))]
    if kind == "image" and length % 2 == 0:
        image = s.reshape(x, (1, length // 2, 1, 2))
        rows = s.conv(image, draw(st.integers(1, 3)), (3, 1))
        whole = s.concatenate([rows, s.relu(rows)], 1) if draw(st.booleans()) else rows
        return [s.reshape(whole, (1, whole.shape[1] * whole.shape[3]))] if whole.shape[1] < 20 else []
    return [s.unary(x, "ABS")]


@settings(max_examples=25, deadline=None)
@given(moving_networks(), st.sampled_from(OPTIMIZE))
def test_plans_of_random_networks_hold(data: bytes, optimize: str) -> None:
    """Each plan is verified when it is made. Of one with groups by rule, views take no RAM."""
    plan_of(data, "cortex-m4", optimize=optimize)
    plan = plan_of(data, fusion="basic", optimize=optimize)
    graph, context = prepare(plan.source, plan.context.target, plan.options, with_views=False)
    plain = plan_groups(plan.source, graph, partition(graph, context, "basic"), context, plan.options)
    assert optimize == "speed" or plan.arena_bytes <= plain.arena_bytes


@settings(max_examples=3, deadline=None)
@given(st.lists(moving_networks(), min_size=4, max_size=4), st.sampled_from(OPTIMIZE))
def test_random_networks_are_exact(models: list[bytes], optimize: str) -> None:
    assert_all_exact([plan_of(data, name=f"net{n}", optimize=optimize) for n, data in enumerate(models)], runs=3)
