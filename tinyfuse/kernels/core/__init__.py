"""Interface of kernels: their calls' sites, C types, statements and costs."""
