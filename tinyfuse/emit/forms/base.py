"""Types of an output form: the files with which a build system or package manager uses a module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from tinyfuse.errors import UsageError

#: source of CMSIS-NN, in the order of the values: the form's package manager; the files of --bundle, or a CMake target
#: of the application; the files of --bundle only; none, so that modules that call CMSIS-NN are refused
CmsisNn = Literal["package", "bundle or target", "bundle", "never"]

#: licence of files made from a model: that of the model's owner, who alone can choose another (LICENSE says so)
OWNERS_LICENCE = "LicenseRef-model-owner"


@dataclass(frozen=True)
class Form:
    """An output form, the value of --format.

    name         value of --format.
    summary      one line for --help and docs/forms.md.
    templates    path in the folder -> template; "{name}", "{vendor}" and "{layer}" in the path are replaced.
    in_src       the C lies in src/, and only the public header is on the include path.
    single       all C is in one file, beside its header.
    own_flags    the C sets the compiler's optimization and compiles for any core, because the form cannot pass flags.
    samples      templates of programs that run the module; left out with --weights-blob.
    programs     templates of programs that run the self-test; left out with --weights-blob or without a self-test.
    cmsis_nn     source of CMSIS-NN.
    context      returns the templates' extra variables, given all others.
    archive      returns name and content of an archive, given the module's name, package data and the folder's files.
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
    """Package data, the keys of --about."""

    version: str = "1.0.0"
    vendor: str = "tinyfuse"
    author: str = "the model's owner"
    url: str = "https://example.com"
    license: str = OWNERS_LICENCE


DEFAULT_ABOUT = About()

#: key of --about -> pattern of its value, and its description: one line that all formats can hold
_VALUES = {
    "version": (r"\d{1,5}\.\d{1,5}\.\d{1,5}", "three numbers, as 1.2.0"),
    "vendor": (r"[A-Za-z][A-Za-z0-9_-]{0,31}", "a letter, then at most 31 letters, digits, '_' or '-'"),
    "author": (r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,100}", "at most 100 characters on one line"),
    "url": (r"https?://[A-Za-z0-9.:/~_%?=&#+-]{1,200}", "an address that begins with http:// or https://"),
    "license": (r"[A-Za-z0-9][A-Za-z0-9.+() -]{0,99}", "an SPDX expression, as Apache-2.0"),
}


def make_about(given: Mapping[str, str]) -> About:
    """Package data from checked values. UsageError for an unknown key, or a value that some format cannot hold."""
    known = ", ".join(each.name for each in fields(About))
    for key, value in given.items():
        if key not in _VALUES:
            raise UsageError(f"--about {key}=: unknown key; the keys are {known}")
        pattern, words = _VALUES[key]
        if not re.fullmatch(pattern, value) or value != value.strip():
            raise UsageError(f"--about {key}={value!a}: give {words}")
    return About(**given)


def public_licence(about: About) -> str | None:
    """Licence as registries accept it, an identifier of SPDX's list; None if it is not in that list."""
    return None if about.license.startswith("LicenseRef-") else about.license


@dataclass(frozen=True)
class Layout:
    """Folders of the C, below the generated folder; each ends in "/", "" is the generated folder itself.

    public   folder of NAME.h, which is on the include path
    private  folder of all other C
    single   all other C is in NAME.c
    """

    public: str
    private: str
    single: bool
