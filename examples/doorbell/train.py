"""Trains the doorbell's network, in NumPy alone, and writes doorbell.tflite and mel.tflite. Run by hand, never in CI.

    pip install '.[verify]' && python examples/doorbell/train.py

Streams of sounds.py go through the very front end that the firmware has, run by TensorFlow Lite Micro's interpreter,
so that the network learns from the features that it will see. Windows without a doorbell or an alarm, and those with
enough of one, are what it learns; those with less of one are left out. Then weights and activations become int8.

The same versions on the same kind of processor give the same files again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sounds import CLASSES, HERE, RATE, Event, stream
from tflite_micro import runtime

from tinyfuse.audio.front_end import FrontEnd
from tinyfuse.audio.model import front_end_model
from tinyfuse.audio.writer import ModelWriter

FRAMES, CHANNELS = 48, 20
#: what `tinyfuse front-end` is asked for
FRONT_END = FrontEnd(
    sample_rate=RATE, window_ms=32, stride_ms=20, channels=CHANNELS, frames=FRAMES, high=3800,
    shape=(1, FRAMES, 1, CHANNELS),
)  # fmt: skip
#: convolutions over time: rows of a window, and how far apart they are
LAYERS = ((5, 1), (5, 2), (5, 4))
WIDTH = 24  # channels behind each
SECONDS, TRAINING, HELD_OUT = 40, 60, 10  # of a stream, streams
EPOCHS, BATCH, RATE_OF_LEARNING = 8, 63, 2e-3

Arrays = dict[str, np.ndarray]


# --- data --------------------------------------------------------------------------------------


def features(samples: np.ndarray) -> np.ndarray:
    """int8 [frames, CHANNELS] of a stream."""
    interpreter = runtime.Interpreter.from_bytes(front_end_model(FRONT_END))
    found = []
    for start in range(0, samples.size - FRONT_END.step + 1, FRONT_END.step):
        interpreter.set_input(samples[start : start + FRONT_END.step], 0)
        interpreter.invoke()
        found.append(interpreter.get_output(0).reshape(FRAMES, CHANNELS)[-1].copy())
    return np.array(found)


def label(events: list[Event], end: int) -> int | None:
    """The class of the window that ends at this sample, None where it holds a part of a sound that doesn't tell."""
    start = end - FRAMES * FRONT_END.step
    for event in events:
        heard = min(end, event.end) - max(start, event.start)
        if heard > 0:
            # of beeps any three tell, of two tones their beginning
            whole = CLASSES[event.kind] == "alarm" or start <= event.start
            return event.kind if whole and heard >= event.known else None
    return 0


