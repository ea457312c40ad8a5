"""Random networks whose images grow and shrink within chains: resized, transposed-convolved, padded, cropped. Readers
of rings between such layers have windows that move by fractions of a row (RowWindow.spread)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contexts import context_of
from hypothesis import strategies as st
from plan_parts import plan_groups
from random_graphs import ACTIVATIONS, Sketch, Value

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.places import is_alias
from tinyfuse.plan.rows import RingModes
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.targets import load_target

#: rows beyond which nothing grows any more: the tests are about windows, not about speed
MOST_ROWS = 30

GROWING = ("bilinear", "nearest", "transposed")
KINDS = (*GROWING, *GROWING, "bilinear", "transposed", "conv", "depthwise", "depthwise", "pool", "pad", "mirror",
         "crop")  # fmt: skip


@st.composite
def resizing_chains(draw, most_layers: int = 7) -> bytes:
    """A chain of up to `most_layers` layers; a later layer may add the output of an earlier one."""
    sketch = Sketch(draw(st.integers(0, 2**20)), far=True)
    start = sketch.value((1, draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 4))))
    x, older = start, []
    for _ in range(draw(st.integers(2, most_layers))):
        older.append(x)
        x = _layer(draw, sketch, x)
        twins = [value for value in older if value.shape == x.shape]
        if twins and draw(st.booleans()):
            x = sketch.add(x, draw(st.sampled_from(twins)))
    outputs = [x]
    if draw(st.integers(0, 3)) == 3:
        outputs.append(draw(st.sampled_from(older[1:] or [x])))  # an inner tensor that the caller wants too
    return sketch.build([start], list(dict.fromkeys(outputs)))


def _layer(draw, sketch: Sketch, x: Value) -> Value:
    _, rows, columns, channels = x.shape
    kind = draw(st.sampled_from(KINDS))
    kernel = (draw(st.integers(1, 5)), draw(st.integers(1, 2)))
    stride = (draw(st.integers(1, 3)), 1)
    if kind in ("bilinear", "nearest"):
        corners, centers = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
        size = (draw(st.integers(1, MOST_ROWS)), draw(st.integers(1, 4)))
        name = "RESIZE_BILINEAR" if kind == "bilinear" else "RESIZE_NEAREST_NEIGHBOR"
        return sketch.resize(x, size, name, align_corners=corners, half_pixel_centers=centers)
    if kind == "transposed":
        slope = min(stride[0], max(1, MOST_ROWS // rows))
        return sketch.transpose_conv(x, draw(st.integers(1, 4)), kernel, (slope, 1), draw(ACTIVATIONS))
    if kind == "mirror":
        most = [min(2, rows - 1)] * 2
        return sketch.mirror_pad(x, *(draw(st.integers(0, m)) for m in most), 0, 0)
    if kind == "pad":
        return sketch.pad(x, draw(st.integers(0, 2)), draw(st.integers(0, 2)), 0, 0)
    if kind == "crop":
        begin = draw(st.integers(0, rows - 1))
        return sketch.slice(x, [0, begin, 0, 0], [1, draw(st.integers(1, rows - begin)), columns, channels])
    if kind == "pool":
        size, padding = (min(kernel[0], rows), 1), draw(st.sampled_from(["SAME", "VALID"]))
        return sketch.pool(x, "MAX_POOL_2D", size, stride, padding)
    padding = "VALID" if kernel[0] <= rows and kernel[1] <= columns and draw(st.booleans()) else "SAME"
    if kind == "depthwise":
        return sketch.depthwise(x, kernel, stride, padding, activation=draw(ACTIVATIONS))
    return sketch.conv(x, draw(st.integers(1, 4)), kernel, stride, padding, activation=draw(ACTIVATIONS))


def longest_groups(graph: Graph, context: Context, longest: int) -> list[list[Op]]:
    """A partition in which every group is as long as is legal, with at most `most` operators."""
    legality, groups = Legality(graph, context), [[]]
    for op in graph.ops:
        if is_alias(op):
            continue
        if groups[-1] and (len(groups[-1]) == longest or legality.refusal([*groups[-1], op])):
            groups.append([])
        groups[-1].append(op)
    return groups


def longest_plans(
    data: Sequence[bytes], slide: bool = True, target: str = "host", stack: bool = False, growing: bool = False,
    longest: int = 1000, min_scratch: bool = False, rewritten: Callable[[Graph], Graph] = lambda graph: graph, **options,
) -> list[Plan]:  # fmt: skip
    """Plans of rewritten models in their longest groups (at most `most` operators). Rings slide, stay, or lie in a
    stack, whose lowest element may be an output (`growing`). `min_scratch`: kernels of the least scratch."""
    choices = {name: options[name] for name in ("step", "kernels") if name in options}
    context, plans = context_of(load_target(target), min_scratch=min_scratch, **choices), []
    for model in data:
        graph = read_tflite("model.tflite", model)
        fed = rewritten(feed_rows(graph) if options.get("feed_rows") else graph)
        groups = longest_groups(fed, context, longest)
        every = frozenset(range(len(groups)))
        rings = RingModes(*(every if all_ else frozenset() for all_ in (not slide, stack, growing)))
        plans.append(plan_groups(graph, fed, groups, context, Options("net", **options), rings))
    return plans
