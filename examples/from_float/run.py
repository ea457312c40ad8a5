"""Makes C of a float network: quantized, evaluated, and what spoils it.

    python examples/from_float/run.py [--build-dir DIR]

Needs tinyfuse with its extras `quantize` and `verify` in this Python, and gcc. The first 100 of the test images of
examples/digits give the ranges, the others are evaluated; none of them was learned.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import tinyfuse

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "digits"))

from digit_images import read_test_set  # noqa: E402

CALIBRATION = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build-dir", type=Path, default=HERE / "build", metavar="DIR")
    folder = parser.parse_args().build_dir
    folder.mkdir(parents=True, exist_ok=True)

    pixels, labels = read_test_set()
    images = (pixels / 15).astype(np.float32)[..., np.newaxis]
    learned, seen, wanted = images[:CALIBRATION], images[CALIBRATION:], labels[CALIBRATION:]
    for name in ("float", "spoiled"):
        model = HERE / f"digits_{name}.tflite"
        quantized = tinyfuse.quantize(model, learned)
        quantized.write(folder / f"digits_{name}_int8.tflite")
        module = tinyfuse.compile(quantized.data, "cortex-m4", kernels="tinyfuse", name="digits")
        found = module.evaluate(seen, wanted, float_model=model)
        blame = module.blame(model, learned)
        worst = blame.layers[blame.worst[0]]
        print(f"digits_{name}: {module.ram_bytes:,} bytes of RAM, {module.predicted_instructions:,} instructions")
        floats = found.float_model.value if found.float_model is not None else 0.0
        print(f"  float32 {floats:.2%}, generated code {found.score.value:.2%} right of {found.samples} images")
        print(f"  worst layer: {worst.operator}, {worst.share:.0%} of the error: {worst.advice}")
        if name == "float":
            print(f"  C in {module.write(folder / 'digits', force=True).name}")


if __name__ == "__main__":
    main()
