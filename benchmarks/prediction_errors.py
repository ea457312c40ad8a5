"""How well instructions are predicted: of random networks, and of models, predicted beside measured on emulated cores.

    python benchmarks/prediction_errors.py [MODEL.tflite ...] [--targets cortex-m4 cortex-m55] [--networks 50]
        [--lines 20] [--first 0] [--code]

prints a table of errors for each core, of all networks together and of the models; then the networks that are furthest
off, with the kernels whose share in that is largest. With --code all of it is of bytes of code, predicted beside
linked, but for the kernels. It fails where one is off by more than --most. The networks
(tests/support/sized_networks.py) are not those that cost tables were fitted on (benchmarks/cost_networks.py). It needs
what `tinyfuse profile` needs, and three CPU seconds a network.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests" / "support")]

from predictions import Prediction, code_prediction, error, predictions  # noqa: E402
from sized_networks import DTYPES, line_network, sized_network  # noqa: E402

from tinyfuse.errors import CompileError  # noqa: E402
from tinyfuse.targets import all_targets  # noqa: E402

#: networks that are named, the worst first
NAMED = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    emulated = [name for name, target in all_targets().items() if target.qemu_machine]
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--targets", nargs="+", choices=emulated, default=["cortex-m4", "cortex-m55", "cortex-m0plus"])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["int8"])
    parser.add_argument("--networks", type=int, default=50, metavar="N")
    parser.add_argument("--lines", type=int, default=0, metavar="N", help="and N networks of Conv1D layers")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of these networks")
    parser.add_argument("--optimize", default="balanced")
    parser.add_argument("--code", action="store_true", help="bytes of code in the place of instructions")
    parser.add_argument("--most", type=float, default=0.05, metavar="SHARE", help="the largest error that is well")
    args = parser.parse_args()
    print("| core | of | mean error | bias | worst | beyond 5 % |\n|---|---|---|---|---|---|")
    worst, told, looked = 0.0, [], code_prediction if args.code else predictions
    for target in args.targets:
        for dtype in args.dtypes:
            drawn = [("network", sized_network, args.networks), ("line", line_network, args.lines)]
            found = {
                f"{name} {seed}": one
                for name, draw, count in drawn
                for seed in range(args.first, args.first + count)
                if (one := network(looked, draw, seed, dtype, target))
            }
            worst = max(worst, row(target, f"{len(found)} networks of {dtype}", found) if found else 0.0)
            told += [f"{target} {dtype} {name}" for name in furthest(found)]
        for path in args.models:
            one = looked(path.read_bytes(), target, optimize=args.optimize)
            worst = max(worst, row(target, path.stem, {path.stem: one}))
    print("", *told, sep="\n")
    return int(worst > args.most)


def network(
    looked: Callable[..., list[Prediction]], draw: Callable[[int, str], bytes], seed: int, dtype: str, target: str
) -> list[Prediction] | None:
    """None for one that is refused, as TFLM refuses it."""
    print(f"{target} {dtype} {seed}", end="\r", file=sys.stderr, flush=True)
    try:
        return looked(draw(seed, dtype), target)
    except CompileError:
        return None


def row(target: str, what: str, found: dict[str, list[Prediction]]) -> float:
    """Prints one of the table; the largest error."""
    errors = list(map(error, found.values()))
    worst, beyond = max(errors, key=abs), sum(abs(each) > 0.05 for each in errors)
    mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
    print(f"| {target} | {what} | {mean:.1%} | {bias:+.1%} | {worst:+.1%} | {beyond} |", flush=True)
    return abs(worst)


def furthest(found: dict[str, list[Prediction]]) -> list[str]:
    """Of those that are furthest off: the error, and the kernels that make most of it."""
    named = sorted(found, key=lambda name: -abs(error(found[name])))[:NAMED]
    return [f"{name}: {error(found[name]):+.1%}, of which {'; '.join(shares(found[name]))}" for name in named]


def shares(one: list[Prediction]) -> list[str]:
    total, of = sum(each.measured for each in one), Counter[str]()
    for each in one:
        of[each.entry] += ((each.predicted or 0) - each.measured) / total
    return [f"{share:+.1%} {entry}" for entry, share in sorted(of.items(), key=lambda item: -abs(item[1]))[:NAMED]]


if __name__ == "__main__":
    sys.exit(main())
