"""Reads ExecuTorch programs (.pte) in the Cortex-M dialect, whose operators call CMSIS-NN.

program.py reads the FlatBuffer, memory.py tells which values share memory, quantization.py finds scales and zero points
of values, graph.py converts calls into operators of tinyfuse; the other files have a function per kind of call.
"""
