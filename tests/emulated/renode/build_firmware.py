"""Builds the firmware that verify.robot runs: python build_firmware.py FOLDER TARGET..."""

import re
import sys
import zlib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests" / "support")]

from toy_module import toy_inputs, toy_outputs, write_toy

from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import build_firmware
from tinyfuse.verify.emulation.renode import platform_description


def build(folder: Path, target_name: str) -> None:
    """Writes toy.elf, platform.repl and expected.txt (the result line as a pattern) into FOLDER/TARGET."""
    target = load_target(target_name)
    module, library, headers = write_toy(folder / "module")
    inputs = toy_inputs(4)
    build_firmware(module, inputs, target, [library], [headers], folder, "renode")
    (folder / "platform.repl").write_text(platform_description(target))
    outputs = b"".join(output for run in toy_outputs(inputs) for output in run)
    line = f"result runs=4 bytes={len(outputs)} crc={zlib.crc32(outputs):08x}"
    (folder / "expected.txt").write_text(re.escape(line) + r" ticks=\d+ stack=\d+")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        build(Path(sys.argv[1]).resolve() / name, name)
