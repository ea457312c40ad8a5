"""Trains the parts' network, in NumPy alone, and writes parts.tflite. Run by hand, never in CI.

    pip install '.[verify]' && python examples/parts/train.py

Pictures of scenes.py train it in floats; then weights and activations become int8. The same versions on the same kind
of processor give the same file again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scenes import CLASSES, HERE, SIDE, picture, seen

from tinyfuse.audio.writer import ModelWriter

#: convolutions without padding, every second row and column: side of a window, channels
LAYERS = ((5, 8), (3, 12), (3, 16), (3, 24), (4, 24))
TRAINING, HELD_OUT = 8000, 1000  # pictures
EPOCHS, BATCH, RATE_OF_LEARNING = 24, 32, 2e-3
INPUT_SCALE, INPUT_ZERO_POINT = 1 / 255, 0

Arrays = dict[str, np.ndarray]


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(int8 [count, SIDE, SIDE, 1], classes [count])."""
    random = np.random.default_rng(seed)
    classes = np.arange(count) % len(CLASSES)
    return seen(np.array([picture(int(kind), random) for kind in classes])), classes


def real(quantized: np.ndarray) -> np.ndarray:
    """What the pixels mean, -0.5 to 0.5."""
    return (quantized.astype(np.float32) - INPUT_ZERO_POINT) * np.float32(INPUT_SCALE)


# --- the network, in floats --------------------------------------------------------------------


def initial(random: np.random.Generator) -> Arrays:
    """Weights [rows, columns, from, to] and biases of the layers, [from, classes] of the last."""
    found, before = {}, 1
    for n, (side, width) in enumerate(LAYERS):
        found[f"w{n}"] = random.normal(0, np.sqrt(2 / (side * side * before)), (side, side, before, width))
        found[f"b{n}"], before = np.zeros(width), width
    found["w"], found["b"] = random.normal(0, 0.1, (before, len(CLASSES))), np.zeros(len(CLASSES))
    return {name: values.astype(np.float32) for name, values in found.items()}


def _windows(x: np.ndarray, side: int) -> np.ndarray:
    """[n, height, width, side * side * channels]: what each output pixel sees."""
    found = np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(1, 2))[:, ::2, ::2]
    return found.transpose(0, 1, 2, 4, 5, 3).reshape(*found.shape[:3], -1)


def forward(weights: Arrays, x: np.ndarray) -> list[np.ndarray]:
    """[input, what each layer gives, logits] of real pixels [n, SIDE, SIDE, 1]."""
    found = [x]
    for n, (side, width) in enumerate(LAYERS):
        sums = _windows(found[-1], side) @ weights[f"w{n}"].reshape(-1, width)
        found.append(np.maximum(sums + weights[f"b{n}"], 0))
    return [*found, found[-1][:, 0, 0] @ weights["w"] + weights["b"]]  # the last layer gives one pixel


def gradients(weights: Arrays, x: np.ndarray, classes: np.ndarray) -> tuple[float, Arrays]:
    """(mean cross entropy, its derivatives)."""
    *layers, logits = forward(weights, x)
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    loss = -np.log(likely[np.arange(len(x)), classes] + 1e-9).mean()
    likely[np.arange(len(x)), classes] -= 1
    back = likely / len(x)
    found = {"w": layers[-1][:, 0, 0].T @ back, "b": back.sum(axis=0)}
    flow = (back @ weights["w"].T)[:, None, None]
    for n in reversed(range(len(LAYERS))):
        side, shape = LAYERS[n][0], weights[f"w{n}"].shape
        flow = flow * (layers[n + 1] > 0)
        flat = flow.reshape(-1, shape[3])
        found[f"w{n}"] = (_windows(layers[n], side).reshape(len(flat), -1).T @ flat).reshape(shape)
        found[f"b{n}"] = flat.sum(axis=0)
        if n:
            before = np.zeros_like(layers[n])
            down, across = 2 * flow.shape[1] - 1, 2 * flow.shape[2] - 1
            for i, j in np.ndindex(side, side):
                before[:, i : i + down : 2, j : j + across : 2] += flow @ weights[f"w{n}"][i, j].T
            flow = before
    return float(loss), found


