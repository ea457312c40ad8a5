"""Loop counts of kernels, which predictions multiply by measured costs."""
