"""Small random float32 networks, and faults planted into their quantized twins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from tflite_builder import ModelBuilder

SIDE = 10


@dataclass
class Conv:
    """A convolution with ReLU; `weights` [out, kernel, kernel, in], or [1, kernel, kernel, channels] of a depthwise
    one; `after` is the place of the one whose output it reads, -1 for the input."""

    weights: np.ndarray
    bias: np.ndarray
    depthwise: bool


@dataclass
class Network:
    """Convolutions one after the other, the mean over the image, and a dense layer. Layer i makes the tensor `y{i}`,
    the mean `mean`, the dense layer `logits`."""

    channels: int
    convs: list[Conv] = field(default_factory=list)
    dense: np.ndarray | None = None

    def file(self) -> bytes:
        """The bytes of its float .tflite."""
        model = ModelBuilder()
        before = first = model.tensor("x", (1, SIDE, SIDE, self.channels), "float32")
        for place, conv in enumerate(self.convs):
            kind = "DEPTHWISE_CONV_2D" if conv.depthwise else "CONV_2D"
            weights = model.tensor(f"w{place}", conv.weights.shape, "float32", data=conv.weights)
            bias = model.tensor(f"b{place}", conv.bias.shape, "float32", data=conv.bias)
            output = model.tensor(f"y{place}", (1, SIDE, SIDE, conv.bias.size), "float32")
            options = {"depth_multiplier": 1} if conv.depthwise else {}
            model.op(
                kind, [before, weights, bias], [output], version=1, padding="SAME", stride_w=1, stride_h=1,
                dilation_w_factor=1, dilation_h_factor=1, fused_activation_function="RELU", **options,
            )  # fmt: skip
            before = output
        width = self.convs[-1].bias.size
        axes = model.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
        mean = model.tensor("mean", (1, width), "float32")
        model.op("MEAN", [before, axes], [mean], version=1, keep_dims=False)
        weights = model.tensor("wd", self.dense.shape, "float32", data=self.dense)
        bias = model.tensor("bd", (len(self.dense),), "float32", data=np.zeros(len(self.dense), np.float32))
        logits = model.tensor("logits", (1, len(self.dense)), "float32")
        model.op(
            "FULLY_CONNECTED", [mean, weights, bias], [logits], version=1, fused_activation_function="NONE",
            weights_format="DEFAULT", keep_num_dims=False,
        )  # fmt: skip
        return model.build([first], [logits])

    def inputs(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Samples of its input."""
        return rng.standard_normal((count, SIDE, SIDE, self.channels)).astype(np.float32)


def random_network(rng: np.random.Generator) -> Network:
    """Four to seven convolutions of 8 to 16 channels; the first and the last are not depthwise."""
    network = Network(int(rng.integers(1, 4)))
    width, count = network.channels, int(rng.integers(4, 8))
    for place in range(count):
        depthwise = 0 < place < count - 1 and rng.random() < 0.4
        kernel = 3 if depthwise else int(rng.choice([1, 3]))
        out = width if depthwise else int(rng.integers(8, 17))
        shape = (1, kernel, kernel, width) if depthwise else (out, kernel, kernel, width)
        gain = np.sqrt(2 / (kernel * kernel * (1 if depthwise else width)))
        weights = (rng.standard_normal(shape) * gain).astype(np.float32)
        network.convs.append(Conv(weights, (0.1 * rng.standard_normal(out)).astype(np.float32), depthwise))
        width = out
    network.dense = (rng.standard_normal((10, width)) * np.sqrt(1 / width)).astype(np.float32)
    return network


def enlarge_channel(network: Network, place: int, channel: int, factor: float) -> None:
    """Makes a channel of a layer's output `factor` times as large, and divides what reads it: the network computes what
    it did before, and its layer `place` needs another step for that channel than for the others."""
    conv = network.convs[place]
    axis = 3 if conv.depthwise else 0
    np.moveaxis(conv.weights, axis, 0)[channel] *= factor
    conv.bias[channel] *= factor
    following = network.convs[place + 1].weights if place + 1 < len(network.convs) else network.dense
    following[..., channel] /= factor


def quantized_with(data: bytes, samples: np.ndarray, ranges: dict[str, float], per_tensor: bool = False) -> bytes:
    """The int8 model that ai-edge-quantizer makes of a float file with a signature, where the ranges of the named
    tensors are so many times as wide as they were found."""
    from ai_edge_quantizer import calibrator, quantizer, recipe_manager
    from ai_edge_quantizer.utils import qsv_utils

    from tinyfuse.quantization.recipes import recipe

    rules = recipe("int8")
    if per_tensor:
        rules[0]["op_config"]["weight_tensor_config"]["granularity"] = "TENSORWISE"
    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(rules)
    mode = calibrator.CalibrationMode.CALIBRATION_PRESERVE_ALL_TENSORS
    calibration = calibrator.Calibrator(data, 1, mode=mode, qsv_update_func=qsv_utils.min_max_update)
    calibration.calibrate({"serving_default": [{"x": sample[None]} for sample in samples]}, manager)
    found = calibration.get_model_qsvs()
    for name, factor in ranges.items():
        for end in ("min", "max"):
            found[name][end] = found[name][end] * np.float32(factor)
    made = quantizer.Quantizer(data, rules)
    return bytes(made.quantize(found, enable_progress_report=False).quantized_model)
