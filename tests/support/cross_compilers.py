"""The compilers for Arm cores."""

from __future__ import annotations

import shutil

import pytest

from tinyfuse.targets import Target
from tinyfuse.verify.emulation.compilers import for_arm

NAMES = ("gcc", "clang")


def cross_compiler(name: str, target: Target) -> list[str]:
    """The command of "gcc" or "clang" for an Arm core; Clang uses the GNU toolchain's C library."""
    if name == "gcc":
        return ["arm-none-eabi-gcc", *target.flags]
    if shutil.which("clang") is None:
        pytest.skip("needs clang")
    return ["clang", *for_arm(), *target.flags]
