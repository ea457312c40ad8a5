"""Request of a user, and the command line that repeats it."""

from __future__ import annotations

import os
import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyfuse.api.settings import make_options
from tinyfuse.cli.terminal import progress
from tinyfuse.emit.identifiers import default_module_name
from tinyfuse.frontend.reader import load_file
from tinyfuse.options import DECLARED, Options, flags
from tinyfuse.targets import load_target
from tinyfuse.toolchain.devices import Device

if TYPE_CHECKING:
    from tinyfuse.quantization.convert import Quantized


class Request:
    """A model, a target and options, by the names of the fields of Options and Files.

    model   path of the file
    target  name of the target
    layer   layer that CMSIS-Toolbox requests; None without one
    device  microcontroller that was named; None if a target was
    given   options as their flags give them: plugins are paths, sizes are text for parse_size
    """

    def __init__(
        self, model: str, target: str, layer: Path | None = None, device: Device | None = None, **given: Any
    ) -> None:
        unknown = given.keys() - DECLARED.keys()
        if unknown:
            raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
        self.model, self.target, self.layer, self.device, self.given = model, target, layer, device, given

    def replace(self, **given: Any) -> Request:
        """Copy of the request with these options changed."""
        return Request(self.model, self.target, self.layer, self.device, **{**self.given, **given})

    @cached_property
    def options(self) -> Options:
        """Options of the plan. UsageError for an invalid name or size, or an unknown target."""
        return make_options(self.given, default_module_name(self.model), load_target(self.target))

    @cached_property
    def data(self) -> bytes:
        """Content of the model file, including its front end if there is one. CompileError if these do not fit."""
        if self.front_end is None:
            return self.network
        from tinyfuse.frontend.join import with_front_end  # loads a package that only front ends need

        return with_front_end(self.front_end, self.model, self.network)

    @cached_property
    def network(self) -> bytes:
        """The bytes of the model file, quantized where calibration data are given, without a front end."""
        return load_file(self.model) if self._quantized is None else self._quantized.data

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on how the model was quantized."""
        return () if self._quantized is None else self._quantized.warnings

    @cached_property
    def _quantized(self) -> Quantized | None:
        if not self.quantize_with:
            return None
        from tinyfuse.api.quantizing import quantize  # with packages that no other command waits for

        return quantize(self.model, self.quantize_with, target=self.target, on_progress=progress)

    @property
    def quantize_with(self) -> tuple[str, ...]:
        """The calibration data."""
        return tuple(self.given.get("quantize_with", ()))

    @property
    def front_end(self) -> str | None:
        """Path of the front end's model; None without one."""
        return self.given.get("front_end")

    @property
    def plugins(self) -> tuple[str, ...]:
        """Paths of the plugin files."""
        return tuple(self.given.get("plugins", ()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Paths of files with labels."""
        return tuple(self.given.get("labels", ()))

    @property
    def cmsis_nn_path(self) -> str | None:
        return self.given.get("cmsis_nn_path")

    @property
    def cmsis_nn_version(self) -> str | None:
        """Version that the user gave; None for the latest, or that of the tree that is found."""
        return self.given.get("cmsis_nn_version")


def command_line(command: str, request: Request, how: object | None = None) -> str:
    """Command line of a request; `how` has the command's own options (VerifyOptions), None for none."""
    words = ["tinyfuse", command, request.model, "--target", request.target]
    for name, flag in DECLARED.items():
        words += flag.words(request.given.get(name, flag.default))
    for name, flag in flags(type(how)).items() if how is not None else ():
        words += flag.words(getattr(how, name))
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Word as a shell reads it. One with characters that a terminal does not show is written as $'...', for Bash, Zsh
    and other shells."""
    if word.isprintable():
        return shlex.quote(word)
    shown = "".join(
        c if " " <= c <= "~" and c not in "\\'" else "".join(f"\\x{b:02x}" for b in os.fsencode(c)) for c in word
    )
    return f"$'{shown}'"
