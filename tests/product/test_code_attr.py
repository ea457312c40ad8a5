"""NAME_CODE_ATTR: all code of an inference goes into the section that the firmware names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch

from tinyfuse.cli.main import main
from tinyfuse.targets import load_target

GCC, OBJDUMP = "arm-none-eabi-gcc", "arm-none-eabi-objdump"
SECTION = '__attribute__((section(".ramfunc")))'
#: what runs once an application, or reads a table
COLD = {"init", "input", "output", "input_bytes", "output_bytes", "strerror"}


def build(folder: Path, name: str, target: str, *flags: str) -> Path:
    """The object of a generated module whose layers call every family of packed kernels."""
    sketch = Sketch(3)
    x = sketch.value((1, 9, 8, 5))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 8, (3, 3)), (3, 3)), 7, (1, 1))
    (folder / "model.tflite").write_bytes(sketch.build([x], [sketch.fully_connected(sketch.depthwise(y, (5, 2)), 6)]))
    arguments = ["gen", folder / "model.tflite", "--target", target, "--name", name, "-o", folder / "module"]
    result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    command = [GCC, *load_target(target).flags, *flags, "-std=c99", "-Wall", "-Wextra", "-Werror", "-c"]
    for source in (f"{name}.c", f"{name}_weights.c"):
        subprocess.run([*command, source], cwd=folder / "module", check=True)
    return folder / "module" / f"{name}.o"


def functions(obj: Path) -> dict[str, str]:
    """Maps every function to its section."""
    text = subprocess.run([OBJDUMP, "-t", obj], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines() if " F " in line]
    return {row[-1]: row[row.index("F") + 1] for row in rows}


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"needs {GCC}")
@pytest.mark.parametrize("level", ("-O0", "-O2"))
@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m3"))
def test_code_attr_reaches_every_kernel(target: str, level: str, tmp_path: Path) -> None:
    found = functions(build(tmp_path, "hot", target, level, f"-DHOT_CODE_ATTR={SECTION}"))
    elsewhere = {name for name, section in found.items() if section != ".ramfunc"}
    ports = {name for name in elsewhere if name.startswith(("hot_input_", "hot_output_"))}
    assert elsewhere - ports <= {f"hot_{name}" for name in COLD}
    assert "hot_run" in found and any(name.startswith("tinyfuse_") for name in found)


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"needs {GCC}")
def test_sections_that_lie_far_apart_link(tmp_path: Path) -> None:
    obj = build(tmp_path, "hot", "cortex-m4", "-O2", f"-DHOT_CODE_ATTR={SECTION}")
    command = [GCC, *load_target("cortex-m4").flags, "-nostartfiles", "--specs=nano.specs", "-Wl,-e,hot_run",
               "-Wl,--section-start=.ramfunc=0x20000000,--section-start=.text=0x08000000"]  # fmt: skip
    subprocess.run([*command, obj.name, "hot_weights.o", "-o", "hot.elf"], cwd=obj.parent, check=True)
    assert functions(obj.parent / "hot.elf")["hot_run"] == ".ramfunc"


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"needs {GCC}")
def test_without_it_the_code_is_where_all_code_is(tmp_path: Path) -> None:
    assert set(functions(build(tmp_path, "cold", "cortex-m4", "-O2")).values()) == {".text"}
