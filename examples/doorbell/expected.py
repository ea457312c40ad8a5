"""What TensorFlow Lite Micro computes for the recording: writes expected.json, or checks it.

pip install '.[verify]' && python examples/doorbell/expected.py [--check]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys

import numpy as np
from sounds import HERE, RECORDING, read_wav

NETWORK, FRONT_END = HERE / "doorbell.tflite", HERE / "mel.tflite"
EXPECTED = HERE / "expected.json"


def interpret(samples: np.ndarray) -> tuple[int, np.ndarray]:
    """(the first step that sees a whole window, the scores of it and of all later ones, 0 to 255), of the two files run
    one after the other for every 20 ms of int16 samples."""
    from tflite_micro import runtime

    front, network = (runtime.Interpreter.from_file(str(file)) for file in (FRONT_END, NETWORK))
    frames = network.get_input_details(0)["shape"][1]
    stride = front.get_input_details(0)["shape"][0]
    scores = []
    for start in range(0, samples.size - stride + 1, stride):
        front.set_input(samples[start : start + stride], 0)
        front.invoke()
        network.set_input(front.get_output(0), 0)
        network.invoke()
        scores.append(network.get_output(0)[0].astype(int) + 128)
    first = int(frames) - 1
    return first, np.array(scores[first:])


def sha256() -> dict[str, str]:
    """Of the files that the scores depend on."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (NETWORK, FRONT_END, RECORDING)}


def expected_text() -> str:
    """The contents of expected.json for the models and the recording beside this file."""
    first, scores = interpret(read_wav(RECORDING))
    rows = ",\n".join("    " + json.dumps(row.tolist()) for row in scores)
    return f'{{\n  "sha256": {json.dumps(sha256())},\n  "first_step": {first},\n  "scores": [\n{rows}\n  ]\n}}\n'


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
