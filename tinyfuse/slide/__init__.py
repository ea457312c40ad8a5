"""Sliding windows (`--slide S`): the graph that computes a step of a model over a window that moves by S frames.

`time_rows.py` finds which rows of a tensor are the same in the next window, `needs.py` which rows a step needs and so
which of them stay as state, `step_graph.py` makes a graph of it, of operators that compute some rows alone, rings that
keep rows, and the model's own operators behind them. That graph goes the way of any model.
"""

from tinyfuse.slide.account import OperatorStep, account
from tinyfuse.slide.step_graph import step_graph, step_graphs

__all__ = ["OperatorStep", "account", "step_graph", "step_graphs"]
