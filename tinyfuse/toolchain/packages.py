"""Says how to install the programs that tinyfuse runs, on this system."""

from __future__ import annotations

import platform
import sys

#: program -> package manager -> package
_PACKAGES: dict[str, dict[str, str]] = {
    "arm-none-eabi-gcc": {
        "apt-get": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
        "dnf": "arm-none-eabi-gcc-cs arm-none-eabi-newlib",
        "pacman": "arm-none-eabi-gcc arm-none-eabi-newlib",
        "brew": "--cask gcc-arm-embedded",
        "winget": "Arm.GnuArmEmbeddedToolchain",
    },
    "qemu-system-arm": {
        "apt-get": "qemu-system-arm",
        "dnf": "qemu-system-arm",
        "pacman": "qemu-system-arm",
        "brew": "qemu",
        "winget": "SoftwareFreedomConservancy.QEMU",
    },
    "gcc": {"apt-get": "gcc", "dnf": "gcc", "pacman": "gcc", "winget": "BrechtSanders.WinLibs.POSIX.UCRT"},
    "clang": {"apt-get": "clang", "dnf": "clang", "pacman": "clang", "brew": "llvm", "winget": "LLVM.LLVM"},
    "cmake": {"apt-get": "cmake", "dnf": "cmake", "pacman": "cmake", "brew": "cmake", "winget": "Kitware.CMake"},
}
#: program -> the program whose packages contain it
_PART_OF = {"newlib": "arm-none-eabi-gcc", "arm-none-eabi-objdump": "arm-none-eabi-gcc"}
_COMMANDS = {"pacman": "pacman -S"}
#: ID or ID_LIKE of /etc/os-release -> package manager
_DISTRIBUTIONS = {"debian": "apt-get", "ubuntu": "apt-get", "fedora": "dnf", "rhel": "dnf", "arch": "pacman"}
#: program -> source that serves every system
_ANYWHERE = {
    "arm-none-eabi-gcc": "Arm's GNU toolchain: https://developer.arm.com/downloads/-/arm-gnu-toolchain-downloads",
    "qemu-system-arm": "https://www.qemu.org/download",
    "gcc": "a C compiler: gcc or clang",
    "clang": "https://releases.llvm.org",
    "armclang": "Arm Compiler for Embedded 6: https://developer.arm.com/Tools%20and%20Software/Arm%20Compiler%20for%20Embedded",
    "cmake": "https://cmake.org/download",
}


def how_to_get(program: str) -> str:
    """Command that installs a program here, or its source if the system is unknown."""
    program = _PART_OF.get(program, program)
    manager = package_manager()
    if program not in _PACKAGES:
        return _ANYWHERE[program]
    if manager is None:
        return f"{_ANYWHERE[program]} (on Debian: {_command('apt-get', program)})"
    if (manager, program) == ("brew", "gcc"):
        return "xcode-select --install"
    return _command(manager, program)


def _command(manager: str, program: str) -> str:
    return f"{_COMMANDS.get(manager, f'{manager} install')} {_PACKAGES[program][manager]}"


def package_manager() -> str | None:
    """Usual package manager of this system; None if it is not known."""
    if sys.platform == "darwin":
        return "brew"
    if sys.platform == "win32":
        return "winget"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((_DISTRIBUTIONS[name] for name in names if name in _DISTRIBUTIONS), None)
