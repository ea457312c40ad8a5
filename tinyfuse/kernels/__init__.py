"""How C computes operators: a file for each sort of kernels, ours and (cmsis/) CMSIS-NN's; registry.py has them all."""
