"""The documentation site builds without a warning and has the pages generated from code; broken links fail."""

from __future__ import annotations

import html
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tinyfuse.plugin
from tinyfuse.cli.main import main
from tinyfuse.report.operators import operators_json
from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.document import schema_text
from tinyfuse.targets import all_targets

ROOT = Path(__file__).resolve().parents[2]

BROKEN = {
    "a link to no file": ("[x](missing.md)", "missing.md"),
    "a link to a folder": ("[x](pictures)", "pictures"),
    "a link to no heading": ("[x](index.md#no-such-heading)", "no-such-heading"),
    "a link to no heading of the page": ("[x](#nothing-here)", "nothing-here"),
    "a picture that isn't there": ("![x](missing.svg)", "missing.svg"),
    "a page that isn't there": ("```{toctree}\nnowhere\n```", "nowhere"),
    "a directive that isn't there": ("```{targetz}\n```", "targetz"),
    "a module that isn't there": ("```{eval-rst}\n.. automodule:: tinyfuse.nothing\n```", "tinyfuse.nothing"),
}


def _build(source: Path, output: Path) -> subprocess.CompletedProcess:
    """Builds the site of a source folder with the project's configuration, as CI does."""
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "--nitpicky", "-c", ROOT / "docs"]
    return subprocess.run(
        [*command, "-d", output.parent / "doctrees", source, output], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    result = _build(ROOT, folder)
    assert result.returncode == 0, result.stderr
    return folder


def _text(page: Path) -> str:
    return html.unescape(re.sub("<[^>]+>", "", page.read_text()))


def test_every_page_is_there(site: Path) -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *ROOT.glob("*.md")]
    assert len(pages) > 30
    missing = [p for page in pages if not (site / (p := page.relative_to(ROOT).with_suffix(".html"))).is_file()]
    assert not missing
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


def test_schemas_are_published(site: Path) -> None:
    assert {file.name for file in (site / "schema").iterdir()} == {f"{name}.json" for name in ANSWERS}
    assert (site / "schema" / "report.json").read_text() == schema_text("report")


def test_the_reference_is_made_from_the_code(site: Path) -> None:
    cli = _text(site / "docs/reference/cli.html")
    for name, command in main.commands.items():
        if command.hidden:
            continue
        assert f"tinyfuse {name}" in cli, name
        for parameter in command.params:
            assert all(option in cli for option in parameter.opts if option.startswith("-")), (name, parameter)
    targets = _text(site / "docs/reference/targets.html")
    assert all(name in targets and " ".join(t.flags) in targets for name, t in all_targets().items())
    operators = _text(site / "docs/reference/operators.html")
    for operator in operators_json()["operators"]:
        assert all(text in operators for text in (operator["kind"], operator["summary"], *operator["rules"]))
    api = _text(site / "docs/reference/api.html")
    for module in (tinyfuse, tinyfuse.plugin):
        members = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
        told = [name for name, member in members.items() if inspect.isclass(member) or inspect.isfunction(member)]
        assert not [name for name in told if name not in api], module


def test_what_is_broken_fails(tmp_path: Path) -> None:
    docs = tmp_path / "source" / "docs"
    (docs / "pictures").mkdir(parents=True)
    pages = {f"page{number}": text for number, (text, _) in enumerate(BROKEN.values())}
    (docs / "index.md").write_text("# A site\n\n```{toctree}\n" + "\n".join(pages) + "\n```\n")
    for name, text in pages.items():
        (docs / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    (docs / "lonely.md").write_text("# In no table of contents\n")
    result = _build(tmp_path / "source", tmp_path / "html")
    assert result.returncode != 0
    warnings = result.stderr.splitlines()
    for page, (what, (_, told)) in zip(pages, BROKEN.items(), strict=True):
        place = "tinyfuse.nothing" if "module" in what else f"{page}.md"
        assert any(place in line and told in line for line in warnings), (what, result.stderr)
    assert any("lonely.md" in line and "toctree" in line for line in warnings)
