"""CMSIS-NN's kernels: which calls are exact, and what they take."""
