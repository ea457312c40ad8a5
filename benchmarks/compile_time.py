"""How long `tinyfuse report` takes: CPU seconds of each model, by table.

python benchmarks/compile_time.py [MODEL.tflite ...] [--target cortex-m4] [--only NAME ...]

Beside the models that are given: networks of our own that are hard to plan. CPU time of the process and of the
compiler that it calls to measure the code, so that other load on the machine counts little.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from random_graphs import Sketch, Value  # noqa: E402

#: (expansion, channels, repetitions, stride of the first) of MobileNetV2's bottlenecks (Sandler and others,
#: "MobileNetV2: Inverted residuals and linear bottlenecks", 2018, table 2)
BOTTLENECKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(size: int = 224, classes: int = 1000) -> bytes:
    """MobileNetV2 at width 1, with random weights."""
    sketch = Sketch(1)
    image = sketch.value((1, size, size, 3))
    x = sketch.conv(image, 32, (3, 3), (2, 2), activation="RELU6")
    for expansion, channels, repetitions, stride in BOTTLENECKS:
        for repetition in range(repetitions):
            x = inverted_residual(sketch, x, expansion, channels, stride if repetition == 0 else 1)
    x = sketch.mean(sketch.conv(x, 1280, (1, 1), activation="RELU6"))
    return sketch.build([image], [sketch.softmax(sketch.fully_connected(x, classes))])


def inverted_residual(sketch: Sketch, x: Value, expansion: int, channels: int, stride: int = 1) -> Value:
    wide = x if expansion == 1 else sketch.conv(x, expansion * x.shape[3], (1, 1), activation="RELU6")
    deep = sketch.depthwise(wide, (3, 3), (stride, stride), activation="RELU6")
    y = sketch.conv(deep, channels, (1, 1))
    return sketch.add(x, y) if y.shape == x.shape else y


def wide_graph(branches: int = 32, length: int = 2) -> bytes:
    """Branches that all read one image and meet in a tree of additions: 95 operators in orders without end."""
    sketch = Sketch(2)
    image = sketch.value((1, 16, 16, 4))
    ends = []
    for branch in range(branches):
        x = image
        for layer in range(length - 1):
            x = sketch.conv(x, 4 + (branch + layer) % 5, (1, 1) if layer % 2 else (3, 3))
        ends.append(sketch.conv(x, 8, (1, 1)))
    while len(ends) > 1:
        ends = [*(sketch.add(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)), *ends[len(ends) // 2 * 2 :]]
    return sketch.build([image], ends)


def long_graph(operators: int = 1000) -> bytes:
    """Blocks of ten operators: an inverted residual, and three branches of one tensor that are added up."""
    sketch = Sketch(3)
    image = x = sketch.value((1, 16, 16, 8))
    for _ in range(operators // 10):
        x = sketch.relu(inverted_residual(sketch, x, 3, 8), same=False)
        branches = [sketch.depthwise(x, (3, 3)), sketch.conv(x, 8, (1, 1)), sketch.conv(x, 8, (3, 3))]
        x = sketch.add(sketch.add(branches[0], branches[1]), branches[2])
    return sketch.build([image], [x])


GENERATED: dict[str, Callable[[], bytes]] = {
    "mobilenet_v2_224": mobilenet_v2, "wide_95": wide_graph, "long_1000": long_graph,
}  # fmt: skip


def cpu_seconds(model: Path, target: str, options: list[str]) -> float:
    """User and system time of one report."""
    before = os.times()
    command = [sys.executable, "-m", "tinyfuse", "report", str(model), "--target", target, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, help="files to plan beside the generated networks")
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--only", nargs="*", choices=GENERATED, default=list(GENERATED), help="generated networks")
    parser.add_argument("--option", action="append", default=[], help="handed to report, such as --option=--feed-rows")
    arguments = parser.parse_args()
    print("| model | CPU seconds |\n|---|---:|")
    with tempfile.TemporaryDirectory() as work:
        generated = []
        for name in arguments.only:
            generated.append(Path(work) / f"{name}.tflite")
            generated[-1].write_bytes(GENERATED[name]())
        for model in [*arguments.models, *generated]:
            print(f"| {model.stem} | {cpu_seconds(model, arguments.target, arguments.option):.1f} |", flush=True)


if __name__ == "__main__":
    main()
