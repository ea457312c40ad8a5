"""Kernels of control flow, subgraphs, fed rows, tiled groups and other processors."""
