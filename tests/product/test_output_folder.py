"""The output folder is written completely or not at all, holds only our files, and leaves unchanged files untouched."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from disturbed_runs import disturbed, end_process

from tinyfuse.emit.manifest import JOURNAL, MANIFEST, STAGING, digest, manifest_text
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.errors import UsageError


def folder_of(**texts: str) -> dict[str, bytes]:
    return files_of({name.replace("_dot_", "."): text for name, text in texts.items()})


def files_of(texts: dict[str, str]) -> dict[str, bytes]:
    files = {name: text.encode() for name, text in texts.items()}
    return files | {MANIFEST: manifest_text({}, files).encode()}


def found_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def snapshot(folder: Path) -> dict[str, object]:
    """State of everything below a folder that a run could change; links are not followed."""
    return {
        str(path): os.readlink(path) if path.is_symlink()
        else (path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file() or path.is_dir()
    }  # fmt: skip


def test_a_new_folder_holds_everything(tmp_path) -> None:
    write_folder(tmp_path / "a" / "b", folder_of(x_dot_c="1", y_dot_h="2"), force=False)
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == [MANIFEST, "x.c", "y.h"]
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]  # no staging folder left


def test_unchanged_files_keep_their_times_and_stale_ones_go(tmp_path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, folder_of(x_dot_c="1", old_dot_c="2", y_dot_h="3"), force=False)
    for name in ("x.c", "y.h"):
        os.utime(folder / name, (1000, 1000))
    write_folder(folder, folder_of(x_dot_c="1", y_dot_h="changed"), force=False)
    assert (folder / "x.c").stat().st_mtime == 1000
    assert (folder / "y.h").read_text() == "changed"
    assert not (folder / "old.c").exists()


def test_a_foreign_folder_needs_force(tmp_path) -> None:
    (tmp_path / "theirs.c").write_text("precious")
    with pytest.raises(UsageError, match="--force"):
        write_folder(tmp_path, folder_of(x_dot_c="1"), force=False)
    assert [p.name for p in tmp_path.iterdir()] == ["theirs.c"]
    write_folder(tmp_path, folder_of(x_dot_c="1"), force=True)
    assert (tmp_path / "theirs.c").read_text() == "precious"


def test_a_foreign_file_in_our_folder_is_not_replaced(tmp_path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, folder_of(x_dot_c="1"), force=False)
    (folder / "y.h").write_text("theirs")
    with pytest.raises(UsageError, match="y.h"):
        write_folder(folder, folder_of(x_dot_c="2", y_dot_h="ours"), force=False)
    assert (folder / "x.c").read_text() == "1"


def test_a_manifest_cannot_name_files_outside(tmp_path) -> None:
    folder, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_text("precious")
    write_folder(folder, folder_of(x_dot_c="1"), force=False)
    manifest = (folder / MANIFEST).read_text().replace('"x.c"', '"../victim"')
    (folder / MANIFEST).write_text(manifest)
    write_folder(folder, folder_of(z_dot_c="1"), force=True)
    assert victim.read_text() == "precious"


def test_a_file_in_the_way_is_said(tmp_path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="not a folder"):
        write_folder(tmp_path / "out", folder_of(x_dot_c="1"), force=True)


# --- a manifest is untrusted ---------------------------------------------------------------------


def hostile(folder: Path, manifest: object) -> None:
    """An output folder of ours whose manifest was written by somebody else."""
    write_folder(folder, folder_of(x_dot_c="1"), force=False)
    (folder / MANIFEST).write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))


def refused(tmp_path: Path, folder: Path, message: str, force: bool = False) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(UsageError, match=message):
        write_folder(folder, folder_of(x_dot_c="2", z_dot_c="3"), force)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("force", [False, True])
def test_a_listed_name_behind_a_link_deletes_nothing_outside(tmp_path, force: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("precious")
    hostile(tmp_path / "out", {"files": {"link/victim": digest(b"precious")}})
    (tmp_path / "out" / "link").symlink_to(outside)
    refused(tmp_path, tmp_path / "out", "link is a link, which tinyfuse does not follow", force)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "./x.c", "a/../x", "a/./x", "a//x", "a/", "/etc/x", "a\0b", "a\nb", "n" * 300, "d/" * 600 + "x",
     "C:x", "..\\x", "\ud800", "\udc80", "caf\u00e9", MANIFEST, JOURNAL, f"{STAGING}/x"],
)  # fmt: skip
def test_a_name_that_tinyfuse_never_makes_is_refused(tmp_path, name: str) -> None:
    hostile(tmp_path / "out", {"files": {"x.c": digest(b"1"), name: digest(b"")}})
    refused(tmp_path, tmp_path / "out", "tinyfuse did not write: it lists .*--force")
    write_folder(tmp_path / "out", folder_of(x_dot_c="2"), force=True)
    assert found_in(tmp_path) == {f"out/{k}": v for k, v in folder_of(x_dot_c="2").items()}


@pytest.mark.parametrize(
    "manifest",
    [
        "", "no JSON", "[]", "{}", "null", "1" * 5000, '"' + "x" * 10, {"files": None}, {"files": []}, {"files": "x.c"},
        {"files": {"x.c": 1}}, {"files": {"x.c": None}}, {"files": {"x.c": "0" * 63}}, {"files": {"x.c": "G" * 64}},
        {"files": {"x.c": [[]]}}, {"files": {"x.c": {}}}, '{"files": ' + "[" * 100_000, '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000, {"files": {}, "x": "y" * (1 << 20)},
        {"files": {f"{number}": "0" * 64 for number in range(4097)}},
    ],
    ids=lambda manifest: str(manifest)[:20],
)  # fmt: skip
def test_a_manifest_that_tinyfuse_never_writes_is_refused(tmp_path, manifest: object) -> None:
    hostile(tmp_path / "out", manifest)
    refused(tmp_path, tmp_path / "out", "manifest.json that tinyfuse did not write: .*--force")
    (tmp_path / "out" / MANIFEST).unlink()
    (tmp_path / "out" / JOURNAL).write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
    refused(tmp_path, tmp_path / "out", "manifest.json that tinyfuse did not write: .*--force")


@pytest.mark.parametrize("make", [
    lambda path, other: path.symlink_to(other),
    lambda path, other: os.mkfifo(path),
    lambda path, other: path.symlink_to("/dev/zero"),
], ids=["a link", "a pipe", "a device"])  # fmt: skip
def test_a_manifest_that_is_no_file_is_not_read(tmp_path, make: Callable) -> None:
    write_folder(tmp_path / "other", folder_of(x_dot_c="1"), force=False)
    write_folder(tmp_path / "out", folder_of(x_dot_c="1"), force=False)
    (tmp_path / "out" / MANIFEST).unlink()
    make(tmp_path / "out" / MANIFEST, tmp_path / "other" / MANIFEST)
    refused(tmp_path, tmp_path / "out", "it is not a regular file")
    write_folder(tmp_path / "out", folder_of(x_dot_c="2"), force=True)
    assert found_in(tmp_path / "out") == folder_of(x_dot_c="2")
    assert found_in(tmp_path / "other") == folder_of(x_dot_c="1")


def test_only_what_tinyfuse_wrote_is_removed(tmp_path) -> None:
    """A manifest that lists a file of somebody else, with a hash or with none that it has."""
    hostile(tmp_path / "out", {"files": {"x.c": digest(b"1"), "notes.txt": "0" * 64}})
    (tmp_path / "out" / "notes.txt").write_text("precious")
    refused(tmp_path, tmp_path / "out", "holds notes.txt, changed since")
    write_folder(tmp_path / "out", folder_of(x_dot_c="2"), force=True)
    assert (tmp_path / "out" / "notes.txt").read_text() == "precious"


# --- links, folders and files in the way ---------------------------------------------------------


def test_a_file_that_became_a_link_is_not_written_through(tmp_path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    write_folder(tmp_path / "out", folder_of(x_dot_c="1"), force=False)
    (tmp_path / "out" / "x.c").unlink()
    (tmp_path / "out" / "x.c").symlink_to(victim)
    refused(tmp_path, tmp_path / "out", "holds x.c, changed since")
    write_folder(tmp_path / "out", folder_of(x_dot_c="2"), force=True)
    assert victim.read_text() == "precious" and not (tmp_path / "out" / "x.c").is_symlink()
    assert found_in(tmp_path / "out") == folder_of(x_dot_c="2")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("ours", [False, True])
def test_a_subfolder_that_is_a_link_is_not_written_through(tmp_path, force: bool, ours: bool) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    write_folder(folder, files_of({"x.c": "1"} | ({"cmsis-nn/a/y.c": "2"} if ours else {})), force=False)
    shutil.rmtree(folder / "cmsis-nn", ignore_errors=True)
    (folder / "cmsis-nn").symlink_to(outside)
    before = snapshot(tmp_path)
    with pytest.raises(UsageError, match="cmsis-nn is a link"):
        write_folder(folder, files_of({"x.c": "2", "cmsis-nn/a/y.c": "3"}), force)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "name, make, message",
    [
        ("z.c", lambda path: path.mkdir(), "z.c is a folder where a file belongs"),
        (MANIFEST, lambda path: (path.unlink(), path.mkdir()), "manifest.json is a folder where a file belongs"),
        (JOURNAL, lambda path: path.mkdir(), "is a folder where a file belongs"),
        (STAGING, lambda path: path.write_text("theirs"), "is a file where a folder belongs"),
        (STAGING, lambda path: path.symlink_to(path.parent), "is a link, which tinyfuse does not follow"),
    ],
)
def test_what_stands_in_the_way_is_said_before_anything_is_touched(tmp_path, name, make, message) -> None:
    write_folder(tmp_path / "out", folder_of(x_dot_c="1"), force=False)
    make(tmp_path / "out" / name)
    refused(tmp_path, tmp_path / "out", message, force=True)


def test_a_file_in_place_of_a_subfolder_is_said(tmp_path) -> None:
    write_folder(tmp_path, folder_of(x_dot_c="1"), force=False)
    (tmp_path / "cmsis-nn").write_text("theirs")
    with pytest.raises(UsageError, match="cmsis-nn is a file where a folder belongs"):
        write_folder(tmp_path, files_of({"x.c": "2", "cmsis-nn/y.c": "1"}), force=True)
    assert (tmp_path / "x.c").read_text() == "1"


def test_the_folder_itself_may_be_a_link(tmp_path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    for text in "12":
        write_folder(tmp_path / "out", folder_of(x_dot_c=text), force=False)
    assert (tmp_path / "out").is_symlink() and found_in(tmp_path / "disk") == folder_of(x_dot_c="2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "out"]
    (tmp_path / "disk").rename(tmp_path / "gone")
    refused(tmp_path, tmp_path / "out", "is a link to something that does not exist", force=True)


# --- changed by hand -----------------------------------------------------------------------------


def test_files_changed_by_hand_are_kept(tmp_path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, folder_of(x_dot_c="1", y_dot_h="2", old_dot_c="3"), force=False)
    for name in ("x.c", "old.c"):
        (folder / name).write_text("edited")
    refused(tmp_path, folder, "holds old.c, x.c, changed since tinyfuse wrote it; .* overwrite with --force")
    write_folder(folder, folder_of(x_dot_c="4"), force=True)
    # what isn't made any more is removed only as it was written
    assert found_in(folder) == folder_of(x_dot_c="4") | {"old.c": b"edited"}


def test_what_is_no_change_is_not_called_one(tmp_path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, folder_of(x_dot_c="1\n2\n", y_dot_h="3", z_dot_h="4"), force=False)
    (folder / "x.c").write_bytes(b"1\r\n2\r\n")  # a checkout with CRLF
    (folder / "y.h").write_text("changed to what comes anyway")
    (folder / "z.h").unlink()
    new = folder_of(x_dot_c="5", y_dot_h="changed to what comes anyway", z_dot_h="4")
    write_folder(folder, new, force=False)
    assert found_in(folder) == new


# --- runs that are stopped, and runs side by side ------------------------------------------------

OLD = files_of({"x.c": "1", "y.h": "same", "old/a.c": "2", "old/b/c.c": "3"})
NEW = files_of({"x.c": "10", "y.h": "same", "new/a.c": "20", "z.h": "30"})
NEXT = files_of({"x.c": "100", "new/b.c": "200"})


def stopped(step: int, folder: Path, files: dict[str, bytes], error: bool = False) -> bool:
    """Writes files in a process that is killed, or gets "disk full", before its `step`-th call that opens or changes a
    file. Returns False if it ended before that."""

    def fill_disk() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def write() -> None:
        try:
            write_folder(folder, files, force=False)
        except UsageError as told:
            assert error and "No space left" in str(told)

    return disturbed(write, step, fill_disk if error else end_process)


def litter(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if "tinyfuse" in path.name]


@pytest.mark.parametrize("error", [False, True], ids=["killed", "disk full"])
@pytest.mark.parametrize("following", [OLD, NEW, NEXT], ids=["old", "again", "next"])
def test_a_run_that_was_stopped_at_any_step_is_recovered_from(tmp_path, error: bool, following: dict) -> None:
    step, going = 0, True
    while going:
        place = tmp_path / str(step)
        write_folder(place / "out", OLD, force=False)
        (place / "out" / "notes.txt").write_text("theirs")
        going = stopped(step, place / "out", NEW, error)
        for name, data in found_in(place / "out").items():  # no file is half of one thing
            if name in OLD and name not in (MANIFEST, JOURNAL):
                assert data in (OLD[name], NEW.get(name)), (step, name)
        write_folder(place / "out", following, force=False)
        assert found_in(place / "out") == following | {"notes.txt": b"theirs"}, step
        assert litter(place) == [], step
        step += 1
    assert step > 20


def test_a_stopped_run_after_a_stopped_run_is_recovered_from(tmp_path) -> None:
    first, going = 0, True
    while going:
        for second in range(0, 40, 7):
            place = tmp_path / f"{first}-{second}"
            write_folder(place, OLD, force=False)
            going = stopped(first, place, NEW)
            stopped(second, place, NEXT)
            write_folder(place, OLD, force=False)
            assert found_in(place) == OLD, (first, second)
        first += 5


def test_a_new_folder_that_was_stopped_is_recovered_from(tmp_path) -> None:
    for exists in (False, True):
        step, going = 0, True
        while going:
            place = tmp_path / f"{exists}{step}"
            place.mkdir()
            if exists:
                (place / "out").mkdir()
            going = stopped(step, place / "out", OLD)
            write_folder(place / "out", NEW, force=False)
            assert found_in(place) == {f"out/{name}": data for name, data in NEW.items()} and not litter(place)
            step += 1
        assert step > 5


def test_runs_side_by_side_take_turns(tmp_path) -> None:
    """A Makefile whose rule has several targets starts the generator for each of them."""
    script = (
        "import sys; from pathlib import Path; from tinyfuse.emit.output_folder import write_folder\n"
        "files = {f'{n}.c': bytes(100) for n in range(50)} | {'manifest.json': b'{\"files\": {}}'}\n"
        "[write_folder(Path(sys.argv[1]), files, force=True) for _ in range(20)]"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "out")], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for run in runs:
        _, said = run.communicate(timeout=120)
        assert run.returncode == 0, said
    assert not litter(tmp_path)
