"""Sliding windows (`--slide S`): the graph that computes one step of a model whose input window moves by S frames.

`time_rows.py` finds which rows of a tensor are equal in the next window. `needs.py` finds which rows a step needs, and
which of them stay as state. `step_graph.py` builds the graph: operators that compute some rows only, rings that keep
rows, and the model's remaining operators behind them. That graph is then compiled like any model.
"""

from tinyfuse.slide.account import OperatorStep, account
from tinyfuse.slide.step_graph import step_graph, step_graphs

__all__ = ["OperatorStep", "account", "step_graph", "step_graphs"]