def windows(seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """(int8 [n, FRAMES, CHANNELS], classes [n])."""
    seen, classes = [], []
    for seed in seeds:
        samples, events = stream(SECONDS, np.random.default_rng(seed))
        rows = features(samples)
        for last in range(FRAMES, len(rows) + 1):
            kind = label(events, last * FRONT_END.step)
            if kind is not None and (kind or last % 4 == 0):
                seen.append(rows[last - FRAMES : last])
                classes.append(kind)
    return np.array(seen), np.array(classes)


# --- the network, in floats --------------------------------------------------------------------


def initial(random: np.random.Generator) -> Arrays:
    """Weights [taps, from, to] and biases of the layers, [from, classes] of the last."""
    found, before = {}, CHANNELS
    for n, (taps, _) in enumerate(LAYERS):
        found[f"w{n}"] = random.normal(0, np.sqrt(2 / (taps * before)), (taps, before, WIDTH))
        found[f"b{n}"], before = np.zeros(WIDTH), WIDTH
    found["w"], found["b"] = random.normal(0, 0.1, (WIDTH, len(CLASSES))), np.zeros(len(CLASSES))
    return {name: values.astype(np.float32) for name, values in found.items()}


def forward(weights: Arrays, x: np.ndarray) -> list[np.ndarray]:
    """[input, what each layer gives, their mean over time, logits] of real features [n, FRAMES, CHANNELS]."""
    seen = [x]
    for n, (taps, apart) in enumerate(LAYERS):
        height = seen[-1].shape[1] - (taps - 1) * apart
        sums = sum(seen[-1][:, k * apart : k * apart + height] @ weights[f"w{n}"][k] for k in range(taps))
        seen.append(np.maximum(sums + weights[f"b{n}"], 0))
    seen.append(seen[-1].mean(axis=1))
    return [*seen, seen[-1] @ weights["w"] + weights["b"]]


def gradients(weights: Arrays, x: np.ndarray, classes: np.ndarray) -> tuple[float, Arrays]:
    """(mean cross entropy, its derivatives)."""
    *rows, mean, logits = forward(weights, x)
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    loss = -np.log(likely[np.arange(len(x)), classes] + 1e-9).mean()
    back = likely.copy()
    back[np.arange(len(x)), classes] -= 1
    back /= len(x)
    found = {"w": mean.T @ back, "b": back.sum(axis=0)}
    height = rows[-1].shape[1]
    flow = np.repeat((back @ weights["w"].T)[:, None] / height, height, axis=1)
    for n in reversed(range(len(LAYERS))):
        taps, apart = LAYERS[n]
        flow = flow * (rows[n + 1] > 0)
        height, before = flow.shape[1], np.zeros_like(rows[n])
        found[f"w{n}"], found[f"b{n}"] = np.empty_like(weights[f"w{n}"]), flow.sum(axis=(0, 1))
        for k in range(taps):
            part = rows[n][:, k * apart : k * apart + height]
            found[f"w{n}"][k] = np.tensordot(part, flow, ((0, 1), (0, 1)))
            before[:, k * apart : k * apart + height] += flow @ weights[f"w{n}"][k].T
        flow = before
    return float(loss), found


def trained(x: np.ndarray, classes: np.ndarray) -> Arrays:
    """By Adam (Kingma and Ba, 2014), with the rate falling to nothing; rare classes are drawn as often as others."""
    random = np.random.default_rng(1)
    weights = initial(random)
    first, second = ({n: np.zeros_like(w) for n, w in weights.items()} for _ in range(2))
    members = [np.flatnonzero(classes == kind) for kind in range(len(CLASSES))]
    batches = len(x) // BATCH
    for step in range(EPOCHS * batches):
        drawn = np.concatenate([random.choice(each, BATCH // len(members)) for each in members])
        loss, found = gradients(weights, x[drawn], classes[drawn])
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


def real(quantized: np.ndarray) -> np.ndarray:
    """What the features mean."""
    return ((quantized.astype(np.float32) - FRONT_END.zero_point) * FRONT_END.scale).astype(np.float32)


def network_file(weights: Arrays, seen: list[np.ndarray]) -> bytes:
    """The .tflite; `seen`: what `forward` gives for the features that set the ranges."""
    model = ModelWriter()
    scale, zero_point = FRONT_END.scale, FRONT_END.zero_point
    x = features_in = model.tensor("features", (1, FRAMES, 1, CHANNELS), "int8", (scale, zero_point))
    height = FRAMES
    for n, (taps, apart) in enumerate(LAYERS):
        height -= (taps - 1) * apart
        shaped = weights[f"w{n}"].transpose(2, 0, 1)[:, :, None]  # OHWI
        operands = _operands(model, f"layer{n}", shaped, weights[f"b{n}"], scale)
        scale, zero_point = float(seen[n + 1].max()) / 255, -128
        y = model.tensor(f"layer{n}", (1, height, 1, WIDTH), "int8", (scale, zero_point))
        model.operator("CONV_2D", [x, *operands], [y], "Conv2DOptions", padding=1, stride_w=1, stride_h=1,
                       fused_activation_function=1, dilation_w_factor=1, dilation_h_factor=apart)  # fmt: skip
        x = y
    mean = model.tensor("mean", (1, 1, 1, WIDTH), "int8", (scale, zero_point))
    model.operator("AVERAGE_POOL_2D", [x], [mean], "Pool2DOptions", padding=1, stride_w=1, stride_h=1, filter_width=1,
                   filter_height=height)  # fmt: skip
    operands = _operands(model, "classes", weights["w"].T, weights["b"], scale)
    low, high = float(seen[-1].min()), float(seen[-1].max())
    logits_scale = (high - low) / 255
    logits = model.tensor("logits", (1, len(CLASSES)), "int8", (logits_scale, round(-128 - low / logits_scale)))
    model.operator("FULLY_CONNECTED", [mean, *operands], [logits], "FullyConnectedOptions")
    scores = model.tensor("scores", (1, len(CLASSES)), "int8", (1 / 256, -128))
    model.operator("SOFTMAX", [logits], [scores], "SoftmaxOptions", beta=1.0)
    return model.file([features_in], [scores], "doorbell")


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
    """What the interpreter finds in windows of features."""
    interpreter = runtime.Interpreter.from_bytes(file)
    found = []
    for window in x:
        interpreter.set_input(window.reshape(1, FRAMES, 1, CHANNELS), 0)
        interpreter.invoke()
        found.append(int(interpreter.get_output(0)[0].argmax()))
    return np.array(found)


def main() -> None:
    x, classes = windows(range(TRAINING))
    print(f"{len(x):,} windows to learn from: {np.bincount(classes).tolist()}", flush=True)
    weights = trained(real(x), classes)
    file = network_file(weights, forward(weights, real(x[::4])))
    (HERE / "doorbell.tflite").write_bytes(file)
    (HERE / "mel.tflite").write_bytes(front_end_model(FRONT_END))
    held_out, wanted = windows(range(1000, 1000 + HELD_OUT))
    for name, found in (
        ("floats", forward(weights, real(held_out))[-1].argmax(axis=1)),
        ("int8", int8_classes(file, held_out)),
    ):
        right = [(found[wanted == kind] == kind).mean() for kind in range(len(CLASSES))]
        print(f"{name}: " + ", ".join(f"{of} {share:.2%}" for of, share in zip(CLASSES, right, strict=True)))
    print(f"of {len(held_out):,} windows that were held out: {np.bincount(wanted).tolist()}")


if __name__ == "__main__":
    main()
