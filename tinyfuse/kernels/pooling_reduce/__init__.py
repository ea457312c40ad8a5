"""Kernels of pooling, reductions, softmax and normalization."""
