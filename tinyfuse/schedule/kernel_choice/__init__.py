"""The choice of a kernel for each operator."""
