"""C identifiers from names of models and tensors, which may be hostile."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinyfuse.emit.identifiers import comment, default_module_name, identifier, module_name, unique_identifiers
from tinyfuse.errors import UsageError


@example(["if", "if"])  # a reserved word ends in "_" already
@given(st.lists(st.text()))
def test_identifiers_are_valid_c_and_unique(texts: list[str]) -> None:
    names = unique_identifiers(texts)
    assert len({name.upper() for name in names}) == len(texts)
    for name in names:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and "__" not in name, name


@example("*\\")
@given(st.text())
def test_comments_cannot_end_early(text: str) -> None:
    safe = comment(text)
    assert "*/" not in safe and "/*" not in safe and "??" not in safe and "\\" not in safe
    assert all(" " <= c <= "~" for c in safe)


def test_reserved_words_are_no_names() -> None:
    assert identifier("int") == "int_" and identifier("main") == "main_"


@pytest.mark.parametrize("bad", ["", "1a", "a b", "a;b", "int", "a" * 49, "../x", "é"])
def test_a_bad_name_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="--name"):
        module_name(bad)


@pytest.mark.parametrize(
    "name, reason",
    [
        ("int", "a keyword of C:"), ("asm", "a keyword of C:"), ("class", "a keyword of C\\+\\+:"),
        ("co_await", "a keyword of C\\+\\+"), ("int8_t", "a standard type"), ("uint_fast16_t", "a standard type"),
        ("size_t", "a standard type"), ("main", "a name that C's library"), ("NULL", "a name that C's library"),
        ("tinyfuse", "a prefix of the module's own names"), ("string", "would hide the header string.h"),
        ("tinyfuse_rows", "would hide the header"), ("a b", "at most 47 letters"),
    ],
)  # fmt: skip
def test_a_refused_name_says_why_and_another_one_serves(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as told:
        module_name(name)
    suggested = str(told.value).partition("such as ")[2]
    assert not suggested or module_name(suggested)


def test_the_default_name_comes_from_the_file() -> None:
    assert default_module_name("/a/b.c/KWS ref-model.v2.tflite") == "kws_ref_model_v2"
    assert default_module_name("2.tflite") == "model_2"
