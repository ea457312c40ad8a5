"""Blocks whose elementwise operators become loops, and layers that become one: before and after.

    python benchmarks/fused_blocks.py [--targets cortex-m4] [--tables loops between wide siblings] [--optimize speed]

builds each block, runs it on the emulated cores without the rewriting and with it, and prints the tables of
docs/fusion-loops.md and docs/fusion-rewrites.md: instructions, bytes of arena and of code. Every figure is of a run
whose outputs equal those of TensorFlow Lite Micro. It needs what `tinyfuse verify` needs.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "support")]

from random_graphs import Sketch, Value  # noqa: E402
from rows import Row  # noqa: E402
from tinyfuse_runs import measure  # noqa: E402

from tinyfuse.schedule.variants import variants  # noqa: E402
from tinyfuse.targets import all_targets  # noqa: E402

IMAGE = (1, 24, 24, 16)

#: operators on an image and others of its shape
Block = Callable[[Sketch, Value, Value, Value], Value]


def gated(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    return s.add(s.scale_channels(s.add(x, s.unary(gate, "LOGISTIC"), kind="MUL"), "MUL"), residual)


def plainly_gated(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    return s.add(s.add(x, gate, kind="MUL"), residual)


def excited(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    vector = s.unary(s.mean(gate, keep_dims=True), "LOGISTIC")
    return s.add(s.add(x, vector, kind="MUL"), residual, activation="RELU")


def swish_in_parts(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    """A residual, then y * min(max(y + 3, 0), 6) / 6."""
    y = s.add(x, residual)
    raised = s.relu(s.with_constant(y, "ADD"), "RELU6")
    return s.add(y, s.with_constant(raised, "MUL"), kind="MUL")


def two_residuals(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    product = s.add(s.unary(x, "TANH"), s.unary(gate, "LOGISTIC"), kind="MUL")
    return s.add(s.add(s.add(product, x, kind="MAXIMUM"), residual), gate)


def normalized(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    less = s.add(x, s.mean(gate, keep_dims=True), kind="SUB")
    return s.add(s.scale_channels(s.scale_channels(less, "MUL"), "ADD"), residual)


def far(s: Sketch, x: Value, gate: Value, residual: Value) -> Value:
    away = s.add(s.add(x, gate, kind="SQUARED_DIFFERENCE"), residual, kind="MAXIMUM")
    return s.relu(s.add(away, gate, kind="SUB"), "RELU6")


LOOPS: dict[str, Block] = {
    "x * LOGISTIC(gate) * scale + residual": gated,
    "squeeze and excitation: x * LOGISTIC(vector) + residual, RELU": excited,
    "hard-swish in four parts behind a residual ADD": swish_in_parts,
    "TANH(a) * LOGISTIC(b), MAXIMUM, two residuals": two_residuals,
    "(x - mean) * scale + shift a channel, residual": normalized,
}
WIDE: dict[str, Block] = {
    "x * gate + residual": plainly_gated,
    "(x - mean) * scale + shift a channel, residual": normalized,
    "SQUARED_DIFFERENCE, MAXIMUM, SUB, RELU6": far,
}

#: by what stands in docs/fusion-rewrites.md: shape, then windows, strides and filters of each layer
SIBLINGS = {
    "two 3x3 of 8 filters": (IMAGE, [(3, 1, 8)] * 2),
    "three 1x1 of 8": (IMAGE, [(1, 1, 8)] * 3),
    "3x3, stride 2, of 8 and of 24": ((1, 48, 48, 3), [(3, 2, 8), (3, 2, 24)]),
    "five 1x1 of 3": (IMAGE, [(1, 1, 3)] * 5),
}


def alone(block: Block, dtype: str = "int8") -> bytes:
    s = Sketch(1, dtype=dtype)
    images = [s.value(IMAGE) for _ in range(3)]
    return s.build(images, [block(s, *images)])


def between(block: Block, dtype: str = "int8") -> bytes:
    """Behind a 3x3 convolution and a 1x1 beside it, in front of a 1x1."""
    s = Sketch(1, dtype=dtype)
    image = s.value(IMAGE)
    x, gate = s.conv(image, 16, (3, 3)), s.conv(image, 16, (1, 1))
    return s.build([image], [s.conv(block(s, x, gate, image), 16, (1, 1))])


def siblings(shape: tuple[int, ...], layers: list[tuple[int, int, int]]) -> bytes:
    """Layers on one image whose results are joined in front of a 1x1 convolution."""
    s = Sketch(1)
    image = s.value(shape)
    s.results = (0.1, -128)
    parts = [
        s.conv(image, filters, (size, size), (stride, stride), activation="RELU") for size, stride, filters in layers
    ]
    joined = s.concatenate(parts, 3)
    s.results = None
    return s.build([image], [s.conv(joined, 16, (1, 1))])


@contextlib.contextmanager
def unmerged() -> Iterator[None]:
    """No operators become a loop."""

    def merge_elementwise(graph, context, for_ram=False):
        return graph

    with mock.patch.object(variants, "merge_elementwise", merge_elementwise):
        yield


@contextlib.contextmanager
def unjoined() -> Iterator[None]:
    """No layers become one."""
    module = sys.modules["tinyfuse.rewrite.join_siblings"]
    with mock.patch.object(module, "_likeness", return_value=None):
        yield


def run(data: bytes, target: str, options: dict[str, str], without: contextlib.AbstractContextManager[None]) -> Row:
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder, without:
        path = Path(folder) / "block.tflite"
        path.write_bytes(data)
        row = measure(path, "block", 1, target, options, None, "O2", 2)
    if row.failure or not row.exact:
        raise SystemExit(f"{target}: {row.failure or 'its outputs are wrong'}")
    return row


def table(head: str, models: dict[str, bytes], without: Callable, targets: list[str], **options: str) -> None:
    """Instructions, bytes of arena and code."""
    cells = [f"{target}, {way}" for target in targets for way in ("before", "after")]
    print(f"| {head} | {' | '.join(cells)} |\n|{'---|' * (len(cells) + 1)}", flush=True)
    for name, data in models.items():
        rows = [run(data, target, options, way()) for target in targets for way in (without, contextlib.nullcontext)]
        cells = [f"{row.instructions:,}, {row.arena_bytes:,}, {row.flash_code_bytes:,}" for row in rows]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    names = ["loops", "between", "wide", "siblings"]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--tables", nargs="+", choices=names, default=names)
    parser.add_argument("--optimize", default="balanced")
    args = parser.parse_args()
    if "loops" in args.tables:
        table(
            "operators",
            {name: alone(block) for name, block in LOOPS.items()},
            unmerged,
            args.targets,
            optimize=args.optimize,
        )
    if "between" in args.tables:
        models = {name: between(block) for name, block in LOOPS.items()}
        table("between convolutions", models, unmerged, args.targets, optimize=args.optimize)
    if "wide" in args.tables:
        models = {
            f"{name}, {dtype}": alone(block, dtype) for dtype in ("int16", "float32") for name, block in WIDE.items()
        }
        table("operators alone", models, unmerged, args.targets, optimize=args.optimize)
    if "siblings" in args.tables:
        models = {name: siblings(*layers) for name, layers in SIBLINGS.items()}
        table(
            "over 24x24x16 (48x48x3 the third)",
            models,
            unjoined,
            args.targets,
            optimize=args.optimize,
            kernels="tinyfuse",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
