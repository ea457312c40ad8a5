"""The lists of kernels that serve each operator, in order of preference."""
