"""Random networks that are small and odd: constants among operators, a few channels, tiny or prime sides, far scales.

    network = odd_network(seed, "int8")        network.data is a .tflite file

They are drawn with `random` from the schema's operators alone, by nothing that other generators of the tests draw with.
A seed and a dtype say all of a network. An interpreter may refuse it: `inputs` say what it would take.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from odd_tensors import ENDS, OddTensor, OddTensors

#: what a network may be of; int4 is int8 with weights of int4
SORTS = ("int8", "int16", "float32", "uint8", "int4")
_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_SIDES = ((1, 1), (1, 1), (1, 2), (1, 7), (1, 13), (11, 1), (2, 1), (7, 5), (3, 3), (5, 11), (2, 3), (13, 7), (4, 4),
          (3, 6), (6, 8), (9, 10), (5, 16), (8, 8))  # fmt: skip
_LARGER = ((3, 6), (6, 8), (9, 10), (5, 16), (8, 8), (7, 5), (13, 7), (1, 23), (19, 1))
_CHANNELS = (1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 7, 8, 9, 17)
#: those that most kernels are made for, and what leaves a rest
_FILTERS = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 8, 12, 16, 16, 17, 24)
#: dtype -> functions of one value, and of two, that its interpreter has
_UNARY = {
    "int8": ("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "ABS"),
    "int16": ("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "ABS"),
    "float32": ("RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH", "ABS", "NEG", "FLOOR", "SQUARE"),
    "uint8": ("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU"),
}
_BINARY = {
    "int8": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU"),
    "int16": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"),
    "float32": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "DIV"),
    "uint8": ("ADD", "SUB", "MUL"),
}
_REDUCING = {
    "int8": ("MEAN", "MEAN", "SUM", "REDUCE_MAX"),
    "int16": ("MEAN", "MEAN", "SUM"),
    "float32": ("MEAN", "MEAN", "SUM", "REDUCE_MAX"),
    "uint8": ("MEAN",),
}
_ACTIVATED = ("ADD", "SUB", "MUL", "DIV")
_KINDS = ("conv", "conv", "conv", "pointwise", "pointwise", "pointwise", "whole", "whole", "depthwise", "depthwise",
          "depthwise", "depthwise", "transposed", "dense", "dense", "pool", "global", "reduce",
          "unary", "binary", "constants", "constants", "pad", "concatenate", "reshape", "transpose", "cut",
          "gather", "matmul", "resize", "softmax", "requantize")  # fmt: skip

#: what keeps most of an image, of which half of all networks are but for their end
_LAYERS = ("conv", "pointwise", "pointwise", "depthwise", "depthwise", "binary", "unary", "pool", "pad", "transposed")


@dataclass(frozen=True)
class OddNetwork:
    """A file, and (shape, dtype) of each of its inputs."""

    data: bytes
    inputs: tuple[tuple[tuple[int, ...], str], ...]


def odd_network(seed: int, sort: str, most_layers: int = 5) -> OddNetwork:
    """The network with this number, of one of SORTS."""
    return _Draw(random.Random(f"odd {sort} {seed}"), sort).network(most_layers)


class _Draw(OddTensors):
    """One network under construction."""

    def __init__(self, rng: random.Random, sort: str):
        super().__init__(rng, sort)
        self.constants = rng.choice((0, 0, 1, 2))
        #: outputs that no input has a part in
        self.loose: list[OddTensor] = []

    # --- the network ------------------------------------------------------------------------------

    def network(self, most_layers: int) -> OddNetwork:
        image = (self.rng.choice((1,) * 9 + (2, 3)), *self.rng.choice(_SIDES), self.rng.choice(_CHANNELS))
        shape = self.rng.choice((image, image, image, image, image, image[:1] + image[2:], (1, image[3]), image[2:3]))
        layered = self.rng.random() < 0.5
        shape = (1, *self.rng.choice(_LARGER), image[3]) if layered else shape
        inputs = [self.tensor(shape, self.scale(4.0)) for _ in range(self.rng.choice((1, 1, 1, 2)))]
        values = list(inputs)
        last = self.rng.randint(1, most_layers)
        for number in range(last + 1):
            x = self.rng.choice((values[-1], values[-1], self.rng.choice(values)))
            drawn = _LAYERS if layered and number < last else _KINDS
            kinds = [kind for kind in drawn if len(x.shape) == 4 or kind not in _OF_IMAGES]
            values.append(getattr(self, f"add_{self.rng.choice(kinds)}")(x))
        outputs = [values[-1], *self.loose]
        if self.rng.random() < 0.25:
            outputs.append(self.rng.choice(values))
        data = self.model.build([t.index for t in inputs], list(dict.fromkeys(t.index for t in outputs)))
        return OddNetwork(data, tuple((t.shape, self.dtype) for t in inputs))

    # --- layers -----------------------------------------------------------------------------------

    def layer(self, kind: str, x: OddTensor, weights_shape, axis: int, out_shape, **options) -> OddTensor:
        channels, terms = weights_shape[axis], prod(weights_shape) // weights_shape[axis]
        terms = max(1, terms if kind != "DEPTHWISE_CONV_2D" else prod(weights_shape[1:3]))
        per_channel = self.sort not in ("uint8", "float32") and kind != "FULLY_CONNECTED" and self.rng.random() < 0.6
        scales = self.numbers.uniform(0.004, 0.012, channels if per_channel else 1)
        if self.scales in ("equal", "powers"):
            scales = np.full(scales.shape, 1 / 128)
        if per_channel and self.rng.random() < 0.4:  # one channel far from the others
            scales[self.rng.randrange(channels)] *= 10.0 ** self.rng.uniform(-4, 2.5)
        weights, zero_point = self.weights(weights_shape)
        typical = float(np.median(scales)) * self.reach(x) * 70 * terms**0.5
        if self.sort == "int4":
            typical /= 16
        y = self.tensor(out_shape, self.scale(typical if self.dtype != "float32" else 4.0))
        inputs = [x.index, *self.parameters(x, weights, zero_point, scales.astype(np.float32), axis, terms)]
        options["fused_activation_function"] = self.rng.choice(_ACTIVATIONS)
        if kind == "TRANSPOSE_CONV":
            data, weights_index, *bias = inputs
            inputs, options["fused_activation_function"] = (
                [self.integers(out_shape), weights_index, data, *bias],
                "NONE",
            )
        self.model.op(kind, inputs, [y.index], **options)
        return y

    def window(self, x: OddTensor) -> tuple[tuple[int, int], dict, tuple[int, int]]:
        """Sides of a window, options, and the sides of the output."""
        kernel = tuple(self.rng.choice((1, 2, 3, 3, 3, 4, 7, side)) for side in x.shape[1:3])
        dilation = tuple(self.rng.choice((1, 1, 1, 1, 1, 2, 3)) for _ in range(2))
        stride = tuple(self.rng.choice((1, 1, 1, 2, 3)) for _ in range(2))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        fits = all(span <= side for span, side in zip(spans, x.shape[1:3], strict=True))
        padding = self.rng.choice(("SAME", "VALID")) if fits else "SAME"
        options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1],
                   "dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}  # fmt: skip
        sides = [
            -(-side // s) if padding == "SAME" else (side - span) // s + 1
            for side, s, span in zip(x.shape[1:3], stride, spans, strict=True)
        ]
        return kernel, options, (sides[0], sides[1])

    def add_conv(self, x: OddTensor) -> OddTensor:
        kernel, options, sides = self.window(x)
        filters = self.rng.choice(_FILTERS)
        return self.layer("CONV_2D", x, (filters, *kernel, x.shape[3]), 0, (x.shape[0], *sides, filters), **options)

    def add_pointwise(self, x: OddTensor) -> OddTensor:
        filters, stride = self.rng.choice(_FILTERS), self.rng.choice((1, 1, 1, 2))
        sides = [-(-side // stride) for side in x.shape[1:3]]
        options = {"padding": "VALID", "stride_h": stride, "stride_w": stride}
        return self.layer("CONV_2D", x, (filters, 1, 1, x.shape[3]), 0, (x.shape[0], *sides, filters), **options)

    def add_transposed(self, x: OddTensor) -> OddTensor:
        """A transposed convolution, padded so that each side grows by the stride."""
        if self.dtype == "uint8" or self.sort == "int4" or x.shape[0] > 1:
            return self.add_conv(x)
        stride, filters = self.rng.choice((1, 2)), self.rng.choice((1, 2, 3, 5, 8))
        kernel = [self.rng.choice((stride, 3, 4)) for _ in range(2)]
        shape = (1, x.shape[1] * stride, x.shape[2] * stride, filters)
        return self.layer("TRANSPOSE_CONV", x, (filters, *kernel, x.shape[3]), 0, shape, padding="SAME",
                          stride_h=stride, stride_w=stride)  # fmt: skip

    def add_whole(self, x: OddTensor) -> OddTensor:
        """A convolution whose window is its whole input."""
        filters, options = self.rng.choice((1, 2, 3, 5)), {"padding": "VALID", "stride_h": 1, "stride_w": 1}
        if self.rng.random() < 0.3:
            multiplier = self.rng.choice((1, 2))
            channels = x.shape[3] * multiplier
            return self.layer("DEPTHWISE_CONV_2D", x, (1, *x.shape[1:3], channels), 3, (x.shape[0], 1, 1, channels),
                              depth_multiplier=multiplier, **options)  # fmt: skip
        return self.layer("CONV_2D", x, (filters, *x.shape[1:]), 0, (x.shape[0], 1, 1, filters), **options)

    def add_depthwise(self, x: OddTensor) -> OddTensor:
        kernel, options, sides = self.window(x)
        multiplier = self.rng.choice((1, 1, 1, 2, 3))
        channels = x.shape[3] * multiplier
        return self.layer(
            "DEPTHWISE_CONV_2D", x, (1, *kernel, channels), 3, (x.shape[0], *sides, channels),
            depth_multiplier=multiplier, **options,
        )  # fmt: skip

    def add_dense(self, x: OddTensor) -> OddTensor:
        """A dense layer over everything but the batch, with or without a RESHAPE before it; or over each vector."""
        units, depth = self.rng.randint(1, 5), prod(x.shape[1:]) if len(x.shape) > 1 else x.shape[0]
        rows = prod(x.shape) // depth
        flat = rows == 1 and self.sort != "uint8" and self.rng.random() < 0.2
        out = (units,) if flat else (rows, units)
        if len(x.shape) > 2 and self.rng.random() < 0.6:
            x = self.reshaped(x, (rows, depth))
        return self.layer("FULLY_CONNECTED", x, (units, depth), 0, out)

    # --- others -----------------------------------------------------------------------------------

    def add_pool(self, x: OddTensor) -> OddTensor:
        kernel, options, sides = self.window(x)
        spans = [min(k, side) for k, side in zip(kernel, x.shape[1:3], strict=True)]
        stride, padding = (options["stride_h"], options["stride_w"]), options["padding"]
        sides = [-(-side // s) if padding == "SAME" else (side - k) // s + 1
                 for side, s, k in zip(x.shape[1:3], stride, spans, strict=True)]  # fmt: skip
        return self.pooled(x, spans, stride, padding, sides)

    def add_global(self, x: OddTensor) -> OddTensor:
        return self.pooled(x, x.shape[1:3], self.rng.choice(((1, 1), x.shape[1:3])), "VALID", (1, 1))

    def pooled(self, x: OddTensor, kernel, stride, padding: str, sides) -> OddTensor:
        y = self.alike(x, (x.shape[0], *sides, x.shape[3]))
        self.model.op(
            self.rng.choice(("AVERAGE_POOL_2D", "MAX_POOL_2D")), [x.index], [y.index], padding=padding,
            filter_height=kernel[0], filter_width=kernel[1], stride_h=stride[0], stride_w=stride[1],
            fused_activation_function=self.rng.choice(_ACTIVATIONS),
        )  # fmt: skip
        return y

    def add_reduce(self, x: OddTensor) -> OddTensor:
        kind = self.rng.choice(_REDUCING[self.dtype])
        axes = self.rng.choice(([1, 2], [1, 2], [1], [2], [3], [1, 2, 3])) if len(x.shape) == 4 else [len(x.shape) - 1]
        keeps = self.rng.random() < 0.5 or len(axes) == len(x.shape)
        shape = [1 if axis in axes else side for axis, side in enumerate(x.shape) if keeps or axis not in axes]
        y = self.alike(x, shape) if kind == "REDUCE_MAX" or self.rng.random() < 0.3 else self.like_reach(x, shape)
        self.model.op(kind, [x.index, self.integers(axes)], [y.index], keep_dims=keeps)
        return y

    def like_reach(self, x: OddTensor, shape: Sequence[int], factor: float = 1.0) -> OddTensor:
        return self.tensor(shape, self.scale(self.reach(x) * factor))

    def add_unary(self, x: OddTensor) -> OddTensor:
        kind = self.rng.choice(_UNARY[self.dtype])
        if kind in ("LOGISTIC", "TANH"):
            low = ENDS[self.dtype][0]
            if self.dtype == "int16":
                y = self.tensor(x.shape, 1 / 32768)
            elif kind == "LOGISTIC":
                y = self.tensor(x.shape, 1 / 256, low)
            else:
                y = self.tensor(x.shape, 1 / 128, low + 128)
        elif kind in ("NEG", "ABS") or self.rng.random() < 0.4:
            y = self.alike(x, x.shape)
        else:
            y = self.like_reach(x, x.shape)
        table = kind in ("LEAKY_RELU", "ABS", "NEG", "HARD_SWISH", "SQUARE")
        options = {"alpha": self.rng.choice((0.1, 0.5, 1.0, 1.5, 0.0))} if kind == "LEAKY_RELU" else {}
        self.model.op(kind, [x.index], [y.index], table=table, **options)
        return y

    def add_binary(self, x: OddTensor) -> OddTensor:
        """An operator on a value and a constant (a number, a vector of channels, a whole tensor), or on the value and
        itself."""
        shape = self.rng.choice(((1,), x.shape[-1:], x.shape[-1:], x.shape))
        return self.joined(x, x if self.rng.random() < 0.15 else self.constant(shape))

    def joined(self, x: OddTensor, other: OddTensor) -> OddTensor:
        kind = self.rng.choice(_BINARY[self.dtype])
        pair = [x, other] if kind in ("PRELU", "DIV") or self.rng.random() < 0.7 else [other, x]
        factor = self.reach(other) if kind in ("MUL", "PRELU") else 1.0
        y = self.alike(x, x.shape) if self.rng.random() < 0.2 else self.like_reach(x, x.shape, factor)
        fused = {"fused_activation_function": self.rng.choice(_ACTIVATIONS)} if kind in _ACTIVATED else {}
        self.model.op(kind, [t.index for t in pair], [y.index], table=kind != "PRELU", **fused)
        return y

    def add_constants(self, x: OddTensor) -> OddTensor:
        """Operators that read only constants, one after another. Their result is combined with `x` or is an output of
        the model."""
        shapes = (x.shape, x.shape, x.shape, (1, 2, 3), (1, 1, 6), (5,), (2, 3), (1, 3, 4, 2), (1, 4, 1, 3), (1, 7, 2))
        made = self.constant(self.rng.choice(shapes))
        for _ in range(1 + self.constants):
            kinds = [
                kind for kind in _KINDS if kind != "constants" and (len(made.shape) == 4 or kind not in _OF_IMAGES)
            ]
            made = getattr(self, f"add_{self.rng.choice(kinds)}")(made)
        if self.rng.random() < 0.4:
            self.loose.append(made)
            return self.add_unary(x)
        return self.joined(x, self.made_to_fit(made, x.shape))

    def made_to_fit(self, made: OddTensor, shape: tuple[int, ...]) -> OddTensor:
        """`made` if it broadcasts; a slice of it if it is larger; otherwise another constant."""
        if made.shape == shape[len(shape) - len(made.shape) :]:
            return made
        if len(made.shape) == len(shape) and all(a >= b for a, b in zip(made.shape, shape, strict=True)):
            return self.sliced(made, [0] * len(shape), shape)
        if prod(made.shape) == prod(shape):
            return self.reshaped(made, shape)
        return self.constant(shape)

    def add_pad(self, x: OddTensor) -> OddTensor:
        amounts = [[self.rng.choice((0, 1, 2)), self.rng.choice((0, 0, 1))] for _ in x.shape]
        if self.rng.random() < 0.8:
            amounts[0] = [0, 0]
        shape = [side + sum(pair) for side, pair in zip(x.shape, amounts, strict=True)]
        y = self.alike(x, shape)
        self.model.op("PAD", [x.index, self.integers(amounts)], [y.index])
        return y

    def add_concatenate(self, x: OddTensor) -> OddTensor:
        axis, parts = self.rng.randrange(len(x.shape)), [x]
        for _ in range(self.rng.choice((1, 1, 2))):
            shape = list(x.shape)
            shape[axis] = self.rng.choice((1, 2, x.shape[axis]))
            parts.append(x if self.rng.random() < 0.3 else self.requantized(self.constant(shape), x))
        self.rng.shuffle(parts)
        shape = list(x.shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        y = self.alike(x, shape)
        self.model.op(
            "CONCATENATION", [p.index for p in parts], [y.index], axis=self.rng.choice((axis, axis - len(shape))),
            fused_activation_function="NONE",
        )  # fmt: skip
        return y

    def requantized(self, x: OddTensor, like: OddTensor) -> OddTensor:
        y = self.alike(like, x.shape)
        if self.dtype == "float32":
            self.model.op("ABS", [x.index], [y.index])
        else:
            self.model.op("QUANTIZE", [x.index], [y.index])
        return y

    def add_requantize(self, x: OddTensor) -> OddTensor:
        return self.requantized(x, OddTensor(0, x.shape, self.scale(self.reach(x)), self.zero_point()))

    def reshaped(self, x: OddTensor, shape: Sequence[int]) -> OddTensor:
        y = self.alike(x, shape)
        self.model.op("RESHAPE", [x.index, self.integers(list(shape))], [y.index], new_shape=tuple(shape))
        return y

    def add_reshape(self, x: OddTensor) -> OddTensor:
        *rest, last = x.shape
        size = prod(x.shape)
        shapes = [(1, 1, 1, size), (1, size, 1, 1), (size, 1, 1, 1)[: self.rng.choice((1, 4))], (1, size),
                  (*rest[:1], *rest[:0:-1], last), (1, prod(rest) or 1, 1, last)]  # fmt: skip
        return self.reshaped(x, self.rng.choice(shapes))

    def add_transpose(self, x: OddTensor) -> OddTensor:
        order = self.rng.sample(range(len(x.shape)), len(x.shape))
        y = self.alike(x, [x.shape[axis] for axis in order])
        self.model.op("TRANSPOSE", [x.index, self.integers(order)], [y.index])
        return y

    def sliced(self, x: OddTensor, begin: Sequence[int], size: Sequence[int]) -> OddTensor:
        y = self.alike(x, size)
        self.model.op("SLICE", [x.index, self.integers(list(begin)), self.integers(list(size))], [y.index])
        return y

    def add_cut(self, x: OddTensor) -> OddTensor:
        begin = [self.rng.randrange(side) for side in x.shape]
        return self.sliced(x, begin, [self.rng.randint(1, side - at) for side, at in zip(x.shape, begin, strict=True)])

    def add_gather(self, x: OddTensor) -> OddTensor:
        if self.dtype == "int16":
            return self.add_cut(x)
        axis = self.rng.randrange(len(x.shape))
        places = [self.rng.randrange(x.shape[axis]) for _ in range(self.rng.choice((1, 2, 5)))]
        y = self.alike(x, (*x.shape[:axis], len(places), *x.shape[axis + 1 :]))
        self.model.op("GATHER", [x.index, self.integers(places)], [y.index], axis=axis)
        return y

    def add_matmul(self, x: OddTensor) -> OddTensor:
        """A product with a constant, or with itself, along the last dimension or the one before."""
        if len(x.shape) < 3 or self.dtype == "uint8":
            return self.add_binary(x)
        transposed, columns = self.rng.random() < 0.5, self.rng.choice((1, 2, 3, 5))
        pair = (columns, x.shape[-1]) if transposed else (x.shape[-1], columns)
        other = self.constant((*x.shape[:-2], *pair))
        y = self.like_reach(x, (*x.shape[:-1], columns), self.reach(other) * x.shape[-1] ** 0.5)
        self.model.op("BATCH_MATMUL", [x.index, other.index], [y.index], adj_y=transposed)
        return y

    def add_resize(self, x: OddTensor) -> OddTensor:
        if self.dtype in ("int16", "uint8"):
            return self.add_pad(x)
        sides = [self.rng.choice((1, side, side + 1, 2 * side)) for side in x.shape[1:3]]
        y = self.alike(x, (x.shape[0], *sides, x.shape[3]))
        kind = self.rng.choice(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
        self.model.op(kind, [x.index, self.integers(sides)], [y.index], half_pixel_centers=self.rng.random() < 0.5)
        return y

    def add_softmax(self, x: OddTensor) -> OddTensor:
        if self.dtype == "float32":  # of libm's functions only bounds are known
            return self.add_unary(x)
        y = self.tensor(x.shape, *((1 / 32768, 0) if self.dtype == "int16" else (1 / 256, ENDS[self.dtype][0])))
        self.model.op("SOFTMAX", [x.index], [y.index], beta=1.0)
        return y


_OF_IMAGES = ("conv", "pointwise", "transposed", "whole", "depthwise", "pool", "global", "resize")
