"""Measures the figures of models that the pages state, and writes them there.

    python benchmarks/doc_figures.py --models DIR          measures all, which takes half an hour
    python benchmarks/doc_figures.py --models DIR --only kws resnet
    python benchmarks/doc_figures.py --fill                writes the pages anew from doc_figures.json

A page marks a figure with two comments round it:

    <!-- kws cortex-m4 optimize=ram: arena_bytes -->3,768<!-- end -->

The first names a model of peers.json, or an example, a target, settings as of `tinyfuse.compile`, and the figure: a key
of `report`'s JSON, or one of `Verification` behind "verify.". `runs=N` is of `verify`, `yes` stands for True; " in M"
behind the figure gives millions. tests/product/test_docs_figures.py compares pages and doc_figures.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT)]

import tinyfuse  # noqa: E402

RESULTS = HERE / "doc_figures.json"
MARKED = re.compile(r"<!-- (?P<run>[^:<>]+): (?P<figure>[\w.]+)(?P<millions> in M)? -->(?P<text>[^<]*)<!-- end -->")
#: inputs that `verify` compares, where a mark doesn't say
RUNS = 6

#: the run of a mark -> the figure -> its value
Figures = dict[str, dict[str, int]]


def pages() -> list[Path]:
    """The files that may have marks."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]


@dataclass(frozen=True)
class Run:
    """The run of a mark: what is compiled, and how many inputs are compared."""

    model: str
    target: str
    settings: dict[str, Any]
    runs: int

    @classmethod
    def of(cls, text: str) -> Run:
        """The run that a mark names. ValueError where it is none."""
        model, target, *given = text.split()
        settings = {name: _value(value) for name, value in (word.split("=", 1) for word in given)}
        return cls(model, target, settings, settings.pop("runs", RUNS))


def _value(text: str) -> Any:
    if text.isdecimal():
        return int(text)
    return True if text == "yes" else text


def asked() -> dict[str, set[str]]:
    """Run -> the figures that pages state of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for page in pages():
        for mark in MARKED.finditer(page.read_text(encoding="utf-8")):
            found[mark["run"]].add(mark["figure"])
    return dict(found)


def model_path(name: str, models: Path) -> Path:
    """The file of a model of peers.json, in the folder `models`, or of an example."""
    known = json.loads((HERE / "peers.json").read_text())["models"]
    return models / known[name]["file"] if name in known else ROOT / "examples" / name / f"{name}.tflite"


def measure(path: Path, run: Run, figures: set[str]) -> dict[str, int]:
    """These figures of a run; nothing is emulated where none asks for it."""
    module = tinyfuse.compile(path, run.target, **run.settings)
    report = module.report()
    verified = None
    if any(figure.startswith("verify.") for figure in figures):
        verified = module.verify(runs=run.runs)
        if not verified.exact:
            raise AssertionError(f"{path.name}: the module is not exact")
    return {
        figure: getattr(verified, figure.removeprefix("verify.")) if figure.startswith("verify.") else report[figure]
        for figure in sorted(figures)
    }


def shown(value: int, millions: bool) -> str:
    """A figure as pages have it: in millions with two digits behind the point, three below one million."""
    if not millions:
        return f"{value:,}"
    return f"{value / 1e6:.{2 if value >= 1e6 else 3}f}"


def filled(text: str, figures: Figures) -> str:
    """A page's text with every marked figure that is known."""

    def one(mark: re.Match[str]) -> str:
        value = figures.get(mark["run"], {}).get(mark["figure"])
        return (
            mark[0]
            if value is None
            else mark[0].replace(f">{mark['text']}<", f">{shown(value, bool(mark['millions']))}<")
        )

    return MARKED.sub(one, text)


def write(figures: Figures) -> None:
    """doc_figures.json, and the pages of it."""
    RESULTS.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := filled(text, figures)) != text:
            page.write_text(new, encoding="utf-8")


def runs_of(models: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
    """The runs that pages ask for, of these models or of all."""
    for run, figures in sorted(asked().items()):
        if not models or Run.of(run).model in models:
            yield run, figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models", metavar="DIR")
    parser.add_argument("--only", nargs="+", default=(), metavar="MODEL", help="of these models")
    parser.add_argument("--fill", action="store_true", help="measure nothing")
    args = parser.parse_args()
    known: Figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    figures = {run: known[run] for run in asked() if run in known}
    for run, wanted in [] if args.fill else runs_of(tuple(args.only)):
        print(run, end=": ", file=sys.stderr, flush=True)
        what = Run.of(run)
        figures[run] = measure(model_path(what.model, args.models), what, wanted)
        print(figures[run], file=sys.stderr, flush=True)
        RESULTS.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    write(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
