"""Compiles mutants in turn, counts what became of them, and keeps those that show a fault."""

from __future__ import annotations

import random
import resource
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

#: of so many compiled modules one is given to a C compiler
C_CHECKED = 25


class Finds:
    """Files that show a fault, the first one of each fault, kept in a folder with the details beside them.

    ending  of the files' names, "onnx"
    """

    def __init__(self, folder: Path, seed: int, ending: str):
        self._folder, self._seed, self._ending = folder, seed, ending
        self._lines: dict[str, str] = {}

    def lines(self) -> list[str]:
        """Path, name and last line of the details of each find."""
        return list(self._lines.values())

    def keep(self, fault: str, name: str, number: int, data: bytes, details: str) -> None:
        if fault not in self._lines:
            path = self._folder / f"{fault}-{self._seed}-{number}.{self._ending}"
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(f"{name}\n{details}")
            self._lines[fault] = f"{path}: of {name}: {details.strip().splitlines()[-1]}"
            print(self._lines[fault], flush=True)

    def keep_error(self, error: BaseException, name: str, number: int, data: bytes) -> None:
        """Keeps a file under the type of an error that is being handled, and the place that raised it."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).stem}-{frame.lineno}"
        self.keep(f"{type(error).__name__}-{place}", name, number, data, traceback.format_exc())


def try_mutants(
    mutants: Iterable[tuple[str, bytes]],
    compiled: Callable[[bytes, random.Random], dict[str, str] | bool],
    seconds: float,
    finds: Finds,
    check: Callable[[str, int, int, bytes], None] = lambda *_: None,
) -> dict[str, float]:
    """Compiles mutants for so many seconds, and returns the figures of what became of them.

    mutants   (name of what it was made from, data) of each
    compiled  returns the module's files, False if the mutant was not read, or True if it was but there is no module
    check     is called for each module with the mutant's name, its number, the number of modules so far, and its data
    """
    figures: dict[str, float] = {"files": 0, "read": 0, "compiled": 0, "c_checked": 0}
    begin, longest = time.monotonic(), 0.0
    for number, (name, data) in enumerate(mutants, 1):
        if time.monotonic() - begin > seconds:
            break
        figures["files"] = number
        before = time.process_time()
        try:
            result = compiled(data, random.Random(number))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            finds.keep_error(error, name, number, data)
            continue
        longest = max(longest, time.process_time() - before)
        figures["read"] += bool(result)
        if isinstance(result, dict):
            figures["compiled"] += 1
            if figures["compiled"] % C_CHECKED == 0:
                figures["c_checked"] += 1
                problem = c_problem(result)
                if problem:
                    finds.keep("C", name, number, data, problem)
            check(name, number, int(figures["compiled"]), data)
        if number % 1000 == 0:
            print(figures, round(time.monotonic() - begin), flush=True)
    return figures | {
        "seconds": round(time.monotonic() - begin),
        "seconds_longest": round(longest, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def c_problem(module: dict[str, str]) -> str | None:
    """Messages of a C compiler for a module that calls no CMSIS-NN; None if there are none."""
    if any("arm_nnfunctions.h" in text for text in module.values()):
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in module.items():
            Path(folder, name).write_text(text)
        flags = [
            "-std=c99",
            "-fsyntax-only",
            "-DTINYFUSE_ANY_CPU",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Wpedantic",
            "-Werror",
        ]
        done = subprocess.run(["gcc", *flags, "net.c", "net_weights.c"], cwd=folder, capture_output=True, text=True)
    return done.stderr[:2000] if done.returncode else None
