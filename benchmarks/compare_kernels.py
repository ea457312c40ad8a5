"""Where our kernels are faster and where CMSIS-NN's, as the cost tables predict.

    python benchmarks/compare_kernels.py [--targets cortex-m4 ...]

prints a Markdown table over the operators that the tables were measured on (cost_grid.py): of each kind,
CMSIS-NN's instructions relative to our fastest kernel's, and how often `--kernels mixed` takes CMSIS-NN's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cost_grid import operators  # noqa: E402
from measure_costs import DRAWN, DRAWN_OF_OTHERS  # noqa: E402

from tinyfuse.cost import cost_table  # noqa: E402
from tinyfuse.ir import Op  # noqa: E402
from tinyfuse.kernels.core.context import Context, Objective  # noqa: E402
from tinyfuse.ops import FAMILIES  # noqa: E402
from tinyfuse.schedule.kernel_choice.select import candidates, whole_kernel  # noqa: E402
from tinyfuse.targets import load_target  # noqa: E402

TARGETS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")


def least_costs(op: Op, context: Context) -> dict[str, float]:
    """The fewest predicted instructions of a whole call, by library."""
    table, least = cost_table(context.target.cost_table), {}
    for kernel in candidates(op, context):
        cost = table.kernel(op, kernel, not kernel.whole, context)
        if cost is not None:
            least[kernel.library] = min(cost, least.get(kernel.library, cost))
    return least


def cell(kind: str, context: Context) -> str | None:
    """The cell of a kind and core: median ratio, range, and how often CMSIS-NN's is taken; None where one
    of the two has no kernel."""
    ratios, taken = [], 0
    for op in operators(kind, DRAWN.get(kind, DRAWN_OF_OTHERS)):
        costs = least_costs(op, context)
        if len(costs) == 2:
            ratios.append(costs["cmsis-nn"] / costs["tinyfuse"])
            taken += whole_kernel(op, context)[0].library == "cmsis-nn"
    if not ratios:
        return None
    median = statistics.median(ratios)
    return f"{median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {taken} of {len(ratios)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    contexts = [
        Context(load_target(name), kernels="mixed", objective=Objective("speed"))
        for name in parser.parse_args().targets
    ]
    print(f"| | {' | '.join(context.target.name for context in contexts)} |")
    print("|---|" + "---|" * len(contexts))
    for kind in FAMILIES:
        cells = [cell(kind, context) for context in contexts]
        if any(cells):
            print(f"| {kind} | {' | '.join(text or '-' for text in cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
