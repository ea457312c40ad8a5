"""Finds a CMSIS-NN source tree, says what it offers, and which of its files a build needs.

Only `--bundle` and `verify` need a tree; generation knows the API by its version alone. Nothing
but `install` touches the network. docs/cmsis-nn.md lists where trees are looked for.
"""

from tinyfuse.toolchain.cmsis_nn.bundle import bundle
from tinyfuse.toolchain.cmsis_nn.find import HOW_TO_GET, find_cmsis_nn, how_to_get, named_tree
from tinyfuse.toolchain.cmsis_nn.tree import Tree

__all__ = ["HOW_TO_GET", "Tree", "bundle", "find_cmsis_nn", "how_to_get", "named_tree"]
