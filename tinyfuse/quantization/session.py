"""ai-edge-quantizer in a process of its own (quantizer_worker.py), for one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tinyfuse.errors import EmulationFailed
from tinyfuse.ir import Array
from tinyfuse.quantization.recipes import Recipe
from tinyfuse.toolchain.extras import require_package

_WORKER = Path(__file__).with_name("quantizer_worker.py")
#: ways to find ranges: from the smallest and largest values of all samples, or as a moving average of each sample's
#: range
RANGES = ("full", "average")


class Refused(Exception):
    """Raised if the quantizer cannot make a model. The message is the quantizer's."""


class Quantizer:
    """A float model that is calibrated once, and quantized with any number of recipes. A context manager, which ends
    the process and removes its files.

    model    bytes of a float file with a signature (float_file.py)
    recipe   the one to calibrate for
    ranges   one of RANGES

    ToolMissing where ai-edge-quantizer isn't installed.
    """

    def __init__(self, model: bytes, recipe: Recipe, ranges: str) -> None:
        require_package("ai_edge_quantizer")
        self._folder = tempfile.TemporaryDirectory(prefix="tinyfuse-")
        self._log = open(self._file("log.txt"), "wb")  # noqa: SIM115
        self._file("model.tflite").write_bytes(model)
        self._write("recipe.json", recipe)
        files = [str(self._file(name)) for name in ("model.tflite", "recipe.json")]
        self._process = subprocess.Popen(
            # -P: modules beside the worker must not hide others' of the same name
            [sys.executable, "-P", str(_WORKER), *files, ranges],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, encoding="utf-8", start_new_session=True,
            # results must not depend on the order of sets
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip

    def __enter__(self) -> Quantizer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def calibrate(self, samples: Mapping[str, Array]) -> None:
        """Take samples into account: by input name an array [n, *shape]. Raises Refused if the interpreter
        cannot run the model."""
        file = self._file("samples.npz")
        arrays = {f"arr_{i}": array for i, array in enumerate(samples.values())}
        np.savez(file, allow_pickle=False, names=np.array(json.dumps(list(samples))), **arrays)
        self._ask({"calibrate": str(file)})

    def quantize(self, recipe: Recipe) -> bytes:
        """Return the file that a recipe makes. Raises Refused if the quantizer cannot make one."""
        self._write("wanted.json", recipe)
        made = self._file("made.tflite")
        self._ask({"quantize": str(made), "recipe": str(self._file("wanted.json"))})
        return made.read_bytes()

    def close(self) -> None:
        """Ends the quantizer's process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def _file(self, name: str) -> Path:
        return Path(self._folder.name, name)

    def _write(self, name: str, data: Any) -> None:
        self._file(name).write_text(json.dumps(data), encoding="utf-8")

    def _ask(self, request: Mapping[str, str]) -> None:
        """Send a request and wait for its answer. EmulationFailed where the process ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            log = self._file("log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            code = self._process.wait()
            end = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise EmulationFailed(": ".join([f"ai-edge-quantizer {end}", *log[-1:]]))
        error = json.loads(line)["error"]
        if error is not None:
            raise Refused(error)
