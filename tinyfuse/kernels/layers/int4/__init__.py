"""Layer kernels for int4 weights."""
