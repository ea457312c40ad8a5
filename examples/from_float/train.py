"""Trains a float32 network on handwritten digits, in NumPy alone, and writes digits_float.tflite and
digits_spoiled.tflite. Run by hand, never in CI.

    pip install scikit-learn && python examples/from_float/train.py

The first 1,437 of scikit-learn's 1,797 digits are learned; the others are examples/digits/test_images.c. The spoiled
network computes the same as the first: a channel of its first layer is a thousand times as large, and the next layer's
weights for it a thousandth. In float32 that changes nothing; one scale of int8 can't serve such channels.

The same versions on the same kind of processor give the same files again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tflite

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

from tflite_file import TfliteFile  # noqa: E402

SIDE = 8
#: (output channels, stride) of the convolutions, 3x3 all
LAYERS = ((12, 1), (24, 2), (32, 2))
LEARNED, EPOCHS, BATCH, RATE = 1437, 60, 32, 2e-3
SPOILED_CHANNEL, FACTOR = 3, 1000.0

Weights = dict[str, np.ndarray]


def initial(random: np.random.Generator) -> Weights:
    """Weights [out, 3, 3, in] of the convolutions, [classes, in] of the dense layer, and their biases."""
    found, before = Weights(), 1
    for n, (width, _) in enumerate(LAYERS):
        found[f"w{n}"] = random.normal(0, np.sqrt(2 / (9 * before)), (width, 3, 3, before))
        found[f"b{n}"], before = np.zeros(width), width
    found["w"], found["b"] = random.normal(0, 0.1, (10, before)), np.zeros(10)
    return {name: values.astype(np.float32) for name, values in found.items()}


def padding(size: int, stride: int) -> tuple[int, int]:
    """Rows before and after an image of `size`, as SAME has them for a 3x3 kernel."""
    total = max((-(-size // stride) - 1) * stride + 3 - size, 0)
    return total // 2, total - total // 2


def patches(x: np.ndarray, stride: int) -> np.ndarray:
    """[n, rows, columns, 9 * channels]: what each output pixel sees."""
    pad = padding(x.shape[1], stride)
    x = np.pad(x, ((0, 0), pad, pad, (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    return seen.transpose(0, 1, 2, 4, 5, 3).reshape(*seen.shape[:3], -1)


def forward(weights: Weights, x: np.ndarray) -> list[np.ndarray]:
    """[input, what each convolution gives, mean over the image, logits] of images [n, SIDE, SIDE, 1] of 0 to 1."""
    found = [x]
    for n, (width, stride) in enumerate(LAYERS):
        sums = patches(found[-1], stride) @ weights[f"w{n}"].reshape(width, -1).T + weights[f"b{n}"]
        found.append(np.maximum(sums, 0))
    mean = found[-1].mean(axis=(1, 2))
    return [*found, mean, mean @ weights["w"].T + weights["b"]]


def gradients(weights: Weights, x: np.ndarray, classes: np.ndarray) -> tuple[float, Weights]:
    """(mean cross entropy, its derivatives)."""
    *layers, mean, logits = forward(weights, x)
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    loss = -np.log(likely[np.arange(len(x)), classes] + 1e-9).mean()
    likely[np.arange(len(x)), classes] -= 1
    back = likely / len(x)
    found = {"w": back.T @ mean, "b": back.sum(axis=0)}
    pixels = layers[-1].shape[1] * layers[-1].shape[2]
    flow = np.broadcast_to((back @ weights["w"])[:, None, None] / pixels, layers[-1].shape)
    for n in reversed(range(len(LAYERS))):
        stride, shape = LAYERS[n][1], weights[f"w{n}"].shape
        flow = flow * (layers[n + 1] > 0)
        flat = flow.reshape(-1, shape[0])
        found[f"w{n}"] = (flat.T @ patches(layers[n], stride).reshape(len(flat), -1)).reshape(shape)
        found[f"b{n}"] = flat.sum(axis=0)
        if n:
            size = layers[n].shape[1]
            first, last = padding(size, stride)
            before = np.zeros((len(x), size + first + last, size + first + last, shape[3]), np.float32)
            for i, j in np.ndindex(3, 3):
                rows, columns = (slice(at, at + stride * flow.shape[1], stride) for at in (i, j))
                before[:, rows, columns] += flow @ weights[f"w{n}"][:, i, j]
            flow = before[:, first : first + size, first : first + size]
    return float(loss), found


def trained(x: np.ndarray, classes: np.ndarray) -> Weights:
    """By Adam (Kingma and Ba, 2014), with the rate falling to nothing; images are moved by a pixel at random."""
    random = np.random.default_rng(1)
    weights = initial(random)
    first, second = ({n: np.zeros_like(w) for n, w in weights.items()} for _ in range(2))
    steps = EPOCHS * (len(x) // BATCH)
    for step in range(steps):
        drawn = random.choice(len(x), BATCH, replace=False)
        moved = np.roll(x[drawn], random.integers(-1, 2, 2), axis=(1, 2))
        loss, found = gradients(weights, moved, classes[drawn])
        for name, gradient in found.items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.001 * (gradient**2 - second[name])
            unbiased = first[name] / (1 - 0.9 ** (step + 1)), second[name] / (1 - 0.999 ** (step + 1))
            rate = RATE * (1 - step / steps)
            weights[name] -= (rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-7)).astype(np.float32)
        if step % (steps // 10) == 0:
            print(f"step {step} of {steps}: {loss:.4f}", flush=True)
    return weights


def network_file(weights: Weights) -> bytes:
    """The float32 .tflite of a network."""
    model = TfliteFile()
    image = x = model.tensor("image", (1, SIDE, SIDE, 1), ())
    size = SIDE
    for n, (width, stride) in enumerate(LAYERS):
        size = -(-size // stride)
        operands = _constants(model, f"conv{n}", weights[f"w{n}"], weights[f"b{n}"])
        y = model.tensor(f"conv{n}", (1, size, size, width), ())
        model.operator(
            "CONV_2D", "Conv2DOptions", [x, *operands], y, padding=tflite.Padding.SAME, stride_w=stride,
            stride_h=stride, dilation_w_factor=1, dilation_h_factor=1,
            fused_activation_function=tflite.ActivationFunctionType.RELU,
        )  # fmt: skip
        x = y
    axes = model.tensor("axes", (2,), (), data=np.array([1, 2], np.int32))
    mean = model.tensor("mean", (1, LAYERS[-1][0]), ())
    model.operator("MEAN", "ReducerOptions", [x, axes], mean, keep_dims=False)
    logits = model.tensor("logits", (1, 10), ())
    model.operator(
        "FULLY_CONNECTED", "FullyConnectedOptions", [mean, *_constants(model, "dense", weights["w"], weights["b"])],
        logits,
    )  # fmt: skip
    scores = model.tensor("scores", (1, 10), ())
    model.operator("SOFTMAX", "SoftmaxOptions", [logits], scores, beta=1.0)
    return model.finish(image, scores)


def _constants(model: TfliteFile, name: str, weights: np.ndarray, bias: np.ndarray) -> tuple[int, int]:
    return (
        model.tensor(f"{name}_weights", weights.shape, (), data=np.ascontiguousarray(weights, np.float32)),
        model.tensor(f"{name}_bias", bias.shape, (), data=np.ascontiguousarray(bias, np.float32)),
    )


def spoiled(weights: Weights) -> Weights:
    """The weights of a network that computes the same in float32, and spoils in int8."""
    found = {name: values.copy() for name, values in weights.items()}
    found["w0"][SPOILED_CHANNEL] *= np.float32(FACTOR)
    found["b0"][SPOILED_CHANNEL] *= np.float32(FACTOR)
    found["w1"][..., SPOILED_CHANNEL] /= np.float32(FACTOR)
    return found


def main() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    # as examples/digits has them: a pixel is 4 bits, 16 becomes 15
    images = (np.minimum(digits.images, 15) / 15).astype(np.float32)[..., np.newaxis]
    weights = trained(images[:LEARNED], digits.target[:LEARNED])
    found = forward(weights, images[LEARNED:])[-1].argmax(axis=1)
    print(f"float32: {(found == digits.target[LEARNED:]).mean():.4f} of {len(found)} images that were held out")
    (HERE / "digits_float.tflite").write_bytes(network_file(weights))
    (HERE / "digits_spoiled.tflite").write_bytes(network_file(spoiled(weights)))


if __name__ == "__main__":
    main()
