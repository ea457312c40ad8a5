"""Runs every command of the pages in a folder with small models, and compares its output with the page's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from docs_blocks import ROOT, RUN, Block, blocks, blocks_of, commands, differs, pages, run, split
from docs_models import image_classifier, keyword_stream, write_models
from test_emulation import needs_qemu

from tinyfuse.cli.main import main

BLOCKS = {page: blocks(page) for page in pages()}
#: how a line begins that is a command, whatever the language of its block
COMMAND = re.compile(
    r"^\s*(\$|tinyfuse|python3?|pip|pytest|bash|sh|\./|\.venv|cmake|make|ninja|gcc|qemu|sudo|apt|git)\s"
)
#: what the options in the prose belong to, if not to tinyfuse
OTHERS_OPTIONS = {
    "--campaign",
    "--models",
    "--missing",
    "--networks",
    "--first",
    "--targets",
    "--dtypes",
    "--alone",
    "--singles",
    "--loop",
    "--update-golden",
    "--check",
    "--version",
}


def _runnable(page: str) -> list[Block]:
    return [block for block in BLOCKS[page] if (block.language in RUN and not block.not_run) or block.file]


@needs_qemu
@pytest.mark.emulated
@pytest.mark.parametrize("page", [page for page in BLOCKS if _runnable(page)])
def test_the_commands_of(page: str, tmp_path: Path) -> None:
    """Runs all blocks of a page in order: later ones may use what earlier ones wrote."""
    write_models(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("build", "__pycache__"))
    (tmp_path / "docs" / "images").mkdir(parents=True)
    for block in _runnable(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text + "\n")
        if block.language in RUN:
            run(block, tmp_path)
    for picture in (tmp_path / "docs" / "images").iterdir():
        assert picture.read_text() == (ROOT / "docs" / "images" / picture.name).read_text(), f"{picture.name} is stale"


@pytest.mark.parametrize("block", [b for found in BLOCKS.values() for b in found if b.not_run], ids=str)
def test_not_run(block: Block) -> None:
    """Counts and prints (pytest -ra, which is configured) what can't be run here, and why."""
    assert block.language in RUN
    assert len(block.not_run.split()) > 2
    for named in re.findall(r"test_\w+\.py", block.not_run):
        assert list((ROOT / "tests").rglob(named)), f"{block}: there is no {named}"
    pytest.skip(f"{block}: {block.not_run}")


@pytest.mark.parametrize("page", BLOCKS)
def test_no_command_hides(page: str) -> None:
    """Every fence is understood, and what looks like a command is in a block that is run."""
    text = (ROOT / page).read_text()
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(BLOCKS[page])
    assert len(re.findall(r"<!-- (?:not run|file):", text)) == sum(bool(b.not_run or b.file) for b in BLOCKS[page])
    for block in BLOCKS[page]:
        if block.language not in (*RUN, "make", "cmake", "c"):
            hidden = [line for line in block.text.split("\n") if COMMAND.match(line)]
            assert not hidden, f"{block}: commands in a block without language: {hidden}"


def _spoken() -> list[tuple[str, str]]:
    """(page, words) of each inline `tinyfuse ...` and of each inline `--option ...`."""
    found = []
    for page in BLOCKS:
        prose = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
        prose = prose.replace("\\`", "'")  # no code: a mark that is written out
        found += [(page, " ".join(code.split())) for code in re.findall(r"`((?:tinyfuse|--)[^`]*)`", prose)]
    return sorted(set(found))


def test_commands_and_options_in_the_prose_exist() -> None:
    spoken = _spoken()
    assert len(spoken) > 60
    every = {option for command in main.commands.values() for option in _options(command)} | {"--help", "--version"}
    for page, text in spoken:
        words = re.split(r"[\s|\[\]]+", text.replace("\\|", "|"))
        command, known = main, every | OTHERS_OPTIONS
        if words[0] == "tinyfuse":
            while len(words) > 1 and isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", words[1]):
                command = command.commands.get(words.pop(1))
                assert command is not None, (page, text)
            known = _options(command) if command is not main else known
        unknown = [
            word for word in words if word.startswith("--") and word != "--" and word.partition("=")[0] not in known
        ]
        assert not unknown, (page, text)


