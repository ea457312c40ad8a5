"""Output forms: a folder of C with the files that build systems and package managers need.

Each form is data (`Form`, one per file here, with templates in templates/forms). This module has the code for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tinyfuse.emit.forms import (
    arduino,
    cmake,
    cmsis_pack,
    csolution,
    esp_idf,
    make,
    meson,
    platformio,
    single_file,
    zephyr,
)
from tinyfuse.emit.forms.base import DEFAULT_ABOUT, About, Form, make_about
from tinyfuse.emit.forms.layout import c_paths, lay_out_files, layout_of
from tinyfuse.emit.forms.spdx import with_licence
from tinyfuse.emit.identifiers import library_target
from tinyfuse.emit.render import render
from tinyfuse.errors import UsageError

#: --format's name -> form, in the order of the documentation
FORMS: dict[str, Form] = {
    module.FORM.name: module.FORM
    for module in (
        cmake, make, meson, zephyr, arduino, platformio, cmsis_pack, csolution, esp_idf, single_file
    )
}  # fmt: skip

#: the licence of runtime_c/
KERNELS_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Delivery:
    """Packaging of a module; without forms, the plain folder of `gen`.

    bundled  names of the files that --bundle adds, relative to the folder
    layer    file name of csolution's layer; None for NAME.clayer.yml
    board    adds NAME_board.c, which answers `tinyfuse board validate`
    """

    forms: tuple[Form, ...] = ()
    about: About = DEFAULT_ABOUT
    bundled: tuple[str, ...] = ()
    layer: str | None = None
    board: bool = False

    @property
    def single(self) -> bool:
        return any(form.single for form in self.forms)

    @property
    def own_flags(self) -> bool:
        return any(form.own_flags for form in self.forms)

    @property
    def runs_selftest(self) -> bool:
        return any(form.programs for form in self.forms)


#: packaging without --format
PLAIN = Delivery()


def make_delivery(
    formats: Sequence[str], about: Mapping[str, str], layer: str | None = None, board: bool = False
) -> Delivery:
    """Delivery with the forms of these names, package data `about`, the layer's file name, and NAME_board.c if `board`.

    UsageError for an unknown form or key, an invalid value, or `about` without a form.
    """
    for name in formats:
        if name not in FORMS:
            raise UsageError(f"unknown output form {name!r}; the forms are {', '.join(FORMS)}")
    if about and not formats:
        raise UsageError("--about describes a package, which only --format writes; add --format")
    return Delivery(
        tuple(form for name, form in FORMS.items() if name in formats), make_about(about), layer=layer, board=board
    )


def check_cmsis_nn(delivery: Delivery) -> None:
    """UsageError if a form cannot provide the CMSIS-NN that a module calls."""
    for form in delivery.forms:
        if form.cmsis_nn == "never":
            raise UsageError(f"--format {form.name} cannot use CMSIS-NN, which the module calls; add --kernels auto")
        if form.cmsis_nn == "bundle" and not delivery.bundled:
            raise UsageError(
                f"--format {form.name} compiles the CMSIS-NN that the module calls with it; add --bundle, or "
                "--kernels auto"
            )


def package_files(context: Mapping[str, Any], c_files: Mapping[str, str], delivery: Delivery) -> dict[str, str]:
    """Texts of all files of the folder by path, without reports, bundled files and archives.

    context  variables that the module's C was rendered with
    c_files  bare name -> text of the module's C and of the kernels' headers

    UsageError if two forms need a file of the same name.
    """
    known = _template_context(context, c_files, delivery)
    files = lay_out_files(context["name"], c_files, known["layout"])
    if not delivery.forms:
        return files | {file: render(template, known) for file, template in cmake.FORM.templates.items()}
    files |= {file: render(f"forms/{file}.j2", known) for file in ("LICENSE", "README.md")}
    makers: dict[str, str] = {}
    for form in delivery.forms:
        own = {**known, **form.context(known)}
        for path, template in _templates(form, context).items():
            file = path.format(name=context["name"], vendor=delivery.about.vendor, layer=known["layer"])
            if file in makers:
                raise UsageError(
                    f"--format {makers[file]} and --format {form.name} both make {file}: generate them into folders "
                    "of their own"
                )
            files[file], makers[file] = render(template, own), form.name
    return {file: with_licence(file, text, _licence(file, known)) for file, text in files.items()}


def _templates(form: Form, context: Mapping[str, Any]) -> dict[str, str]:
    """Output path -> template of a form. With a weights' blob, programs that run the module are left out, because they
    would have no blob to bind."""
    if context["blob"]:
        return dict(form.templates)
    return {**form.templates, **form.samples, **(form.programs if context["selftest"] else {})}


def _template_context(context: Mapping[str, Any], c_files: Iterable[str], delivery: Delivery) -> dict[str, Any]:
    """Variables of all forms' templates."""
    layout = layout_of(context["name"], delivery.forms)
    placed = c_paths(context["name"], c_files, layout)
    return {
        **context,
        # without forms the target is called like the module
        "library": library_target(context["name"]) if delivery.forms else context["name"],
        "forms": delivery.forms,
        "about": delivery.about,
        "layer": delivery.layer or f"{context['name']}.clayer.yml",
        "layout": layout,
        "c_files": placed,
        "sources": [file for file in placed if file.endswith(".c")],
        "bundled_sources": [file for file in delivery.bundled if file.endswith(".c")],
        "bundled_folders": ["cmsis-nn/Include", "cmsis-nn/core"] if delivery.bundled else [],
    }


def _licence(file: str, known: Mapping[str, Any]) -> str:
    """SPDX expression of a file of the folder."""
    owners = str(known["about"].license)
    if PurePosixPath(file).name.startswith("tinyfuse_"):
        return KERNELS_LICENCE
    if known["layout"].single and file in known["sources"]:  # it contains kernels
        return f"{f'({owners})' if ' ' in owners else owners} AND {KERNELS_LICENCE}"
    return owners


def archives(name: str, delivery: Delivery, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Archives that the forms make of the finished folder of module `name`: file name -> content."""
    return dict(form.archive(name, delivery.about, files) for form in delivery.forms if form.archive is not None)