def trained(x: np.ndarray, classes: np.ndarray) -> Arrays:
    """By Adam (Kingma and Ba, 2014), with the rate falling to nothing."""
    random = np.random.default_rng(1)
    weights = initial(random)
    first, second = ({n: np.zeros_like(w) for n, w in weights.items()} for _ in range(2))
    batches = len(x) // BATCH
    for step in range(EPOCHS * batches):
        drawn = random.choice(len(x), BATCH, replace=False)
        turned = np.rot90(x[drawn], step % 4, axes=(1, 2))[:, :: random.choice([-1, 1])]  # parts have no top
        loss, found = gradients(weights, real(turned), classes[drawn])
        rate = RATE_OF_LEARNING * (1 - step / (EPOCHS * batches))
        for name, gradient in found.items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.001 * (gradient**2 - second[name])
            unbiased = first[name] / (1 - 0.9 ** (step + 1)), second[name] / (1 - 0.999 ** (step + 1))
            weights[name] -= (rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-7)).astype(np.float32)
        if step % batches == 0:
            print(f"epoch {step // batches}: {loss:.4f}", flush=True)
    return weights


# --- int8 --------------------------------------------------------------------------------------


def network_file(weights: Arrays, layers: list[np.ndarray]) -> bytes:
    """The .tflite; `layers`: what `forward` gives for the pictures that set the ranges."""
    model = ModelWriter()
    scale = INPUT_SCALE
    pixels = x = model.tensor("pixels", (1, SIDE, SIDE, 1), "int8", (scale, INPUT_ZERO_POINT))
    for n in range(len(LAYERS)):
        ohwi = weights[f"w{n}"].transpose(3, 0, 1, 2)
        operands = _operands(model, f"layer{n}", ohwi, weights[f"b{n}"], scale)
        scale = float(layers[n + 1].max()) / 255
        y = model.tensor(f"layer{n}", (1, *layers[n + 1].shape[1:]), "int8", (scale, -128))
        model.operator("CONV_2D", [x, *operands], [y], "Conv2DOptions", padding=1, stride_w=2, stride_h=2,
                       fused_activation_function=1, dilation_w_factor=1, dilation_h_factor=1)  # fmt: skip
        x = y
    operands = _operands(model, "classes", weights["w"].T, weights["b"], scale)
    low, high = float(layers[-1].min()), float(layers[-1].max())
    logits_scale = (high - low) / 255
    logits = model.tensor("logits", (1, len(CLASSES)), "int8", (logits_scale, round(-128 - low / logits_scale)))
    model.operator("FULLY_CONNECTED", [x, *operands], [logits], "FullyConnectedOptions")
    scores = model.tensor("scores", (1, len(CLASSES)), "int8", (1 / 256, -128))
    model.operator("SOFTMAX", [logits], [scores], "SoftmaxOptions", beta=1.0)
    return model.file([pixels], [scores], "parts")


def _operands(model: ModelWriter, name: str, weights: np.ndarray, bias: np.ndarray, scale: float) -> Iterator[int]:
    """Weights as int8, the bias as int32, of a layer whose input has that scale."""
    own = float(np.abs(weights).max()) / 127
    stored = np.round(weights / own).astype(np.int8)
    yield model.tensor(f"{name}_weights", stored.shape, "int8", (own, 0), stored)
    summed = np.float32(scale) * np.float32(own)
    yield model.tensor(
        f"{name}_bias", bias.shape, "int32", (float(summed), 0), np.round(bias / summed).astype(np.int32)
    )


def int8_classes(file: bytes, x: np.ndarray) -> np.ndarray:
    """What TensorFlow Lite Micro's interpreter finds in pictures."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(file)
    found = []
    for one in x:
        interpreter.set_input(one[np.newaxis], 0)
        interpreter.invoke()
        found.append(int(interpreter.get_output(0)[0].argmax()))
    return np.array(found)


def main() -> None:
    x, classes = pictures(TRAINING, 1)
    weights = trained(x, classes)
    file = network_file(weights, forward(weights, real(x[:400])))
    (HERE / "parts.tflite").write_bytes(file)
    held_out, wanted = pictures(HELD_OUT, 2)
    floats = np.concatenate([forward(weights, real(part))[-1].argmax(axis=1) for part in np.split(held_out, 20)])
    for name, found in (("floats", floats), ("int8", int8_classes(file, held_out))):
        print(f"{name}: {(found == wanted).sum()} of {HELD_OUT} pictures that were held out")


if __name__ == "__main__":
    main()
