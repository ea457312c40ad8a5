"""The generated folder: whole or not at all, ours only, unchanged files untouched."""

from __future__ import annotations

import os

import pytest

from tinyfuse.errors import UsageError
from tinyfuse.output_folder import MANIFEST, manifest_text, write_folder


def folder_of(**texts: str) -> dict[str, bytes]:
    files = {name.replace("_dot_", "."): text.encode() for name, text in texts.items()}
    return files | {MANIFEST: manifest_text({}, files).encode()}


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
