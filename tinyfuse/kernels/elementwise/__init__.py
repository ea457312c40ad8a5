"""Kernels that compute each output element from the input elements at the same position."""
