"""Networks whose groups have rings of many rows, and plans that keep these rings in a stack."""

from __future__ import annotations

from random_graphs import Sketch, Value
from resizing_graphs import longest_plans

from tinyfuse.plan import Plan


def block(sketch: Sketch, x: Value, filters: int, stride: int) -> Value:
    """Two convolutions, and a residual ADD with their input or, if the shape changes, with a projection."""
    y = sketch.conv(sketch.conv(x, filters, (3, 3), (stride, stride)), filters, (3, 3))
    return sketch.add(y, sketch.conv(x, filters, (1, 1), (stride, stride)) if stride > 1 else x)


def residual(side: int = 20, blocks: int = 2) -> bytes:
    """A network of residual blocks, some of which halve the rows and double the channels."""
    sketch = Sketch(11)
    x = sketch.value((1, side, side, 3))
    y = block(sketch, sketch.conv(x, 8, (3, 3)), 8, 1)
    for filters in (16, 32)[:blocks]:
        y = block(sketch, y, filters, 2)
    return sketch.build([x], [sketch.mean(y)])


def inverted(side: int = 14, seed: int = 4, taps: tuple[int, int] = (5, 5)) -> bytes:
    """Inverted residuals with square depthwise windows; one of them halves the image's sides."""
    sketch = Sketch(seed)
    image = sketch.value((1, side, side, 3))
    y = x = sketch.conv(image, 8, (3, 3), (2, 2))
    for stride in (1, 2, 1):
        y = sketch.depthwise(sketch.conv(x, 24, (1, 1)), taps, (stride, stride))
        y = sketch.conv(y, 8, (1, 1))
        x = sketch.add(x, y) if stride == 1 else y
    return sketch.build([image], [sketch.conv(x, 12, (1, 1))])


def stacked(data: bytes, **options) -> Plan:
    """A plan with the longest groups and rings in a stack."""
    (plan,) = longest_plans([data], stack=True, **options)
    return plan
