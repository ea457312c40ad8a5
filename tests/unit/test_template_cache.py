"""Compiled templates are cached between runs, and only as long as they are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyfuse.emit.render import new_environment, render
from tinyfuse.resources import cache_folder

CONTEXT = {"name": "kws"}


def rendered(folder: Path) -> str:
    """Renders in an environment that has compiled nothing."""
    (folder / "x.j2").touch()
    return new_environment(folder).get_template("x.j2").render(CONTEXT)


def kept() -> list[Path]:
    return sorted(cache_folder("templates").glob("*.cache"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "x.j2").write_text("int {{ name }};\n")
    return tmp_path / "templates"


def test_a_template_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered(folder) == "int kws;\n"
    assert len(kept()) == 1
    monkeypatch.setattr("jinja2.Environment.compile", lambda *_: pytest.fail("it is compiled again"))
    assert rendered(folder) == "int kws;\n"


def test_a_changed_template_is_compiled_again(folder: Path) -> None:
    rendered(folder)
    (folder / "x.j2").write_text("short {{ name }};\n")
    assert rendered(folder) == "short kws;\n"


@pytest.mark.parametrize(
    "damage", [bytes, lambda data: data[:40], lambda data: data[:-1], lambda data: bytes(len(data))]
)
def test_a_damaged_one_is_compiled_again(folder: Path, damage) -> None:
    rendered(folder)
    (file,) = kept()
    file.write_bytes(damage(file.read_bytes()))
    assert rendered(folder) == "int kws;\n"


@pytest.mark.parametrize("lacks", ["a folder", "a home"])
def test_without_a_place_it_is_compiled_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    if lacks == "a folder":
        (folder.parent / "cache").touch()
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(
            Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("Could not determine home directory."))
        )
    assert [rendered(folder) for _ in range(2)] == ["int kws;\n"] * 2


def test_the_names_that_a_template_lacks_are_an_error() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("module.c.j2", {})
