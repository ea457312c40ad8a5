"""Instructions predicted before anything is compiled, from tables measured on an emulated core.

Each kernel declares what its instructions depend on (`Kernel.counts`). `fit.py` finds the factors from measurements
(benchmarks/measure_costs.py); `table.py` reads them (targets/costs/NAME.toml) and predicts kernels and groups. A kernel
that was not measured has no prediction: None, never a guess.
"""

from tinyfuse.cost.table import CostTable, cost_table

__all__ = ["CostTable", "cost_table"]
