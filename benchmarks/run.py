"""Compares tinyfuse and bakeNN, measured here, and on MLPerf Tiny's models the recorded figures of other tools.

    python benchmarks/run.py                                    the models of examples/models, into build/benchmarks
    python benchmarks/run.py --models DIR --cmsis-nn PATH       MLPerf Tiny's models, into benchmarks

writes results.md, results.json and results.svg. It needs what `tinyfuse verify` needs, CMSIS-NN (without it the rows of
its kernels say so), and for bakeNN: pip install bakenn==1.0.0 ai-edge-litert (else its rows are left out).
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import plot  # noqa: E402
import table  # noqa: E402
import tinyfuse_runs  # noqa: E402
from rows import Row, recorded_rows  # noqa: E402

from tinyfuse import __version__  # noqa: E402
from tinyfuse.frontend.reader import read_tflite  # noqa: E402
from tinyfuse.ops import graph_macs  # noqa: E402
from tinyfuse.options import COMPILER_OPTS  # noqa: E402
from tinyfuse.targets import load_target  # noqa: E402
from tinyfuse.verify.emulation import find_emulator  # noqa: E402
from tinyfuse.verify.emulation.build import find_compiler  # noqa: E402

TARGETS = ("cortex-m4", "cortex-m55")
OWN_MODELS = HERE.parent / "examples" / "models"
#: name of a model -> its file, its MACs
Models = dict[str, tuple[Path, int]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="folder of the MLPerf Tiny models (peers.json has the file names); default: our own of examples/models",
    )
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="of these models, as kws")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`")
    parser.add_argument("--compiler-opt", choices=COMPILER_OPTS, default="O2", help="of tinyfuse's modules")
    parser.add_argument("--corners", type=int, default=5, help="inputs compared beside the measured one")
    parser.add_argument("--no-bakenn", action="store_true")
    parser.add_argument("--render", action="store_true", help="measure nothing: write anew from results.json")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="default: benchmarks, of our models build/benchmarks"
    )
    args = parser.parse_args()
    own = args.models is None and not args.render
    args.output = args.output or (HERE.parent / "build" / "benchmarks" if own else HERE)
    return args


def models_of(folder: Path | None, peers: dict) -> Models:
    """The models of peers.json that lie in the folder; without a folder those of examples/models."""
    if folder is None:
        return {path.stem: (path, graph_macs(read_tflite(path))) for path in sorted(OWN_MODELS.glob("*.tflite"))}
    known = {model: (folder / about["file"], about["macs"]) for model, about in peers["models"].items()}
    return {model: given for model, given in known.items() if given[0].exists()}


def jobs(args: argparse.Namespace, models: Models) -> Iterator[tuple[str, Callable[[], Row]]]:
    """(what, function that measures it) of everything that is run."""
    bakenn = not args.no_bakenn and all(map(importlib.util.find_spec, ("bakenn", "ai_edge_litert")))
    for model, (path, macs) in models.items():
        if args.only and model not in args.only:
            continue
        for target in args.targets:
            for options in tinyfuse_runs.SETTINGS:
                what = f"{model} {target} tinyfuse {tinyfuse_runs.title(options)}"
                yield (
                    what,
                    lambda p=path, m=model, n=macs, t=target, o=options: tinyfuse_runs.measure(
                        p, m, n, t, o, args.cmsis_nn, args.compiler_opt, args.corners
                    ),
                )
        if bakenn and "cortex-m4" in args.targets:
            import bakenn_runs

            for setting in bakenn_runs.SETTINGS:
                yield (
                    f"{model} cortex-m4 bakeNN {setting}",
                    lambda p=path, m=model, n=macs, s=setting: bakenn_runs.measure(p, m, n, s, "O3", args.corners),
                )


def head(args: argparse.Namespace) -> list[str]:
    """How the figures came about."""
    target = load_target("cortex-m4")
    compiler = find_compiler(target, "qemu", "O2").version
    return [
        f"Of {datetime.date.today().isoformat()}: tinyfuse {__version__} at -{args.compiler_opt}, bakeNN 1.0.0 at -O3 "
        f"(PyPI, its CMSIS-NN 4.0 overlay), {compiler}, {find_emulator('qemu', target).version}.",
        "",
        "Exact instruction counts of one inference, the second, of numpy's `default_rng(0)` int8 inputs; per MAC of",
        "the model as it is. Exact: every output element equals TensorFlow Lite Micro's, for that input and",
        f"{args.corners} others. bakeNN refuses an open batch, RESHAPE without options and SOFTMAX: its rows are of",
        "copies with a static batch, options added and SOFTMAX removed. Bytes are bytes; static RAM is arena or",
        "workspace, inputs, outputs and what else the tool keeps. Made by `python benchmarks/run.py"
        + (" --models DIR`." if args.models else "`, of the models of examples/models."),
    ]


def measure_all(args: argparse.Namespace, models: Models) -> list[Row]:
    """The measured rows, with progress on stderr."""
    todo = list(jobs(args, models))
    measured = []
    for number, (what, run) in enumerate(todo, 1):
        print(f"[{number}/{len(todo)}] {what}", end=": ", file=sys.stderr, flush=True)
        row = run()
        measured.append(row)
        print(row.failure or f"{row.instructions:,}", file=sys.stderr, flush=True)
    return measured


def main() -> int:
    args = arguments()
    peers = json.loads((HERE / "peers.json").read_text())
    if args.render:
        saved = json.loads((args.output / "results.json").read_text())
        text, measured = saved["about"], [Row(**row) for row in saved["rows"] if not row["recorded"]]
    else:
        text, measured = head(args), measure_all(args, models_of(args.models, peers))
    if not measured:
        print(f"no such model in {args.models or OWN_MODELS}", file=sys.stderr)
        return 2
    recorded = recorded_rows(peers) if args.models or args.render else []
    about = {(row.model, row.target) for row in measured}
    rows = measured + [row for row in recorded if (row.model, row.target) in about]
    order = list(dict.fromkeys(row.model for row in measured))
    rows.sort(key=lambda row: (order.index(row.model), row.target))
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "results.md").write_text(table.markdown(rows, text, peers["tools"] if recorded else {}))
    (args.output / "results.json").write_text(
        json.dumps({"about": text, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
    )
    (args.output / "results.svg").write_text(plot.plot(rows))
    print(f"written: results.md, results.json and results.svg in {args.output}", file=sys.stderr)
    return 0 if all(row.exact for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
