"""Kernels that compute operators in C, in a folder for each family; registry.py finds those of an operator."""
