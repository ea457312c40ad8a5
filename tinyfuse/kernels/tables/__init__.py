"""Lists of the kernels of each operator, in order of preference."""
