"""Networks with long skip connections: U-Nets, hourglasses, and random ones of this kind."""

from __future__ import annotations

from dataclasses import dataclass

from random_graphs import Sketch, Value


@dataclass
class Skips:
    """Blocks of these networks. `join`: how a decoder combines a skip connection with the level below, "ADD" or
    "CONCATENATION". `grow`: how an image is upsampled, "TRANSPOSE_CONV" or the kind of a RESIZE."""

    sketch: Sketch
    join: str
    grow: str

    def grown(self, x: Value, like: Value, filters: int) -> Value:
        """Upsamples an image to the sides of another one."""
        if self.grow == "TRANSPOSE_CONV" and like.shape[1:3] == (2 * x.shape[1], 2 * x.shape[2]):
            return self.sketch.transpose_conv(x, filters, (2, 2))
        return self.sketch.conv(self.sketch.resize(x, like.shape[1:3], _resizing(self.grow)), filters, (1, 1))

    def joined(self, below: Value, skipped: Value) -> Value:
        if self.join == "ADD":
            return self.sketch.add(below, skipped)
        return self.sketch.concatenate([self.sketch.requantize_to(below, skipped), skipped], 3)


def _resizing(grow: str) -> str:
    return grow if grow.startswith("RESIZE") else "RESIZE_NEAREST_NEIGHBOR"


def unet(
    join: str, side: int = 64, channels: int = 1, filters: tuple[int, ...] = (8, 16, 32), convolutions: int = 2,
    grow: str = "TRANSPOSE_CONV",
) -> bytes:  # fmt: skip
    """Each level convolves and halves the image for the next one. On the way back each level combines its own output
    with the level below, and convolves again."""
    sketch = Sketch(21)
    skips = Skips(sketch, join, grow)

    def level(x: Value, width: int) -> Value:
        for _ in range(convolutions):
            x = sketch.conv(x, width, (3, 3), activation="RELU")
        return x

    x = image = sketch.value((1, side, side, channels))
    skipped: list[Value] = []
    for width in filters[:-1]:
        skipped.append(level(x, width))
        x = sketch.pool(skipped[-1], "MAX_POOL_2D", (2, 2), (2, 2))
    x = level(x, filters[-1])
    for width, skip in zip(filters[-2::-1], skipped[::-1], strict=True):
        x = level(skips.joined(skips.grown(x, skip, width), skip), width)
    return sketch.build([image], [sketch.conv(x, 1, (1, 1))])


def hourglass(side: int = 64, depth: int = 3, filters: int = 16) -> bytes:
    """A stem, and an hourglass (Newell et al., 2016): at each level a residual block next to a branch that runs at half
    the sides. Each block is an inverted residual, with a projection if channels change."""
    sketch = Sketch(22)

    def block(x: Value, width: int) -> Value:
        y = sketch.depthwise(sketch.conv(x, width // 2, (1, 1), activation="RELU"), (3, 3), activation="RELU")
        y = sketch.conv(y, width, (1, 1))
        return sketch.add(y, x if x.shape == y.shape else sketch.conv(x, width, (1, 1)))

    def glass(x: Value, levels: int) -> Value:
        beside = block(x, filters)
        low = block(sketch.pool(x, "MAX_POOL_2D", (2, 2), (2, 2)), filters)
        low = block(glass(low, levels - 1) if levels > 1 else low, filters)
        return sketch.add(sketch.resize(low, beside.shape[1:3], "RESIZE_NEAREST_NEIGHBOR"), beside)

    image = sketch.value((1, side, side, 3))
    x = block(sketch.conv(image, filters // 2, (3, 3), (2, 2), activation="RELU"), filters)
    return sketch.build([image], [sketch.conv(glass(x, depth), 4, (1, 1))])
