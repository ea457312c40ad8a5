"""Layer kernels for int8 whose activation is a lookup table."""
