"""What a batch normalization behind a layer takes, beside a fused RELU alone.

    python benchmarks/normalized.py [--targets cortex-m4 cortex-m55] [--optimize speed] [--layers 1x1,96] [--pixels 8]

runs layers of tests/support/normalized_networks.py on the emulated cores, and prints a table. Every figure is of a run
whose outputs equal those of TensorFlow Lite Micro. It needs what `tinyfuse verify` needs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "support")]

from normalized_networks import layer  # noqa: E402
from tinyfuse_runs import measure  # noqa: E402

from tinyfuse.targets import all_targets  # noqa: E402

#: kind and channels
LAYERS = ("1x1,16", "1x1,64", "3x3,16", "depthwise,16", "depthwise,64", "dense,64")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--optimize", default="balanced")
    parser.add_argument("--layers", nargs="+", metavar="KIND,CHANNELS", default=LAYERS)
    parser.add_argument("--pixels", type=int, default=16, help="of a row, and rows")
    args = parser.parse_args()
    print("| layer | core | RELU: instructions | arena | MUL, ADD, RELU: instructions | arena | |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        for kind, channels in (one.split(",") for one in args.layers):
            for target in args.targets:
                found = []
                for normalized in (False, True):
                    path = Path(folder) / f"{kind}_{channels}_{normalized}.tflite"
                    path.write_bytes(layer(kind, int(channels), normalized, args.pixels))
                    options = {"optimize": args.optimize, "weights": "packed"}
                    found.append(measure(path, kind, 1, target, options, None, "O2", 2))
                if any(row.failure or not row.exact for row in found):
                    raise SystemExit(f"{kind}, {channels}, {target}: {[row.failure or row.exact for row in found]}")
                (plain, _), (whole, _) = figures = [(row.instructions, row.arena_bytes) for row in found]
                cells = " | ".join(f"{count:,} | {arena:,}" for count, arena in figures)
                print(f"| {kind}, {channels} | {target} | {cells} | {whole / plain - 1:+.1%} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
