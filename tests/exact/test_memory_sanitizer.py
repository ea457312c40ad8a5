"""Portable forms of our kernels, and the modules that call them, use no byte that nobody wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import native_compiler
import pytest
from layer_cases import NAMED, layer_inputs
from op_harness import assert_exact, cases_of
from test_conv_dtypes import TARGETS

from tinyfuse.kernels.core.context import Context

TESTS = Path(__file__).resolve().parents[1]
#: tests of kernels, and of modules, that run on this machine
FILES = (
    "exact/test_op_kernels.py", "exact/test_conv_kernels.py", "exact/test_conv_dtypes.py", "exact/test_paired_kernels.py",
    "exact/test_compressed_kernels.py", "exact/test_fused_loops.py", "exact/test_fused_luts.py", "exact/test_known_architectures.py",
)  # fmt: skip


@pytest.fixture(autouse=True)
def skip_without_runtime() -> None:
    if shutil.which(native_compiler.COMPILER):
        ask = [native_compiler.COMPILER, f"-print-file-name=libclang_rt.msan-{os.uname().machine}.a"]
        if Path(subprocess.check_output(ask, text=True).strip()).is_file():
            return
    pytest.skip(f"needs {native_compiler.COMPILER} with its memory sanitizer")


@pytest.mark.parametrize("target", ("host", "host-twins"))
def test_layers_of_int16_use_no_byte_that_nobody_wrote(target: str, tmp_path: Path) -> None:
    """Windows that are rounded up, whose rest zero weights make nothing of."""
    context = Context(TARGETS[target], kernels="tinyfuse")
    operators = [op for ops in NAMED.values() for op in ops.values() if op.output.dtype == "int16"]
    cases = [case for op in operators for case in cases_of(op, context, layer_inputs(op)[0])]
    assert_exact(cases, context.target, tmp_path, " ".join(native_compiler.MEMORY))


@pytest.mark.campaign
@pytest.mark.parametrize("file", FILES)
def test_all_kernels_use_no_byte_that_nobody_wrote(file: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-k",
        "host or known_architectures",
        str(TESTS / file),
    ]
    environment = os.environ | {"TINYFUSE_TEST_MEMORY": "1"}
    done = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
