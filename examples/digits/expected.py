"""What TensorFlow Lite Micro computes for the test images: writes expected.json, or checks it.

pip install '.[verify]' && python examples/digits/expected.py [--check]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys

import numpy as np
from digit_images import HERE, quantize, read_test_set, upscale

MODEL = HERE / "digits.tflite"
EXPECTED = HERE / "expected.json"


def interpret(images: np.ndarray) -> np.ndarray:
    """int8[n, 10]: the scores that TFLM's interpreter gives to uint8[n, 8, 8] images of 0..15."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(MODEL))
    scores = []
    for image in quantize(upscale(images)):
        interpreter.set_input(image[np.newaxis, :, :, np.newaxis], 0)
        interpreter.invoke()
        scores.append(interpreter.get_output(0)[0])
    return np.array(scores)


def expected_text() -> str:
    """The contents of expected.json for the model and the test images beside this file."""
    images, labels = read_test_set()
    scores = interpret(images)
    classes = scores.argmax(axis=1)
    model_hash = hashlib.sha256(MODEL.read_bytes()).hexdigest()
    rows = ",\n".join("    " + json.dumps(row.tolist()) for row in scores)
    return (
        f'{{\n  "model_sha256": "{model_hash}",\n'
        f'  "correct": {int((classes == labels).sum())},\n'
        f'  "classes": {json.dumps(classes.tolist())},\n'
        f'  "scores": [\n{rows}\n  ]\n}}\n'
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        EXPECTED.write_text(expected_text())
        return 0
    same = EXPECTED.read_text() == expected_text()
    print("expected.json is what the interpreter computes" if same else "expected.json is stale")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
