"""Which networks of a search space are worth training for a microcontroller: an example of tinyfuse.estimate.

    python examples/architecture_search/search.py --target cortex-m4 --max-ram 8K

Each network is estimated in a process of a pool; no compiler and no emulator is needed.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from networks import Architecture, search_space, tflite_bytes

import tinyfuse


def estimated(architecture: Architecture, target: str) -> tinyfuse.Estimate:
    """What a network takes; runs in a worker."""
    return tinyfuse.estimate(tflite_bytes(architecture), target)


def best(estimates: dict[Architecture, tinyfuse.Estimate]) -> list[Architecture]:
    """The Pareto set: networks of which no other one has at least their MACs and takes no more RAM and instructions,
    with one of the three better. MACs stand for what a network can learn; a real search would put its accuracy
    there."""
    figures = {
        architecture: (e.ram_bytes, e.predicted_instructions or 0, -e.macs) for architecture, e in estimates.items()
    }

    def beaten(mine: tuple[int, ...]) -> bool:
        return any(
            other != mine and all(o <= m for o, m in zip(other, mine, strict=True)) for other in figures.values()
        )

    return [architecture for architecture, mine in figures.items() if not beaten(mine)]


def kilobytes(text: str) -> int:
    return int(text.upper().removesuffix("K")) * (1024 if text.upper().endswith("K") else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cortex-m4", help="a core of `tinyfuse targets`")
    parser.add_argument("--max-ram", type=kilobytes, help="leave out networks that take more RAM: bytes, or 16K")
    parser.add_argument("--max-flash", type=kilobytes, help="and those that take more flash")
    parser.add_argument("--first", type=int, help="estimate so many networks alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()

    architectures = list(search_space())[: arguments.first]
    start = time.perf_counter()
    # a new process for each worker: forking one that has threads is not safe
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        found = pool.map(partial(estimated, target=arguments.target), architectures)
        estimates = dict(zip(architectures, found, strict=True))
    seconds = time.perf_counter() - start
    fitting = {
        architecture: estimate
        for architecture, estimate in estimates.items()
        if (arguments.max_ram is None or estimate.ram_bytes <= arguments.max_ram)
        and (arguments.max_flash is None or estimate.flash_bytes <= arguments.max_flash)
    }
    chosen = best(fitting)
    print(f"{'network':<32} {'RAM':>8} {'flash':>8} {'instructions':>13} {'MACs':>11}")
    for architecture, estimate in sorted(fitting.items(), key=lambda found: found[1].ram_bytes):
        instructions = "unknown" if estimate.predicted_instructions is None else f"{estimate.predicted_instructions:,}"
        mark = "  *" if architecture in chosen else ""
        print(
            f"{architecture!s:<32} {estimate.ram_bytes:>8,} {estimate.flash_bytes:>8,} {instructions:>13} "
            f"{estimate.macs:>11,}{mark}"
        )
    print(
        f"{len(chosen)} of {len(fitting)} are in the Pareto set (*); {len(estimates) - len(fitting)} don't "
        f"fit; {len(estimates)} networks in {seconds:.1f} s, {arguments.jobs} processes"
    )


if __name__ == "__main__":
    main()
