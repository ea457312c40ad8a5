"""Layer kernels for palettized weights: 1 to 4 bits index a table of values."""
