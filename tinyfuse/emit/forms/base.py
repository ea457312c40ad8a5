"""What an output form is: the files by which one build system, package manager or person takes a module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from tinyfuse.errors import UsageError

#: How a form gets at CMSIS-NN: by asking its package manager for it, by compiling what --bundle copies (CMake takes a
#: target of the application as well), or not at all.
CmsisNn = Literal["package", "bundle or target", "bundle", "never"]

#: the licence of what is made of a model: its owner's, who alone can name another (LICENSE says so)
OWNERS_LICENCE = "LicenseRef-model-owner"


@dataclass(frozen=True)
class Form:
    """An output form, the value of --format.

    name         as it is typed
    summary      one line for --help and docs/forms.md
    templates    file of the folder -> file of templates; "{name}", "{vendor}" and "{layer}" in it are filled in
    in_src       the C has to lie in src/, where only the public header is in sight
    single       all C in one file beside its header
    own_flags    the C carries its compiler's optimization, and compiles for any core: the form has no place for flags
    samples      likewise as templates, of programs that run the module; left out where its weights lie apart
    programs     likewise, of programs that run the self-test; without one they are left out too
    cmsis_nn     how it gets at CMSIS-NN
    context      what its templates know beside the module, made from all that they know
    archive      name and content of a file that holds the others, made of the module's name and the folder
    """

    name: str
    summary: str
    templates: Mapping[str, str]
    in_src: bool = False
    single: bool = False
    own_flags: bool = False
    samples: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    cmsis_nn: CmsisNn = "never"
    context: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=lambda known: {})
    archive: Callable[[str, About, Mapping[str, bytes]], tuple[str, bytes]] | None = None


@dataclass(frozen=True)
class About:
    """What packages say of themselves, the keys of --about."""

    version: str = "1.0.0"
    vendor: str = "tinyfuse"
    author: str = "the model's owner"
    url: str = "https://example.com"
    license: str = OWNERS_LICENCE


DEFAULT_ABOUT = About()

#: key of --about -> what its value is, as a pattern and in words: one line, which formats can hold
_VALUES = {
    "version": (r"\d{1,5}\.\d{1,5}\.\d{1,5}", "three numbers, as 1.2.0"),
    "vendor": (r"[A-Za-z][A-Za-z0-9_-]{0,31}", "a letter, then at most 31 letters, digits, '_' or '-'"),
    "author": (r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,100}", "at most 100 characters on one line"),
    "url": (r"https?://[A-Za-z0-9.:/~_%?=&#+-]{1,200}", "an address that begins with http:// or https://"),
    "license": (r"[A-Za-z0-9][A-Za-z0-9.+() -]{0,99}", "an SPDX expression, as Apache-2.0"),
}


def make_about(given: Mapping[str, str]) -> About:
    """Checked. UsageError for a key that there is not, or a value that some format could not hold."""
    known = ", ".join(each.name for each in fields(About))
    for key, value in given.items():
        if key not in _VALUES:
            raise UsageError(f"--about {key}=: there is no such key; there are {known}")
        pattern, words = _VALUES[key]
        if not re.fullmatch(pattern, value) or value != value.strip():
            raise UsageError(f"--about {key}={value!a}: give {words}")
    return About(**given)


def public_licence(about: About) -> str | None:
    """What a registry can be told: it knows the identifiers of SPDX's list alone."""
    return None if about.license.startswith("LicenseRef-") else about.license


@dataclass(frozen=True)
class Layout:
    """Where the C lies in its folder; folders end in "/", the folder itself is "".

    public   of NAME.h, which is on the include path
    private  of all other C
    single   all other C is NAME.c
    """

    public: str
    private: str
    single: bool
