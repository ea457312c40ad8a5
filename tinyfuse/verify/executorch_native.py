"""Runs ExecuTorch programs for Cortex-M on this machine: CMSIS-NN's C, compiled here, with the calls of the file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyfuse.errors import EmulationFailed, ToolMissing, UsageError
from tinyfuse.ir import Array
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn
from tinyfuse.toolchain.cmsis_nn.find import HOW_TO_GET
from tinyfuse.toolchain.cmsis_nn.tree import Tree
from tinyfuse.verify.emulation.compilers import find_native_compiler
from tinyfuse.verify.executorch_c import ProgramC, program_c

#: first release with all functions that ExecuTorch's kernels call
LEAST_VERSION = (7, 0)
#: float32 operations are rounded one by one
FLAGS = ("-std=gnu99", "-ffp-contract=off", "-w")

_MAIN = """\
#include <stdio.h>

int main(void)
{{
    for (;;) {{
{reads}
        if (run_program() != 0) {{
            return 3;
        }}
{writes}
    }}
}}
"""


def require_version(tree: Tree) -> None:
    """Raise UsageError unless a tree has all functions that programs may call."""
    if tree.version < LEAST_VERSION:
        found, wanted = (".".join(map(str, version)) for version in (tree.version, LEAST_VERSION))
        raise UsageError(
            f"CMSIS-NN {found} at {tree.path} lacks functions that ExecuTorch calls (hint: give {wanted} as "
            "CMSIS_NN_PATH)"
        )


class NativeProgram:
    """A program for this machine."""

    def __init__(self, data: bytes):
        """Raise ToolMissing without CMSIS-NN or a compiler; UsageError if a call or a function is missing."""
        tree = find_cmsis_nn(None)
        if tree is None:
            raise ToolMissing("CMSIS-NN", HOW_TO_GET)
        require_version(tree)
        self.version = ".".join(map(str, tree.version))
        written = program_c(data)
        self._outputs = [
            (np.dtype(dtype), size) for (_, size), dtype in zip(written.outputs, written.dtypes, strict=True)
        ]
        folder = Path(tempfile.mkdtemp(prefix="tinyfuse-"))
        weakref.finalize(self, shutil.rmtree, folder, True)
        (folder / "program.c").write_text(written.text + _main(written), encoding="utf-8")
        include = [option for path in tree.include_dirs for option in ("-isystem", str(path))]
        self._path = folder / "program"
        files = ["program.c", *map(str, tree.closure(written.functions))]
        compiler = find_native_compiler("O2")
        compiler.run([*FLAGS, *include, *files, "-lm", "-o", "program"], "CMSIS-NN", folder)

    def run(self, runs: Sequence[Sequence[Array]], seconds: float) -> list[list[Array]]:
        """The outputs of each run, in the order of memory."""
        data = b"".join(np.ascontiguousarray(array).tobytes() for run in runs for array in run)
        try:
            done = subprocess.run([str(self._path)], input=data, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise EmulationFailed(f"CMSIS-NN did not end within {seconds:g} s") from None
        size = sum(size for _, size in self._outputs)
        if done.returncode or len(done.stdout) != size * len(runs):
            why = "a function of CMSIS-NN refused its arguments" if done.returncode == 3 else f"code {done.returncode}"
            raise EmulationFailed(f"CMSIS-NN can't run this model: {why}")
        found, at = [], 0
        for _ in runs:
            arrays = []
            for dtype, size in self._outputs:
                arrays.append(np.frombuffer(done.stdout[at : at + size], dtype))
                at += size
            found.append(arrays)
        return found


def _main(written: ProgramC) -> str:
    reads = [
        f"        if (fread({pointer}, 1, {size}, stdin) != {size}) {{\n            return 0;\n        }}"
        for pointer, size in written.inputs
    ]
    writes = [f"        fwrite({pointer}, 1, {size}, stdout);" for pointer, size in written.outputs]
    return _MAIN.format(reads="\n".join(reads), writes="\n".join(writes))
