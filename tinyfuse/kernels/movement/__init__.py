"""Kernels that move elements and compute none: copies, padding, gathers, concatenation."""
