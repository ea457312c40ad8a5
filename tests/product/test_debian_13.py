"""Debian 13 in a folder: QEMU 10, GCC 14, Clang 19, binutils 2.44, Python 3.13 (docs/reference/tested-tools.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: as root of the new system, in a namespace of its own: its mounts go with it
_ENTER = """\
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind /etc/ssl/certs "$1/etc/ssl/certs"
exec chroot "$1" bash -ec "cd /src; $2"
"""
#: what the fast tests leave out: profile's plugin, compilers at every level, and programs of one translation unit
_TESTS = (
    "tests/emulated/test_profile.py tests/product/test_compilers.py tests/exact/test_ethos_u.py"
    " tests/exact/test_streams.py tests/exact/test_conv_kernels.py"
)
_COMMANDS = (
    "bash examples/quickstart.sh",
    "bash tests/run.sh fast",
    f"bash tests/run.sh {_TESTS}",
    ".venv/bin/tinyfuse verify examples/digits/digits.tflite --target cortex-m4",
    ".venv/bin/tinyfuse profile examples/digits/digits.tflite --target cortex-m4",
)


@pytest.mark.campaign
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("debootstrap", "unshare"))), reason="needs debootstrap, as root"
)
def test_debian_13(tmp_path: Path) -> None:
    """Two gigabytes, some minutes. Packages come from debootstrap's mirror, and by pip as it is set up outside."""
    system = tmp_path / "system"
    try:
        _run("debootstrap", "--variant=minbase", "--include=ca-certificates,git,python3", "trixie", str(system))
        _run("git", "clone", "--quiet", str(ROOT), str(system / "src"))
        for file in (Path("/etc/resolv.conf"), Path("/etc/pip.conf")):
            if file.exists():
                shutil.copy(file, system / "etc")
        for command in _COMMANDS:
            said = _run("unshare", "--mount", "bash", "-c", _ENTER, "enter", str(system), command)
            assert "only totals were counted" not in said
    finally:
        shutil.rmtree(system, ignore_errors=True)


def _run(*command: str) -> str:
    """Returns the output of a command; AssertionError with it if the command fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "XDG"))
    }
    environment |= {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-6000:]}"
    return done.stdout
