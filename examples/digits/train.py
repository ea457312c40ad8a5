"""Trains the digits model and writes digits.tflite and test_images.[ch]. Run by hand, never in CI.

    pip install '.[train]' && python examples/digits/train.py

The last 360 of scikit-learn's 1,797 digits are held out. They are not shuffled first: the data set
is ordered by writer, so most of those hands were never seen in training. Weights, the quantization
ranges and every choice below come from the first 1,437 images alone.

The same versions on the same kind of processor give the same file again; another processor may
round a float differently and train a slightly different model.
"""

from __future__ import annotations

import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its summation order depends on the processor
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import platform

import numpy as np
import sklearn
import tensorflow as tf
from digit_images import HERE, LARGE, quantize, upscale, write_test_set
from sklearn.datasets import load_digits
from tensorflow.keras import Sequential, layers

HELD_OUT = 360
EPOCHS = 60
SEED = 1


def build_model(batch: int | None = None) -> Sequential:
    """29x29 -> 15x15 -> 7x7 -> 4x4: 3x3 convolution, four depthwise-separable blocks, classifier."""

    def activated() -> list[layers.Layer]:
        return [layers.BatchNormalization(), layers.ReLU()]

    def block(channels: int, stride: int = 1, padding: str = "same") -> list[layers.Layer]:
        depthwise = layers.DepthwiseConv2D(3, stride, padding, use_bias=False)
        pointwise = layers.Conv2D(channels, 1, use_bias=False)
        return [depthwise, *activated(), pointwise, *activated()]

    return Sequential(
        [
            layers.Input((LARGE, LARGE, 1), batch_size=batch, name="image"),
            layers.Conv2D(16, 3, 2, "same", use_bias=False),
            *activated(),
            *block(24),
            *block(32, stride=2, padding="valid"),
            *block(32),
            *block(48, stride=2),
            layers.AveragePooling2D(4),
            layers.Flatten(),
            layers.Dense(10),
            layers.Softmax(),
        ],
        name="digits",
    )


def train(model: Sequential, images: np.ndarray, labels: np.ndarray) -> None:
    """Fits `model` in place to images of 0..1, moved, turned and enlarged a little at random."""
    distort = [
        layers.RandomTranslation(0.08, 0.08, fill_mode="constant"),
        layers.RandomRotation(0.03, fill_mode="constant"),
        layers.RandomZoom(0.1, fill_mode="constant"),
    ]
    trainer = Sequential([layers.Input(images.shape[1:]), *distort, model])
    steps = EPOCHS * -(-len(images) // 32)
    rate = tf.keras.optimizers.schedules.CosineDecay(4e-3, steps)
    trainer.compile(
        tf.keras.optimizers.Adam(rate),
        # Smoothed labels leave scores between all and nothing: more for a bit-exact test to compare.
        tf.keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
        metrics=["accuracy"],
    )
    trainer.fit(images, tf.one_hot(labels, 10), batch_size=32, epochs=EPOCHS, verbose=2)


def convert(model: Sequential, images: np.ndarray) -> bytes:
    """The .tflite of `model`, int8 from input to output; `images` set its quantization ranges."""
    # A fixed batch of one: with an open one, Flatten becomes shape arithmetic at run time.
    fixed = build_model(batch=1)
    fixed.set_weights(model.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[np.newaxis]] for image in images)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def int8_accuracy(tflite: bytes, pixels: np.ndarray, labels: np.ndarray) -> float:
    """The share of uint8[n, 29, 29] images that TensorFlow Lite's reference kernels get right."""
    interpreter = tf.lite.Interpreter(
        model_content=tflite,
        experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    assert source["quantization"][1] == -128
    assert np.isclose(source["quantization"][0], 1 / 255)
    right = 0
    for image, label in zip(quantize(pixels), labels, strict=True):
        interpreter.set_tensor(source["index"], image[np.newaxis, :, :, np.newaxis])
        interpreter.invoke()
        right += int(interpreter.get_tensor(result["index"]).argmax() == label)
    return right / len(labels)


def main() -> None:
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    versions = (
        f"Python {platform.python_version()}, TensorFlow {tf.__version__}, "
        f"Keras {tf.keras.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
    )

    data = load_digits()
    small = np.minimum(data.images, 15).astype(np.uint8)
    pixels, labels = upscale(small), data.target.astype(np.uint8)
    images = (pixels / np.float32(255))[..., np.newaxis]

    model = build_model()
    train(model, images[:-HELD_OUT], labels[:-HELD_OUT])
    tflite = convert(model, images[:-HELD_OUT])
    (HERE / "digits.tflite").write_bytes(tflite)
    write_test_set(small[-HELD_OUT:], labels[-HELD_OUT:], f"the last {HELD_OUT} of scikit-learn's digits")

    held_out = images[-HELD_OUT:], labels[-HELD_OUT:]
    float_accuracy = np.mean(model.predict(held_out[0], verbose=0).argmax(1) == held_out[1])
    print(versions)
    print(f"digits.tflite: {len(tflite)} bytes")
    print(f"float32: {float_accuracy:.4f} of the {HELD_OUT} held-out images")
    print(f"int8:    {int8_accuracy(tflite, pixels[-HELD_OUT:], held_out[1]):.4f}")


if __name__ == "__main__":
    main()
