"""What TensorFlow Lite Micro computes for the film: writes expected.json, or checks it.

pip install '.[verify]' && python examples/parts/expected.py [--check]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys

import numpy as np
from scenes import FILM, HERE, read_pgm, seen

NETWORK = HERE / "parts.tflite"
EXPECTED = HERE / "expected.json"


def interpret(pictures: np.ndarray) -> list[list[int]]:
    """The scores of each class, 0 to 255, of uint8 pictures [n, 120, 160]."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(NETWORK))
    scores = []
    for pixels in seen(pictures):
        interpreter.set_input(pixels[np.newaxis], 0)
        interpreter.invoke()
        scores.append((interpreter.get_output(0)[0].astype(int) + 128).tolist())
    return scores


def sha256() -> dict[str, str]:
    """Of the files that the scores depend on."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (NETWORK, FILM)}


def expected_text() -> str:
    """The contents of expected.json for the model and the film beside this file."""
    rows = ",\n".join("    " + json.dumps(row) for row in interpret(read_pgm(FILM)))
    return f'{{\n  "sha256": {json.dumps(sha256())},\n  "scores": [\n{rows}\n  ]\n}}\n'


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
