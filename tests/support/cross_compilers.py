"""The compilers that our C is built with for Arm cores."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tinyfuse.targets import Target

NAMES = ("gcc", "clang")


def cross_compiler(name: str, target: Target) -> list[str]:
    """The command of "gcc" or "clang" for an Arm core; Clang takes the GNU toolchain's C library."""
    if name == "gcc":
        return ["arm-none-eabi-gcc", *target.flags]
    if shutil.which("clang") is None:
        pytest.skip("needs clang")
    found = subprocess.run(["arm-none-eabi-gcc", "-print-sysroot"], capture_output=True, text=True, check=True)
    folders = [Path(found.stdout.strip()) / "include", Path("/usr/include/newlib")]
    include = next((folder for folder in folders if (folder / "string.h").is_file()), None)
    if include is None:
        pytest.skip("needs newlib's headers")
    return ["clang", "--target=arm-none-eabi", *target.flags, f"-isystem{include}"]
