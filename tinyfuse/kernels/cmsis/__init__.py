"""Kernels that call CMSIS-NN, with rules on which calls are exact and how much scratch they need."""
