"""Makes hostile text safe: C identifiers and C comments from the model's names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tinyfuse.errors import UsageError

#: names that a module can't have -> reason; keywords of C to C23 and of C++ to C++20
_RESERVED = {
    word: reason
    for reason, words in {
        "a keyword of C": """auto bool break case char const constexpr continue default do double else enum extern
            false float for goto if inline int long nullptr register restrict return short signed sizeof static
            static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void
            volatile while alignas alignof asm""",
        "a keyword of C++": """and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return
            co_yield compl concept const_cast consteval constinit decltype delete dynamic_cast explicit export
            friend mutable namespace new noexcept not not_eq operator or or_eq private protected public
            reinterpret_cast requires static_cast template this throw try typeid typename using virtual wchar_t
            xor xor_eq""",
        "a name that C's library or a compiler defines": "main errno stdin stdout stderr NULL linux unix",
        "a prefix of the module's own names": "tinyfuse arm",
    }.items()
    for word in words.split()
}
#: the types of <stdint.h> and <stddef.h>
_STANDARD_TYPES = re.compile(r"u?int((_fast|_least)?(8|16|32|64)|max|ptr)_t|(size|ptrdiff|ssize|max_align)_t")
_LONGEST = 48

# Headers that generated files include, directly or not. NAME.h would hide them, because its folder is searched first.
# File names may be compared without regard to case.
_HEADERS = frozenset(
    """alloca assert ctype endian errno features float inttypes limits malloc math memory newlib setjmp
    signal stdalign stdarg stdbool stddef stdint stdio stdlib stdnoreturn string strings time unistd
    wchar wctype""".split()
)
#: names of targets that CMake and Meson define, in lower case
_OTHER_TARGETS = frozenset(
    "all benchmark clean dist distcheck help install package package_source phony reconfigure test uninstall".split()
)
_HEADER_PREFIXES = ("tinyfuse_", "arm_", "cmsis_")


def identifier(text: str, fallback: str = "x") -> str:
    """A C identifier of at most 48 characters that recalls `text`: letters, digits, single '_'."""
    safe = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_LONGEST].rstrip("_")
    if not safe:
        safe = fallback
    if safe[0].isdigit():
        safe = f"{fallback}_{safe}"
    return f"{safe}_" if _reserved_as(safe) else safe


def unique_identifiers(texts: Iterable[str], fallback: str = "x") -> list[str]:
    """Identifier for each text, distinct even in upper case (they become macros too)."""
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


def _reserved_as(name: str) -> str | None:
    """Reason why the name is reserved; None if it is free."""
    return "a standard type" if _STANDARD_TYPES.fullmatch(name) else _RESERVED.get(name)


def _hides_a_header(name: str) -> bool:
    return name.lower() in _HEADERS or name.lower().startswith(_HEADER_PREFIXES)


def module_name(text: str) -> str:
    """Checks the name of --name, and returns it unchanged, because it is the prefix of the user's API."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,47}", text):
        raise UsageError(f"--name {text!r} can't prefix C names: use a letter, then at most 47 letters, digits or '_'")
    if reason := _reserved_as(text):
        raise UsageError(f"--name {text!r} is {reason}: use another name, such as my_{text}")
    if _hides_a_header(text):
        raise UsageError(f"--name {text!r} would hide the header {text.lower()}.h: use another name")
    return text


def library_target(name: str) -> str:
    """Name of the module's target in build systems: `name`, or NAME_model if they define a target of that name."""
    return f"{name}_model" if name.lower() in _OTHER_TARGETS else name


def default_module_name(model_path: str) -> str:
    """Default prefix: the stem of the model file's name in lower case."""
    stem = re.split(r"[/\\]", model_path)[-1].rsplit(".", 1)[0]
    name = identifier(stem.lower(), "model")
    return f"model_{name}"[:_LONGEST].rstrip("_") if _hides_a_header(name) else name


def c_string(text: str) -> str:
    """C string literal of any text without NUL. Other characters than plain ASCII become octal escapes of their UTF-8
    bytes, and so do question marks, which might form trigraphs."""
    plain = {ord(c): c for c in map(chr, range(0x20, 0x7F)) if c not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def comment(text: str) -> str:
    """Text that is safe in a C comment: printable ASCII without ends of comments and trigraphs."""
    printable = "".join(c if " " <= c <= "~" else "?" for c in text).replace("\\", "/")
    return re.sub(r"\?{2,}", "?", printable).replace("*/", "* /").replace("/*", "/ *")