#: names of the checkout's files; virtual environments, of ten times as many, aren't looked through
KNOWN = {path.name for top in ROOT.iterdir() if not top.name.startswith(".") for path in (top, *top.rglob("*.*"))}
#: files that pages speak of and no checkout has: the reader's own, what gen writes, what a name stands for
OTHERS_FILES = {
    "FILE.py",
    "arm_nnsupportfunctions.h",
    "cmsis_compiler.h",
    "idf.py",
    "idf_component.yml",
    "module.yml",
    "zephyr_module.py",
}
_FILE = re.compile(r"(?<![\w./<*-])(?:[\w-]+/)*[\w-]+\.(?:py|h|toml|j2|md|sh|cmake|yml|robot)\b(?![\w/])")
_FOLDERS = (ROOT, ROOT / "tinyfuse", ROOT / "tests")


@pytest.mark.parametrize("page", BLOCKS)
def test_files_in_the_prose_exist(page: str) -> None:
    """A path with a folder must exist in the checkout or the package, a name alone anywhere."""
    prose = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    here = (*_FOLDERS, (ROOT / page).parent)
    missing = set()
    for name in set(_FILE.findall(prose)) - OTHERS_FILES:
        if re.search(r"NAME|CORE|FOLDER|kws|digits|^tinyfuse_\*", name) or (page == "CHANGELOG.md"):
            continue
        if "/" in name and not any((folder / name).is_file() for folder in here):
            missing.add(name)
        if "/" not in name and name not in KNOWN:
            missing.add(name)
    assert not missing


def _options(command: click.Command) -> set[str]:
    nested = command.commands.values() if isinstance(command, click.Group) else ()
    own = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    return own.union(*(_options(inner) for inner in nested))


def test_exit_codes_are_told_alike() -> None:
    """Compares docs/json.md with `tinyfuse --help`."""
    page = (ROOT / "docs" / "json.md").read_text()
    for text in (page.partition("Exit codes")[2], main.epilog.partition("Exit codes")[2]):
        codes = re.findall(r"\b(\d)\W+(?:success|outputs differ|wrong usage|a tool|the emulated|a bug)", text)
        assert codes == [str(code) for code in range(6)]


# --- C -----------------------------------------------------------------------------------------

C_BLOCKS = [b for page in BLOCKS for b in BLOCKS[page] if b.language == "c" and "kws_" in b.text and not b.file]
#: what the surrounding firmware has
AROUND = """\
#include <string.h>
#include "kws.h"
#ifdef KWS_SLIDE_STEP
static int8_t newest[KWS_INPUT_INPUT_1_BYTES];
static int steps = 2 * KWS_SLIDE_WINDOW;
static int next_frames(int8_t *frames) { return frames != NULL && steps-- > 0; }
static void show(const int8_t *scores) { (void)scores; }
#elif defined(KWS_FEED_ROWS)
static int8_t rows[KWS_FEED_ROWS * KWS_FEED_ROWS];
#else
static int8_t features[KWS_INPUT_INPUT_1_BYTES];
static float reals[KWS_INPUT_INPUT_1_ELEMENTS], probabilities[KWS_OUTPUT_IDENTITY_ELEMENTS];
#endif
#ifdef KWS_WEIGHTS_BYTES
static KWS_ALIGNED(KWS_WEIGHTS_ALIGN) uint8_t weights[KWS_WEIGHTS_BYTES]; /* of zeros: refused */
enum { weights_bytes = sizeof weights };
#endif
enum { count = 1 };
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs cc")
@pytest.mark.parametrize("block", C_BLOCKS, ids=str)
def test_the_c_compiles(block: Block, tmp_path: Path) -> None:
    """A page's C for a module `kws`: fed by rows, over a sliding window, with state, its arena in parts, or none
    of it."""
    fed, slides, binds = (f"kws_{name}" in block.text for name in ("feed_rows", "slide", "bind"))
    slides = slides or (fed and "stream" in block.text)  # a step's rows
    keeps = "DEFINE_STATE" in block.text and not slides
    (tmp_path / "kws.tflite").write_bytes(keyword_stream() if keeps else image_classifier())
    gen = ["gen", str(tmp_path / "kws.tflite"), "--target", "host", "-o", str(tmp_path / "kws_tinyfuse")]
    gen += [*["--feed-rows"] * fed, *["--step"] * ("kws_step" in block.text), *["--slide", "2"] * slides]
    gen += ["--weights-blob"] * binds
    gen += ["--memory", "dtcm=128", "--memory", "sram=64K"] * ("arena_parts" in block.text)
    assert CliRunner().invoke(main, gen).exit_code == 0
    outside = [line for line in block.text.split("\n") if line.startswith(("#include", "static"))]
    inside = [line for line in block.text.split("\n") if line not in outside]
    arena = [] if "DEFINE_ARENA" in block.text else ["static KWS_DEFINE_ARENA(arena);"]
    given = ["const int8_t *scores = kws_output_Identity(arena);"] * (
        "(scores" in block.text and "*scores" not in block.text
    )
    body = ["int main(void) {", *given, *inside, *["(void)scores;"] * ("*scores" in block.text), "return 0; }"]
    (tmp_path / "main.c").write_text("\n".join([AROUND, *arena, *outside, *body]) + "\n")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Ikws_tinyfuse", "main.c"]
    sources = ["kws_tinyfuse/kws.c", *["kws_tinyfuse/kws_weights.c"] * (not binds)]
    built = subprocess.run([*command, *sources, "-lm", "-o", "main"], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_build_systems_snippets_are_those_that_tests_build() -> None:
    """Tests of rebuilds and of the wheel build the blocks of docs/build-systems.md; other pages repeat examples."""
    cmake = {page: [b.text for b in BLOCKS[page] if b.language == "cmake"] for page in BLOCKS}
    assert len(cmake["docs/build-systems.md"]) == 1
    for page in cmake.keys() - {"docs/build-systems.md"}:
        example = (ROOT / page).parent / "CMakeLists.txt"
        example = (example if example.is_file() else ROOT / "examples" / "digits" / "CMakeLists.txt").read_text()
        assert all(line in example for text in cmake[page] for line in text.split("\n")), page
    assert [page for page in BLOCKS if any(b.language == "make" for b in BLOCKS[page])] == ["docs/build-systems.md"]


# --- the test itself ---------------------------------------------------------------------------

PAGE = """\
# A page

