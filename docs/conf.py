"""The documentation site, built strictly (tests/product/test_site.py does, so that a broken link fails CI):

    sphinx-build --fail-on-warning --nitpicky -c docs . build/site

Its source folder is the whole checkout, so that links between docs/, README.md, CONTRIBUTING.md and the examples
are the same here as on GitHub. docs/index.md is the table of contents.
"""

import re
import sys
from pathlib import Path

import tinyfuse
from tinyfuse.report.operators import operators_json
from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.document import schema_text

sys.path.insert(0, str(Path(__file__).parent / "site"))

from operators_page import operators_markdown

project = "tinyfuse"
author = "tinyfuse's authors"
version = release = tinyfuse.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "directives"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "examples/**", "benchmarks/*.md"]
# what is not walked through; links into it are files to download
exclude_patterns = [".*", "**/.*", "build", "dist", "shared", "tests", "tinyfuse", "**/__pycache__"]

# Markdown: anchors of headings as GitHub makes them
myst_heading_anchors = 4

# Types of signatures that have no page of their own; a name that autodoc documents must be found.
nitpick_ignore_regex = [("py:.*", r"(?!tinyfuse\.).*"), ("py:.*", r"tinyfuse\.\w+\..*")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

highlight_language = "none"  # a block that names no language is text
smartquotes = False  # `--option` in a help text is no dash
html_theme = "pydata_sphinx_theme"
html_title = "tinyfuse"
html_theme_options = {
    "navbar_center": [],
    "show_toc_level": 2,
    # the wide table of operators takes the place of the headings, to which it links
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/reference/operators": []},
}
html_sidebars = {"**": ["contents.html"]}
html_copy_source = False
html_extra_path = ["site/index.html"]
templates_path = ["site/templates"]


def _as_rst(_app, _what, _name, _object, _options, lines):
    """Our docstrings are plain text: `code` in single quotes, and columns that are aligned. Paragraphs become
    paragraphs, columns stay as they are written."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines[:] = [*"\n\n".join(_paragraph(text) for text in paragraphs).split("\n"), ""]


def _paragraph(text: str) -> str:
    if re.search(r"(^|\S)  +\S", text, re.MULTILINE):
        return "::\n\n" + "\n".join("    " + line for line in text.split("\n"))
    pieces = text.replace("``", "`").split("`")
    code = [f"``{piece}``" if at % 2 and piece.strip() else _escaped(piece) for at, piece in enumerate(pieces)]
    return "".join(code)


def _escaped(text: str) -> str:
    return re.sub(r"([\\*|_])", r"\\\1", text)


def _add_operators(_app, name, source):
    """Append the tables of operators to their page."""
    if name == "docs/reference/operators":
        source[0] += "\n" + operators_markdown(operators_json())


def _write_schemas(app, _exception):
    """Write each command's JSON Schema to schema/COMMAND.json of the site."""
    folder = Path(app.outdir) / "schema"
    folder.mkdir(exist_ok=True)
    for name in ANSWERS:
        (folder / f"{name}.json").write_text(schema_text(name))


def setup(app):
    """Register the event handlers; Sphinx calls this."""
    app.connect("autodoc-process-docstring", _as_rst)
    app.connect("source-read", _add_operators)
    app.connect("build-finished", _write_schemas)
