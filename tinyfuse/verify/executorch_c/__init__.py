"""Writes an ExecuTorch program for Cortex-M as C that calls CMSIS-NN, as ExecuTorch's kernels call it.

Values lie where the program plans them, and the calls' arguments are those of the file. Nothing of tinyfuse's graph,
rewrites or kernels is used, so the C is an independent reference. Sources: backends/cortex_m/ops and
kernels/portable/cpu of ExecuTorch's public repository, release 1.5. Compile float32 without contractions
(-ffp-contract=off).

program.py writes the program, declarations.py what its calls need declared; layers.py, elements.py, movement.py and
portable.py have a function for each kind of call. It returns lines of C.
"""

from tinyfuse.verify.executorch_c.program import ProgramC, program_c

__all__ = ["ProgramC", "program_c"]
