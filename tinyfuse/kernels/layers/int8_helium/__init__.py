"""Layer kernels for int8 on cores with Helium (MVE)."""
