"""Networks that begin like image networks (expansions, windows, projections), and plans that tile these layers in any
shape (schedule/groups/tiling.py), whether or not that saves RAM."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from plan_parts import plan_groups, prepare
from random_graphs import Sketch, Value

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops.layers.tiled import TILE_ROWS
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.tiling import Tiling, tile_graph
from tinyfuse.schedule.kernel_choice.select import row_kernel
from tinyfuse.targets import load_target

#: of depthwise layers: with and without rows and columns to share, larger than small images
_WINDOWS = ((3, 3), (3, 3), (5, 5), (7, 7), (1, 5), (3, 1), (2, 4))
_STRIDES = ((1, 1), (1, 1), (2, 2), (1, 2), (2, 1))


@st.composite
def tiled_networks(draw) -> bytes:
    """A layer, then blocks that expand, apply windows and project, some with a residual ADD; odd widths, and images
    smaller than a window."""
    sketch = Sketch(draw(st.integers(0, 2**32 - 1)), far=True)
    x = image = sketch.value((1, draw(st.integers(3, 14)), draw(st.integers(1, 21)), draw(st.sampled_from((3, 4, 8)))))
    if draw(st.booleans()):
        x = sketch.conv(x, draw(st.sampled_from((4, 6, 16))), (3, 3), draw(st.sampled_from(_STRIDES)))
    for _ in range(draw(st.integers(1, 3))):
        x = _block(draw, sketch, x)
    return sketch.build([image], [x])


def _block(draw, sketch: Sketch, x: Value) -> Value:
    expanded = sketch.conv(
        x, x.shape[3] * draw(st.integers(2, 4)) + draw(st.integers(0, 1)), (1, 1), activation="RELU6"
    )
    strides, dilated = draw(st.sampled_from(_STRIDES)), draw(st.integers(0, 4)) == 0
    strides = [stride if size > stride else 1 for stride, size in zip(strides, x.shape[1:3], strict=True)]
    window = [max(taps, stride) for taps, stride in zip(draw(st.sampled_from(_WINDOWS)), strides, strict=True)]
    dilation = (2, 2) if dilated and strides == [1, 1] else (1, 1)
    if draw(st.integers(0, 3)) == 0:
        y = sketch.conv(expanded, 5, tuple(window), tuple(strides), dilation=dilation)
    else:
        y = sketch.depthwise(expanded, tuple(window), tuple(strides), dilation=dilation)
    y = sketch.conv(y, draw(st.sampled_from((4, 6, x.shape[3]))), (1, 1))
    return sketch.add(x, y) if y.shape == x.shape else y


def tiled_plan(data: bytes, target: str, shapes: Sequence[tuple[int, int]], together: bool, **options) -> Plan:
    """A plan that tiles every chain of the model, in these shapes in turn. `together`: groups are as long as possible,
    otherwise each has one operator."""
    source, named = read_tflite("model.tflite", data), Options("net", **{"optimize": "ram", **options})
    graph, context = prepare(source, load_target(target), named)
    tiling = Tiling(graph)
    made = [tiling.tiled(chain, *shapes[n % len(shapes)]) for n, chain in enumerate(tiling.disjoint_chains(graph.ops))]
    made = [op for op in made if row_kernel(op, context, True) is not None]
    graph = tile_graph(graph, made, 0)
    return plan_groups(source, graph, _groups(graph, context, together), context, named)


def shapes_of_tiles():
    """Rows and columns of up to three tiles."""
    shape = st.tuples(st.sampled_from(TILE_ROWS), st.sampled_from((1, 2, 3, 8)))
    return st.lists(shape, min_size=1, max_size=3)


def _groups(graph: Graph, context: Context, together: bool) -> list[list[Op]]:
    legality, groups = Legality(graph, context), list[list[Op]]()
    for op in graph.ops:
        if is_alias(op):
            continue
        joined = [*groups[-1], op] if groups and together else [op]
        if len(joined) > 1 and legality.refusal(joined) is None:
            groups[-1] = joined
        else:
            groups.append([op])
    return groups
