"""Output on a disk that is really full, of bytes or of files, and runs that are really killed: whole or not at all.

test_output_folder.py stops a run before each of its calls; here a write may fail in its middle, and a signal may come
within a call. The disk is a tmpfs of a few pages, which only root can mount.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from disturbed_runs import disturbed
from random_graphs import Sketch
from test_output_folder import files_of, found_in, litter, snapshot

from tinyfuse.cli.main import main
from tinyfuse.emit import held_folder
from tinyfuse.emit.manifest import JOURNAL, MANIFEST, STAGING
from tinyfuse.emit.output_folder import write_file, write_folder
from tinyfuse.errors import UsageError

PAGE = os.sysconf("SC_PAGE_SIZE")
OLD = files_of({"x.c": "1" * 9000, "y.h": "same", "old/a.c": "2", "old/b/c.c": "3" * 5000})
NEW = files_of({"x.c": "4" * 14_000, "y.h": "same", "new/a.c": "5" * 6000, "z.h": "6"})


class Disk:
    """A file system of so many pages and files."""

    def __init__(self, place: Path, pages: int, files: int = 1000) -> None:
        self.place, self.ballast = place, place / "ballast"
        place.mkdir()
        options = f"size={pages * PAGE},nr_inodes={files}"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, text=True)
        if done.returncode:
            place.rmdir()
            pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")

    def fill(self, but: int) -> None:
        """Takes all bytes but those of so many pages."""
        with self.ballast.open("wb") as file:
            free = os.statvfs(self.place).f_bavail
            file.write(bytes(max(0, free - but) * PAGE))

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", self.place], check=True)
        self.place.rmdir()


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[list[Disk]]:
    made: list[Disk] = []
    yield made
    for disk in made:
        disk.unmount()


def disk_of(disks: list[Disk], tmp_path: Path, pages: int, files: int = 1000) -> Disk:
    disks.append(Disk(tmp_path / f"disk{len(disks)}", pages, files))
    return disks[-1]


def assert_whole(folder: Path) -> None:
    for name, data in found_in(folder).items():
        if name not in (MANIFEST, JOURNAL) and not name.startswith(STAGING):
            assert data in (OLD.get(name), NEW.get(name)), name


def test_an_update_on_a_disk_of_any_free_space(tmp_path: Path, disks: list[Disk]) -> None:
    disk = disk_of(disks, tmp_path, 60)
    folder, failed, free = disk.place / "out", 0, 0
    while True:
        write_folder(folder, OLD, force=False)
        disk.fill(but=free)
        try:
            write_folder(folder, NEW, force=False)
            break
        except UsageError as error:
            assert "No space left on device" in str(error)
            failed += 1
        assert_whole(folder)
        disk.ballast.unlink()
        write_folder(folder, NEW if free % 2 else OLD, force=False)
        assert found_in(folder) == (NEW if free % 2 else OLD) and not litter(disk.place)
        free += 1
    assert found_in(folder) == NEW and not litter(disk.place)
    assert failed > 5


def test_a_new_folder_on_a_disk_of_any_number_of_files(tmp_path: Path, disks: list[Disk]) -> None:
    failed = 0
    for files in range(2, 30):
        disk = disk_of(disks, tmp_path, 60, files)
        try:
            write_folder(disk.place / "out", NEW, force=False)
        except UsageError as error:
            assert "No space left on device" in str(error)
            assert not (disk.place / "out").exists() and not litter(disk.place)
            failed += 1
            continue
        assert found_in(disk.place / "out") == NEW
        return
    raise AssertionError(f"{failed} disks were too small")


def test_a_file_on_a_full_disk(tmp_path: Path, disks: list[Disk]) -> None:
    disk = disk_of(disks, tmp_path, 12)
    (disk.place / "page.html").write_text("old")
    disk.fill(but=2)
    with pytest.raises(UsageError, match="page.html: No space left on device"):
        write_file(disk.place / "page.html", "new" * PAGE)
    assert (disk.place / "page.html").read_text() == "old"
    assert sorted(path.name for path in disk.place.iterdir()) == ["ballast", "page.html"]


def _network() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 6, 5, 4))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


COMMANDS = {
    "gen": ("gen", "{model}", "--target", "host", "-o", "{disk}/out"),
    "gen --depfile": ("gen", "{model}", "--target", "host", "-o", "{work}/out", "--depfile", "{disk}/out.d"),
    "report": ("report", "{model}", "--target", "host", "--html", "{disk}/page.html"),
    "run": ("run", "{model}", "--target", "host", "--input", "{work}/x.npy", "--output", "{disk}/outputs.npz"),
    "verify, temporary files": ("verify", "{model}", "--target", "host", "--oracle", "reference"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_on_a_full_disk(tmp_path: Path, disks: list[Disk], monkeypatch, name: str) -> None:
    """One message and exit code 2; nothing is left."""
    disk = disk_of(disks, tmp_path, 12)
    disk.fill(but=0)
    (tmp_path / "net.tflite").write_bytes(_network())
    np.save(tmp_path / "x.npy", np.zeros((1, 6, 5, 4), np.int8))
    if "temporary" in name:
        monkeypatch.setattr(tempfile, "tempdir", str(disk.place))
    places = {"model": str(tmp_path / "net.tflite"), "disk": str(disk.place), "work": str(tmp_path)}
    done = CliRunner().invoke(main, [word.format(**places) for word in COMMANDS[name]])
    assert done.exit_code == 2 and "No space left on device" in done.output, done.output
    assert [path.name for path in disk.place.iterdir()] == ["ballast"]


# --- runs that are killed --------------------------------------------------------------------------


def _write_for_ever(folder: Path, ready: int) -> None:
    write_folder(folder, OLD, force=False)
    write_file(folder.with_suffix(".d"), "old" * 40_000)
    os.write(ready, b"!")
    while True:
        for files, text in ((NEW, "new"), (OLD, "old")):
            write_folder(folder, files, force=False)
            write_file(folder.with_suffix(".d"), text * 40_000)


@pytest.mark.parametrize("kills", [20, pytest.param(3000, marks=pytest.mark.campaign)])
def test_runs_that_are_killed_at_any_time(tmp_path: Path, kills: int) -> None:
    """Each run goes on with what the one before left."""
    chance = random.Random(kills)
    for _ in range(kills):
        begun, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _write_for_ever(tmp_path / "out", ready)
            finally:
                os._exit(1)
        assert os.read(begun, 1) == b"!"
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        os.close(begun)
        os.close(ready)
        if (tmp_path / "out").exists():
            assert_whole(tmp_path / "out")
        assert (tmp_path / "out.d").read_text() in ("old" * 40_000, "new" * 40_000)
    write_folder(tmp_path / "out", NEW, force=False)
    assert found_in(tmp_path / "out") == NEW
    assert not litter(tmp_path)
    left = [path.name for path in tmp_path.iterdir() if path.name not in ("out", "out.d")]
    assert len(left) <= kills and all(name.startswith(".out.d.") for name in left)


# --- races ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["new", "old", STAGING])
def test_a_subfolder_that_becomes_a_link_during_a_run(tmp_path: Path, folder: str) -> None:
    """Another process exchanges it before any of the calls of a run: nothing outside is written or removed."""
    outside, call, going = tmp_path / "outside", 0, True
    outside.mkdir()
    while going:
        for name in ("a.c", "b", "x.c"):
            (outside / name).write_text("precious")
        before = snapshot(outside)
        place = tmp_path / f"{call}" / "out"
        write_folder(place, OLD, force=False)
        going = _exchanged(call, place, folder, outside)
        assert snapshot(outside) == before, call
        call += 1
    assert call > 10


def _exchanged(call: int, place: Path, folder: str, outside: Path) -> bool:
    """Writes NEW in a process in which, before its `call`-th call, the folder becomes a link; False if it had fewer."""

    def exchange() -> None:
        if (place / folder).is_dir():
            (place / folder).rename(place / "away")
            (place / folder).symlink_to(outside)

    def write() -> None:
        with suppress(UsageError):
            write_folder(place, NEW, force=False)

    return disturbed(write, call, exchange)


def test_systems_without_descriptors_use_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_folder, "_HAS_DESCRIPTORS", False)
    for files in (OLD, NEW, OLD):
        write_folder(tmp_path / "out", files, force=False)
        assert found_in(tmp_path) == {f"out/{name}": data for name, data in files.items()}
