"""Kernels that move elements and compute nothing: copies, padding, gathers, concatenation."""