<!-- not run: needs a board to flash -->
```sh
flash it
```

```console
$ echo one; echo two
one
...
$ printf 'a\\nb\\n' |
> sort -r
b
a
```

<!-- file: x.py -->
```python
print(1)
```
"""


def test_blocks_and_markers_are_read(tmp_path: Path) -> None:
    flash, console, python = blocks_of("page.md", PAGE)
    assert (flash.not_run, flash.line, str(flash)) == ("needs a board to flash", 5, "page.md:5")
    assert commands(console) == [("echo one; echo two", "one\n...\n"), ("printf 'a\\nb\\n' |\nsort -r", "b\na\n")]
    run(console, tmp_path)
    assert (python.file, python.language, python.text) == ("x.py", "python", "print(1)")


@pytest.mark.parametrize(
    ("command", "plain", "rest"),
    [
        ("tinyfuse gen a.tflite  # why", [["gen", "a.tflite"]], ""),
        ("tinyfuse gen a \\\n    --about 'x y'\ntinyfuse targets\ngcc a.c", [["gen", "a", "--about", "x y"], ["targets"]], "gcc a.c"),
        ("tinyfuse gen a || true", [], "tinyfuse gen a || true"),
        ("cd x\ntinyfuse gen a", [], "cd x\ntinyfuse gen a"),
        ("tinyfuse gen \"$MODEL\"", [], "tinyfuse gen \"$MODEL\""),
    ],
)  # fmt: skip
def test_what_needs_a_shell(command: str, plain: list[list[str]], rest: str) -> None:
    assert split(command) == (plain, rest)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "tinyfuse gen missing.tflite"),
        ("sh", "false\ntrue"),
        ("sh", "false | cat"),
        ("console", "$ echo one\ntwo"),
        ("console", "$ echo one\none\n$ false"),
        ("python", "assert 1 == 2"),
    ],
)
def test_a_block_that_fails_is_found(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:7"):
        run(Block("page.md", 7, language, text), tmp_path)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n...\nz", "a\nb\nc\nz\n", True),
        ("a\n...\nz", "a\nb\n", False),
        ("a ... z\n", "a b z", True),
        ("a ... z", "a\nz", False),
        ("a\n...", "a", True),
        ("a.", "ab", False),
        ("a", "a\nb", False),
    ],
)
def test_elisions(shown: str, printed: str, same: bool) -> None:
    assert differs(shown, printed) is not same
