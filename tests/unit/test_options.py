"""Options are declared once; flags, requests, JSON, docs and the printed command follow from the declaration."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, replace
from pathlib import Path

import pytest

import tinyfuse
from tinyfuse.api.settings_help import settings_help
from tinyfuse.cli import verify as verify_command
from tinyfuse.cli.main import main
from tinyfuse.cli.reference import options_markdown
from tinyfuse.cli.request import Request, command_line
from tinyfuse.errors import UsageError
from tinyfuse.options import Files, Flag, Options, ProfileOptions, RunOptions, VerifyOptions, flags

ROOT = Path(__file__).resolve()
while not (ROOT / "pyproject.toml").is_file():
    ROOT = ROOT.parent

#: another value than the default of every option, as it is typed
OTHERS = {
    "name": "net", "kernels": "tinyfuse", "fusion": "basic", "optimize": "ram", "count": "cycles",
    "timing": "80MHz,wait=4,line=8", "recompute": 1.5, "weights": "unpacked",
    "weights_blob": True, "feed_rows": True, "input_layout": "nhwc", "output_layout": "nhwc", "step": True,
    "max_step": "20000", "slide": 2, "slide_axis": 3, "plugins": ("a b.py", "c.py"), "labels": ("a.txt", "b c.txt"),
    "cmsis_nn_version": "6.0", "memory": ("dtcm=64K", "qspi=8M:slow"), "max_ram": "20K", "max_flash": "1M",
    "emulator": "renode", "oracle": "litert", "runs": 8, "frames": 2, "seed": 7, "compiler": "clang", "compiler_opt": "Os",
    "timeout": 9.5, "thorough": True,
}  # fmt: skip


def parsed(command: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Request, VerifyOptions]:
    """The request that `verify` gets from a command line."""
    asked = []

    def seen(request: Request, progress: object, how: VerifyOptions) -> None:
        asked.append((request, how))

    monkeypatch.setattr(verify_command, "verify", seen)
    monkeypatch.setattr(verify_command, "show", lambda answer, as_json: 0)
    monkeypatch.setattr("tinyfuse.cli.flags.plugins", lambda paths: memoryview(b""))  # not loaded
    assert main.commands["verify"].main(command, standalone_mode=False) == 0
    return asked[0]


def test_docs_have_what_is_declared() -> None:
    page = (ROOT / "docs" / "options.md").read_text()
    assert page == options_markdown(), "run: python -m tinyfuse.cli.reference"
    for declared in (Options, VerifyOptions, RunOptions, ProfileOptions):
        for flag in flags(declared).values():
            assert f"| `{flag.flag}" in page


def test_python_s_help_has_the_options_text_in_python_s_spelling() -> None:
    declared = {
        "step": Flag("--step", False, "One."),
        "weights_of": Flag("--weights-of", "a", "Two.", choices=("a", "b")),
    }
    declared["third"] = Flag("--third", None, "With --weights-of b, not --step (--bundle).", otherwise="2 with --step")
    assert settings_help(declared) == (
        "step        One. Default: False.\n"
        'weights_of  Two. Default: "a".\n'
        'third       With weights_of="b", not step (--bundle). Default: 2 with step.'
    )
    text = " ".join((tinyfuse.Settings.__doc__ or "").split())
    for name, flag in (flags(Options) | flags(Files)).items():
        assert (f" {name} {flag.help.partition(' --')[0]}" in text) == (name not in ("cmsis_nn_path", "quantize_with"))
    assert re.findall("--[a-z-]+", text) == ["--bundle"]


def test_every_option_that_was_given_is_in_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OTHERS.keys() == flags(Options).keys() | flags(VerifyOptions).keys()
    given = {name: OTHERS[name] for name in flags(Options)}
    files = {"front_end": "a front end.tflite", "cmsis_nn_path": "/sources", "quantize_with": ("a=x y.npy", "b=z.npy")}
    request = Request("a model.tflite", "cortex-m4", **files, **given)
    how = VerifyOptions(**{name: OTHERS[name] for name in flags(VerifyOptions)})
    program, command, *words = shlex.split(command_line("verify", request, how))
    assert (program, command) == ("tinyfuse", "verify")
    again, how_again = parsed(words, monkeypatch)
    assert how_again == how
    assert vars(again) == vars(request)  # some contradict each other, so that there are no Options of it


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slide_axis": 1}, "works only with --slide"),
        ({"slide": 1, "step": True}, "--slide and --step"),
        ({"step": True, "feed_rows": True}, "--step and --feed-rows"),
        ({"feed_rows": True, "fusion": "none"}, "--feed-rows needs --fusion rows, not none"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Options("net", **given)


def test_defaults_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "tinyfuse verify m.tflite --target host"
    assert command_line("verify", Request("m.tflite", "host"), VerifyOptions()) == command
    request, how = parsed(["m.tflite", "--target", "host"], monkeypatch)
    assert command_line("verify", request, how) == command
    assert (request.options, how) == (Options("m"), VerifyOptions())


def test_a_request_settles_what_depends_on_the_model() -> None:
    request = Request("dir/my net.tflite", "host", plugins=("x/p.py",), max_ram="20K", max_flash=7)
    assert request.options == Options("my_net", plugins=("p.py",), max_ram=20480, max_flash=7)
    assert request.replace(name="n", max_ram=None).options == Options("n", plugins=("p.py",), max_flash=7)
    assert request.options.cmsis_nn_version == "7.0"
    assert request.cmsis_nn_version is None
    with pytest.raises(UsageError, match="'much' is not a size"):
        _ = request.replace(max_ram="much").options
    with pytest.raises(TypeError, match="unknown option fusoin"):
        Request("m.tflite", "host", fusoin="rows")


def test_every_field_but_what_a_tree_lacks_has_a_flag() -> None:
    assert {field.name for field in fields(Options)} - flags(Options).keys() == {"cmsis_nn_lacks"}
    for declared in (VerifyOptions, RunOptions, ProfileOptions):
        assert [field.name for field in fields(declared)] == list(flags(declared))
        assert replace(declared()) == declared(**{name: flag.default for name, flag in flags(declared).items()})
