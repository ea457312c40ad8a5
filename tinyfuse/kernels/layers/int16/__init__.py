"""Layer kernels for int16 activations with int8 weights."""
