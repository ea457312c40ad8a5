"""Fits what a board's flash adds to its core's cycles on times that others published of it.

    python benchmarks/fit_board.py --models ../shared/models --cmsis-nn PATH

counts estimated cycles and bytes loaded from flash of the same models in the same kernels, prints what fits their
times best (`fetch`, and cycles for a byte of flash: [boards] of targets/*.toml), and how far off each model is by what
fits the others. With --recorded it takes the counts of published_times.json instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from tinyfuse.cli.profile import profile  # noqa: E402
from tinyfuse.cli.request import Request  # noqa: E402
from tinyfuse.options import ProfileOptions  # noqa: E402
from tinyfuse.targets import load_target  # noqa: E402

PUBLISHED = HERE / "published_times.json"

#: a model's cycles of the core, bytes loaded from flash, and cycles that the board took
Run = tuple[float, float, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", type=Path, default=HERE.parent.parent / "shared" / "models", metavar="DIR")
    parser.add_argument("--cmsis-nn", metavar="PATH", help="as of `tinyfuse verify`")
    parser.add_argument("--recorded", action="store_true", help="measure nothing")
    args = parser.parse_args()
    told = json.loads(PUBLISHED.read_text())
    if not args.recorded:
        for about in told["models"].values():
            about |= counted(args.models / about["file"], told["target"], args.cmsis_nn)
    runs = recorded_runs(told)
    fetch, flash_byte = fitted(runs)
    print(f"cycles = {fetch:.3f} * cycles of the core + {flash_byte:.3f} * bytes loaded from flash")
    for name, error in left_out(runs).items():
        core, flash, cycles = runs[name]
        off = (fetch * core + flash_byte * flash) / cycles - 1
        print(f"{name}: {core:,.0f} cycles, {flash:,.0f} bytes; off by {off:+.1%}, left out of the fit {error:+.1%}")
    return 0


def counted(model: Path, target: str, cmsis_nn: str | None) -> dict[str, int]:
    """What one inference takes, each operator in CMSIS-NN's function."""
    request = Request(
        str(model), target, kernels="cmsis-nn", fusion="basic", optimize="speed", weights="packed",
        cmsis_nn_path=cmsis_nn,
    )  # fmt: skip
    data = profile(request, lambda text: None, ProfileOptions())
    return {"core_cycles": data["estimated_cycles"], "flash_bytes": data["loaded_bytes"]["flash"]}


def recorded_runs(told: dict) -> dict[str, Run]:
    """Of published_times.json."""
    (board,) = (board for board in load_target(told["target"]).boards if board.name == told["board"])
    return {
        name: (each["core_cycles"], each["flash_bytes"], 1000 * board.mhz * each["milliseconds"])
        for name, each in told["models"].items()
    }


def fitted(runs: Mapping[str, Run]) -> tuple[float, float]:
    """(fetch, cycles for a byte of flash) of the least squares of relative errors."""
    rows = np.array([(core / cycles, flash / cycles) for core, flash, cycles in runs.values()])
    fetch, flash_byte = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return float(fetch), float(flash_byte)


def left_out(runs: Mapping[str, Run]) -> dict[str, float]:
    """The relative error of each by what fits all the others."""
    errors = {}
    for name, (core, flash, cycles) in runs.items():
        fetch, flash_byte = fitted({other: run for other, run in runs.items() if other != name})
        errors[name] = (fetch * core + flash_byte * flash) / cycles - 1
    return errors


if __name__ == "__main__":
    sys.exit(main())
