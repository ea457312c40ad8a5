"""Finds CMSIS-NN source trees, their functions, and the files that a build needs.

Only `--bundle` and `verify` need a tree; generation needs only the version of its API. Nothing but `install` uses the
network. docs/cmsis-nn.md lists the places where trees are looked for.
"""

from tinyfuse.toolchain.cmsis_nn.bundle import bundle
from tinyfuse.toolchain.cmsis_nn.find import HOW_TO_GET, find_cmsis_nn, how_to_get, named_tree
from tinyfuse.toolchain.cmsis_nn.tree import Tree

__all__ = ["HOW_TO_GET", "Tree", "bundle", "find_cmsis_nn", "how_to_get", "named_tree"]
