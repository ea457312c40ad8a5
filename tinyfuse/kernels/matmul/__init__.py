"""Kernels of batch matrix products."""
