"""Blocks of transformers, operator by operator and by rows: RAM, instructions and flash.

    python benchmarks/attention.py [--targets cortex-m4 cortex-m55] [--tokens 64] [--width 64] [--heads 4]

builds a text block (an embedding, positions, attention, two dense layers) and a ViT's (of patches), runs each on the
emulated cores, and prints a table, the arena of TensorFlow Lite Micro's interpreter beside it. Every figure is of a
run whose outputs equal the interpreter's. It needs what `tinyfuse verify` needs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "support")]

from attention_networks import text, vision  # noqa: E402
from rows import Row  # noqa: E402
from tinyfuse_runs import measure  # noqa: E402

from tinyfuse.targets import all_targets  # noqa: E402

#: what is compared: options of `tinyfuse gen`
SETTINGS = {
    "operator by operator": {"kernels": "tinyfuse", "fusion": "none"},
    "by rows": {"kernels": "tinyfuse"},
    "by rows, `--optimize ram`": {"kernels": "tinyfuse", "optimize": "ram"},
}

#: prints what the interpreter allocates for a file
_ALLOCATIONS = """
import sys
from tflite_micro.python.tflite_micro import runtime
runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 26).print_allocations()
"""


def interpreter_arena(path: Path) -> int:
    """Bytes of the arena that TensorFlow Lite Micro's interpreter takes on this machine."""
    asked = subprocess.run(
        [sys.executable, "-c", _ALLOCATIONS, str(path)], capture_output=True, text=True, check=True
    )  # fmt: skip
    found = re.search(r"Arena allocation total (\d+) bytes", asked.stdout + asked.stderr)
    if found is None:
        raise SystemExit("the interpreter doesn't say what it allocates")
    return int(found[1])


def line(model: str, setting: str, row: Row) -> str:
    """A measured row in Markdown."""
    if row.failure or not row.exact:
        raise SystemExit(f"{model}, {setting}: {row.failure or 'its outputs are wrong'}")
    numbers = row.arena_bytes, row.instructions, row.flash_code_bytes, row.flash_weight_bytes
    return f"| {model}, {row.target} | {setting} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("--targets", nargs="+", choices=emulated, default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--tokens", type=int, default=64, help="a square's, for the ViT's patches")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dtype", choices=["int8", "float32"], default="int8")
    args = parser.parse_args()
    shape = args.width, args.heads, args.dtype
    models = {"text": text(args.tokens, *shape), "vision": vision(round(args.tokens**0.5), *shape)}
    print("| model, core | | arena | instructions | code | weights |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        for model, data in models.items():
            path = Path(folder) / f"{model}.tflite"
            path.write_bytes(data)
            print(f"| {model} | TensorFlow Lite Micro's interpreter | {interpreter_arena(path):,} | | | |")
            for target in args.targets:
                for setting, options in SETTINGS.items():
                    row = measure(path, model, 1, target, options, None, "O2", 2)
                    print(line(model, setting, row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
