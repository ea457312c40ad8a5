"""What a user asked for, and the command line that asks for it again."""

from __future__ import annotations

import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyfuse.api.settings import settled
from tinyfuse.cli.terminal import progress
from tinyfuse.emit.identifiers import default_module_name
from tinyfuse.frontend.reader import load_file
from tinyfuse.options import DECLARED, Options, flags
from tinyfuse.toolchain.devices import Device

if TYPE_CHECKING:
    from tinyfuse.quantization.convert import Quantized


class Request:
    """A model, a target and options, by the names of the fields of Options and Files.

    model: the file's path; target: its name; given: the options that were given, as their flags give them: plugins
    are paths, sizes as parse_size reads them; those of Files are among them. layer: where CMSIS-Toolbox asked for a
    layer; device: the microcontroller that was named, None where a target was.
    """

    def __init__(
        self, model: str, target: str, layer: Path | None = None, device: Device | None = None, **given: Any
    ) -> None:
        unknown = given.keys() - DECLARED.keys()
        if unknown:
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
        self.model, self.target, self.layer, self.device, self.given = model, target, layer, device, given

    def but(self, **given: Any) -> Request:
        """The same with these options."""
        return Request(self.model, self.target, self.layer, self.device, **{**self.given, **given})

    @cached_property
    def options(self) -> Options:
        """What the plan is made with. UsageError for a name or a size that can't be one."""
        return settled(self.given, default_module_name(self.model))

    @cached_property
    def data(self) -> bytes:
        """The model file's bytes, behind its front end where there is one. CompileError where that can't be."""
        if self.front_end is None:
            return self.network
        from tinyfuse.frontend.join import with_front_end  # with a package that no other command waits for

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
        """The path of the model in front."""
        return self.given.get("front_end")

    @property
    def plugins(self) -> tuple[str, ...]:
        """Paths of the plugin files."""
        return tuple(self.given.get("plugins", ()))

    @property
    def labels(self) -> tuple[str, ...]:
        """The paths of files with labels."""
        return tuple(self.given.get("labels", ()))

    @property
    def cmsis_nn_path(self) -> str | None:
        return self.given.get("cmsis_nn_path")

    @property
    def cmsis_nn_version(self) -> str | None:
        """None: the latest, or that of the tree that is found."""
        return self.given.get("cmsis_nn_version")


def command_line(command: str, request: Request, how: object | None = None) -> str:
    """What is typed for a request; `how` has the command's own options (VerifyOptions), None for none."""
    words = ["tinyfuse", command, request.model, "--target", request.target]
    for name, flag in DECLARED.items():
        words += flag.words(request.given.get(name, flag.default))
    for name, flag in flags(type(how)).items() if how is not None else ():
        words += flag.words(getattr(how, name))
    return shlex.join(words)
