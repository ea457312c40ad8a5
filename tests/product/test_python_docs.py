"""The code in docs/python.md runs as it is written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from random_graphs import Sketch

import tinyfuse

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "docs").is_dir())


@pytest.mark.emulated
@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)
def test_the_code_runs(tmp_path, monkeypatch, capsys) -> None:
    s = Sketch(1)
    x = s.value((1, 8, 6, 2))
    (tmp_path / "kws.tflite").write_bytes(s.build([x], [s.fully_connected(s.mean(s.conv(x, 4, (3, 3))), 3)]))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    known: dict[str, object] = {}
    for block in blocks:
        exec(block, known)
    assert (tmp_path / "kws_tinyfuse" / "kws.c").is_file()
    assert "kws_group_0" in capsys.readouterr().out


def test_it_names_all_that_is_public() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    for name in tinyfuse.__all__:
        assert f"`{name}" in text or f"tinyfuse.{name}" in text or name == "__version__", name
    for setting in tinyfuse.Settings.__annotations__:
        assert f"`{setting}`" in text, setting
