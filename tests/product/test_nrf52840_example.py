"""examples/nrf52840_dk: its Makefile builds it without a warning, and its UART works on QEMU's micro:bit, whose nRF51 has
the same registers."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "nrf52840_dk"
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
OPTIONS = ("--name", "net", "--kernels", "tinyfuse")
needs_gcc = pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")


def _copied(folder: Path) -> Path:
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("net", "*.elf", "*.hex", "*.d"))
    return folder


def _run(*command: object, cwd: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_gcc
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_makefile_builds_it_without_a_warning(tmp_path: Path) -> None:
    folder = _copied(tmp_path / "dk")
    _run("make", f"MODEL={DIGITS}", "CFLAGS=-O2 -Wall -Wextra -Wconversion -Werror", cwd=folder)
    vectors = (folder / "firmware.hex").read_text().splitlines()[0]
    assert vectors[:9] == ":10000000" and vectors[9:17] == "00000420"  # the stack begins at the end of 256 KiB
    text, data, bss = map(int, _run("arm-none-eabi-size", "firmware.elf", cwd=folder).splitlines()[1].split()[:3])
    told = re.search(r"([\d,]+) bytes of flash, ([\d,]+) of RAM", (EXAMPLE / "README.md").read_text())
    assert told is not None
    flash, ram = (int(number.replace(",", "")) for number in told.groups())
    assert (text + data, data + bss) == pytest.approx((flash, ram), rel=0.01)


@needs_gcc
@pytest.mark.emulated
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="needs qemu-system-arm")
def test_it_answers_over_the_uart(tmp_path: Path) -> None:
    pytest.importorskip("serial")
    folder = _copied(tmp_path / "microbit")
    script = (folder / "nrf52840.ld").read_text()
    (folder / "nrf51.ld").write_text(script.replace("256K", "16K").replace("1M", "256K"))
    tinyfuse = (sys.executable, "-m", "tinyfuse")
    given = (DIGITS, "--target", "cortex-m0plus", *OPTIONS)
    _run(*tinyfuse, "gen", *given, "--board", "-o", "net", cwd=folder)
    _run(
        "arm-none-eabi-gcc", "-std=gnu99", "-mcpu=cortex-m0", "-mthumb", "-O2", "-Inet", "main.c", "net/net.c",
        "net/net_weights.c", "net/net_board.c", "-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs",
        "-T", "nrf51.ld", "-lm", "-o", "firmware.elf", cwd=folder,
    )  # fmt: skip
    command = ["qemu-system-arm", "-machine", "microbit", "-kernel", folder / "firmware.elf", "-display", "none"]
    with (folder / "log").open("w+") as log:
        machine = subprocess.Popen([*command, "-monitor", "none", "-serial", "pty"], stdout=log, stderr=log)
        try:
            for _ in range(100):
                port = re.search(r"/dev/pts/\d+", (folder / "log").read_text())
                if port is not None:
                    break
                time.sleep(0.1)
            assert port is not None
            said = _run(*tinyfuse, "board", "validate", *given, "--runs", 2, "--port", port[0], cwd=folder)
        finally:
            machine.kill()
            machine.wait()
    assert "exact: 0 of" in said
