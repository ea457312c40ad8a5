"""Small networks of known microcontroller architectures, as .tflite bytes: each has the structure of its model, with
few channels and pixels.

The seeds are those of weights for which the outputs depend on the inputs: of most, a layer saturates.
"""

from __future__ import annotations

from random_graphs import Sketch, Value


def _inverted_residual(
    s: Sketch, x: Value, filters: int, expansion: int, stride: int, swish=False, gate=False
) -> Value:
    """MobileNetV2's block; with hard-swish and squeeze-and-excitation MobileNetV3's."""
    kernel = (5, 5) if gate else (3, 3)
    activation = "NONE" if swish else "RELU6"
    y = s.conv(x, x.shape[3] * expansion, (1, 1), activation=activation)
    y = s.unary(y, "HARD_SWISH") if swish else y
    y = s.depthwise(y, kernel, (stride, stride), activation=activation)
    y = s.unary(y, "HARD_SWISH") if swish else y
    if gate:
        y = _squeeze_and_excite(s, y)
    y = s.conv(y, filters, (1, 1))
    return s.add(x, y) if y.shape == x.shape else y


def _squeeze_and_excite(s: Sketch, x: Value) -> Value:
    """Scales channels by a hard sigmoid of two layers on their means: relu6(v + 3) / 6 as a converter writes it, with
    constants before and after."""
    channels = x.shape[3]
    mean = s.mean(x, keep_dims=True)
    squeezed = s.conv(mean, max(1, channels // 4), (1, 1), activation="RELU")
    excited = s.scale_channels(s.conv(squeezed, channels, (1, 1)), "ADD")
    return s.add(x, s.scale_channels(s.relu(excited, "RELU6"), "MUL"), kind="MUL")


def mobilenet_v2(seed: int = 62) -> bytes:
    s = Sketch(seed)
    image = s.value((1, 24, 24, 3))
    x = s.conv(image, 8, (3, 3), (2, 2), activation="RELU6")
    x = _inverted_residual(s, x, 6, 1, 1)
    x = _inverted_residual(s, x, 8, 4, 2)
    x = _inverted_residual(s, x, 8, 4, 1)
    x = s.conv(x, 24, (1, 1), activation="RELU6")
    logits = s.fully_connected(s.mean(x), 5)
    return s.build([image], [s.softmax(logits), logits])


def mobilenet_v3(seed: int = 54) -> bytes:
    s = Sketch(seed)
    image = s.value((1, 24, 20, 3))
    x = s.unary(s.conv(image, 8, (3, 3), (2, 2)), "HARD_SWISH")
    x = _inverted_residual(s, x, 8, 2, 2, gate=True)
    x = _inverted_residual(s, x, 8, 3, 1, swish=True, gate=True)
    x = s.unary(s.conv(x, 24, (1, 1)), "HARD_SWISH")
    head = s.unary(s.fully_connected(s.mean(x), 16), "HARD_SWISH")
    return s.build([image], [s.fully_connected(head, 5)])


def u_net(seed: int = 2) -> bytes:
    """A U-Net of two levels; one way up is a transposed convolution, the other one an interpolation."""
    s = Sketch(seed)
    image = s.value((1, 16, 20, 3))
    top = s.conv(image, 6, (3, 3), activation="RELU")
    middle = s.conv(s.pool(top, "MAX_POOL_2D", (2, 2), (2, 2)), 10, (3, 3), activation="RELU")
    bottom = s.conv(s.pool(middle, "MAX_POOL_2D", (2, 2), (2, 2)), 16, (3, 3), activation="RELU")
    up = s.requantize_to(s.transpose_conv(bottom, 10, (2, 2)), middle)
    x = s.conv(s.concatenate([middle, up], 3), 10, (3, 3), activation="RELU")
    up = s.requantize_to(s.resize(x, (16, 20), half_pixel_centers=True), top)
    x = s.conv(s.concatenate([top, up], 3), 6, (3, 3), activation="RELU")
    mask = s.unary(s.conv(x, 2, (1, 1)), "LOGISTIC")
    return s.build([image], [mask])


def two_inputs(seed: int = 89) -> bytes:
    """A model of a picture and a row of measurements that returns a class and a value."""
    s = Sketch(seed)
    image, numbers = s.value((1, 12, 12, 2)), s.value((1, 7))
    seen = s.mean(s.conv(s.conv(image, 6, (3, 3), (2, 2), activation="RELU"), 8, (3, 3), activation="RELU"))
    read = s.requantize_to(s.fully_connected(numbers, 8, "RELU"), seen)
    joined = s.fully_connected(s.concatenate([seen, read], 1), 12, "RELU")
    return s.build([image, numbers], [s.softmax(s.fully_connected(joined, 4)), s.fully_connected(joined, 3)])


def attention(seed: int = 27) -> bytes:
    """A transformer block over 9 vectors: two heads, a residual, and layers after it."""
    s = Sketch(seed)
    tokens, width, heads = 9, 16, 2
    x = s.value((1, tokens, width))

    def split_heads(y: Value) -> Value:
        return s.transpose(s.reshape(y, (1, tokens, heads, width // heads)), (0, 2, 1, 3))

    query, key, value = (split_heads(part) for part in s.split(s.dense(x, 3 * width), 2, 3))
    weights = s.softmax(s.matmul(query, key, adj_y=True))
    mixed = s.reshape(s.transpose(s.matmul(weights, value), (0, 2, 1, 3)), (1, tokens, width))
    x1 = s.add(x, s.dense(mixed, width))
    x2 = s.add(x1, s.dense(s.dense(x1, 2 * width, "RELU"), width))
    return s.build([x], [x2])


def planes(seed: int = 31) -> bytes:
    """A segmentation as PyTorch has it: an image of three planes, three planes of classes, and a softmax over their
    columns."""
    s = Sketch(seed)
    image = s.value((1, 3, 12, 10))
    x = s.conv(s.transpose(image, (0, 2, 3, 1)), 6, (3, 3), activation="RELU")
    x = s.conv(s.depthwise(x, (3, 3)), 3, (1, 1))
    y = s.transpose(x, (0, 3, 1, 2))
    return s.build([image], [y, s.softmax(y)])


FAMILIES = {f.__name__: f for f in (mobilenet_v2, mobilenet_v3, u_net, two_inputs, attention, planes)}
