"""Hostile text made safe, in one place: C identifiers and C comments from names of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tinyfuse.errors import UsageError

# C99, C++17 and a few names that headers like to define as macros.
_RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using
    virtual void volatile wchar_t while xor xor_eq main errno stdin stdout stderr NULL linux unix
    tinyfuse arm""".split()
)
_LONGEST = 48

# Headers that the generated files include, directly or through another one: NAME.h lies in a folder
# that the compiler searches first. Files may be found without regard to case.
_HEADERS = frozenset(
    """alloca assert ctype endian errno features float inttypes limits malloc math memory newlib setjmp
    signal stdalign stdarg stdbool stddef stdint stdio stdlib stdnoreturn string strings time unistd
    wchar wctype""".split()
)
_HEADER_PREFIXES = ("tinyfuse_", "arm_", "cmsis_")


def identifier(text: str, fallback: str = "x") -> str:
    """A C identifier of at most 48 characters that recalls `text`: letters, digits, single '_'."""
    safe = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_LONGEST].rstrip("_")
    if not safe:
        safe = fallback
    if safe[0].isdigit():
        safe = f"{fallback}_{safe}"
    return f"{safe}_" if safe in _RESERVED else safe


def unique_identifiers(texts: Iterable[str], fallback: str = "x") -> list[str]:
    """One identifier a text, all different even in upper case (they become macros too)."""
    taken: set[str] = set()
    result = []
    for text in texts:
        base = name = identifier(text, fallback)
        number = 2
        while name.upper() in taken:
            name = f"{base.rstrip('_')}_{number}"
            number += 1
        taken.add(name.upper())
        result.append(name)
    return result


def _hides_a_header(name: str) -> bool:
    return name.lower() in _HEADERS or name.lower().startswith(_HEADER_PREFIXES)


def module_name(text: str) -> str:
    """The name a user chose with --name, checked rather than changed: it is their API's prefix."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,47}", text) or text in _RESERVED:
        raise UsageError(
            f"--name {text!r} can't prefix C names: use a letter, then at most 47 letters, digits or '_'"
        )
    if _hides_a_header(text):
        raise UsageError(f"--name {text!r} would hide the header {text.lower()}.h: use another name")
    return text


def default_module_name(model_path: str) -> str:
    """The prefix made of a model file's name: its stem in lower case."""
    stem = re.split(r"[/\\]", model_path)[-1].rsplit(".", 1)[0]
    name = identifier(stem.lower(), "model")
    return f"model_{name}"[:_LONGEST].rstrip("_") if _hides_a_header(name) else name


def comment(text: str) -> str:
    """Text that can stand inside a C comment: printable ASCII, no comment ends, no trigraphs."""
    printable = "".join(c if " " <= c <= "~" else "?" for c in text).replace("\\", "/")
    return re.sub(r"\?{2,}", "?", printable).replace("*/", "* /").replace("/*", "/ *")
