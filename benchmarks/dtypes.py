"""Instructions and arena of a model in other number types: of copies of int8 models whose data are int16 (16x8), and of
copies whose weights are int4, beside int8's and beside CMSIS-NN's kernels.

    python benchmarks/dtypes.py MODEL.tflite ... [--targets cortex-m4 cortex-m55] [--cmsis-nn PATH]

prints a table. The copies are ours, made here: int16 keeps the weights and takes the scales of data from their int8
ranges, with zero point 0 and biases of int64 (tests/support/other_dtypes.py); int4 rounds the weights to -7 to 7
(int4_copy.py) and stands beside int8 with the same weights. They are of no use but to be measured; every figure is of
a run whose outputs equal TensorFlow Lite Micro's. It needs what `tinyfuse verify` needs, and CMSIS-NN 7.0 for its
columns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "support")]

from int4_copy import int4_copy  # noqa: E402
from other_dtypes import graph_in, model_bytes  # noqa: E402
from rows import Row  # noqa: E402
from tinyfuse_runs import measure  # noqa: E402

from tinyfuse.frontend.reader import read_tflite  # noqa: E402
from tinyfuse.options import OPTIMIZE  # noqa: E402
from tinyfuse.targets import all_targets  # noqa: E402

#: how CMSIS-NN's kernels are measured: as its users call them, whole tensors after each other
CMSIS = {"kernels": "cmsis-nn", "fusion": "none"}

#: what each copy's instructions are divided by
BESIDE = {"int16": "int8", "int4": "int8, weights of int4"}


def copies(data: bytes) -> dict[str, bytes]:
    """What is measured of an int8 model: {dtype: .tflite}."""
    return {
        "int8": data,
        "int16": model_bytes(graph_in(read_tflite("copy", data), "int16")),
        BESIDE["int4"]: int4_copy(data, as_int8=True),
        "int4": int4_copy(data),
    }


def figures(args: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, str, Row, Row]]:
    """(model, target, dtype, ours, CMSIS-NN's), with progress on stderr."""
    ours = {"kernels": "tinyfuse", "optimize": args.optimize}
    for model in args.models:
        for dtype, data in copies(model.read_bytes()).items():
            path = folder / f"{model.stem}.tflite"
            path.write_bytes(data)
            for target in args.targets:
                print(f"{model.stem} {dtype} {target}", file=sys.stderr, flush=True)
                rows = [measure(path, model.stem, 1, target, how, args.cmsis_nn, "O2", 2) for how in (ours, CMSIS)]
                yield model.stem, target, dtype, *rows


def table(found: list[tuple[str, str, str, Row, Row]]) -> list[str]:
    """The figures in Markdown; a ratio is of instructions."""
    lines = [
        "| model, core | dtype | instructions | to int8's | arena | CMSIS-NN: instructions | arena | ours to it |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    counted = {key: ours.instructions for *key, ours, _ in found for key in [tuple(key)]}
    for model, target, dtype, ours, theirs in found:
        beside = counted[model, target, BESIDE.get(dtype, dtype)]
        cells = [_number(ours), _ratio(ours.instructions, beside), _arena(ours), _number(theirs), _arena(theirs)]
        cells.append(_ratio(ours.instructions, theirs.instructions))
        lines.append(f"| {model}, {target} | {dtype} | {' | '.join(cells)} |")
    return lines


def _number(row: Row) -> str:
    return row.failure or f"{row.instructions:,}{'' if row.exact else ' WRONG'}"


def _arena(row: Row) -> str:
    return "" if row.arena_bytes is None else f"{row.arena_bytes:,}"


def _ratio(part: int | None, whole: int | None) -> str:
    return "" if part is None or whole is None else f"{part / whole:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.tflite", help="int8 models")
    parser.add_argument("--targets", nargs="+", choices=emulated, default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--optimize", choices=OPTIMIZE, default="speed", help="of our modules")
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        found = list(figures(args, Path(folder)))
    print("\n".join(table(found)))
    return 0 if all(row.exact for *_, ours, theirs in found for row in (ours, theirs) if not row.failure) else 1


if __name__ == "__main__":
    sys.exit(main())
