"""Files that commands write for users: never over their inputs, complete or not at all, and checked before the work
starts."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from random_graphs import Sketch

from tinyfuse.cli.files import FileCommand, OutputFile, read_text
from tinyfuse.cli.main import main
from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import UsageError


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        found = group.get_command(context, each)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{name}{each} ")
        else:
            yield f"{name}{each}", found


def outputs() -> Iterator[tuple[str, click.Parameter]]:
    for name, command in commands(main):
        for parameter in command.params:
            if isinstance(parameter.type, OutputFile):
                yield name, parameter


def model(folder: Path) -> Path:
    sketch = Sketch(1)
    x = sketch.value((1, 5, 4, 3))
    path = folder / "model.tflite"
    path.write_bytes(sketch.build([x], [sketch.conv(x, 2, (3, 3))]))
    return path


def test_what_is_written_is_declared() -> None:
    """A flag whose text says that it writes or draws has a type that is checked."""
    words = ("draw", "write", "written", "HTML page")
    for name, command in commands(main):
        declared = [each for each in command.params if isinstance(each.type, OutputFile)]
        assert not declared or isinstance(command, FileCommand), name
        for each in command.params:
            told = isinstance(each, click.Option) and isinstance(each.type, click.Path) and (each.help or "").lower()
            if told and each.metavar == "FILE" and "has written" not in told and any(word in told for word in words):
                assert each in declared, f"{name} {each.opts[-1]}"


@pytest.mark.parametrize(("command", "parameter"), list(outputs()), ids=lambda each: getattr(each, "name", each))
def test_no_input_is_written_over(command: str, parameter: click.Parameter, tmp_path: Path) -> None:
    path = model(tmp_path)
    before, other = path.read_bytes(), tmp_path / "link.tflite"
    other.symlink_to(path)
    data = tmp_path / "data.npy"
    data.write_bytes(b"")
    given = {
        "front-end": ["--for", str(path)],
        "board calibrate": [str(path)],
        "quantize": [str(path), "--data", str(data)],
        "evaluate": [str(path), "--target", "cortex-m4", "--data", str(data), "--labels", str(data)],
        "blame": [str(path), "--float", str(data), "--data", str(data)],
    }.get(command, [str(path), "--target", "cortex-m4"])
    for name in (path, other):
        done = CliRunner().invoke(main, [*command.split(), *given, parameter.opts[-1], str(name)])
        assert done.exit_code == 2
        assert "names this file; give another one" in done.output
    assert path.read_bytes() == before


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    page = str(tmp_path / "page")
    done = CliRunner().invoke(main, ["report", str(model(tmp_path)), "--target", "host", "--svg", page, "--html", page])
    assert (done.exit_code, Path(page).exists()) == (2, False)
    assert "names this file" in done.output


def test_a_folder_that_is_not_there_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinyfuse.cli.report.make_plan", lambda *_, **__: pytest.fail("it planned"))
    page = tmp_path / "out" / "page.html"
    done = CliRunner().invoke(main, ["report", str(model(tmp_path)), "--target", "host", "--html", str(page)])
    assert done.exit_code == 2
    assert f"can't write {page}: there is no folder {page.parent}" in done.output


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    write_file(path, "before")
    path.chmod(0o640)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr("tinyfuse.emit.output_folder.os.replace", full)
        with pytest.raises(UsageError, match="No space left on device"):
            write_file(path, "after")
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("before", ["page.html"])
    write_file(path, "after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    write_file(link, b"1")
    assert link.is_symlink() and file.read_bytes() == b"1"
    write_file(Path(os.devnull), b"1")
    assert not Path(os.devnull).is_file()


def test_no_more_is_read_than_may_be() -> None:
    if Path("/dev/zero").exists():
        with pytest.raises(UsageError, match="too large for a file"):
            read_text("/dev/zero", "a file", 1 << 16)
