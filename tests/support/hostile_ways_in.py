"""Reads mutants of ONNX files and ExecuTorch programs in a process of its own, with the limits of hostile_worker.py:

    python hostile_ways_in.py FORMAT SEED COUNT SECONDS FOLDER [EVERY]

Half of COUNT mutants of a format (onnx, pte) have damaged bytes, half damaged structure (.pte: all numbers of the
flatbuffer). Each is read and checked; of EVERY (10) that can be compiled, one is, for some target. Some of the modules
are given to a C compiler. Finds are kept in FOLDER. The last line is JSON: {files, read, compiled, c_checked, finds,
seconds, seconds_longest, peak_mb}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hostile_worker import limited
from mutant_trials import Finds, try_mutants
from tflite_mutations import mutants

_PROGRAMS = Path(__file__).with_name("executorch_models")


def files(format: str, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yields (what a mutant was made from, mutant): the same for the same seed."""
    if format == "onnx":
        from onnx_mutations import byte_mutant, structural_mutant

        for number in range(count):
            mutate = structural_mutant if number % 2 else byte_mutant
            yield f"{mutate.__name__} {seed * 10_000_000 + number}", mutate(seed * 10_000_000 + number)
        return
    programs = {path.stem: path.read_bytes() for path in sorted(_PROGRAMS.glob("*.pte"))}
    made = [
        (name, mutants(data, seed * 1000 + number, "Program")) for number, (name, data) in enumerate(programs.items())
    ]
    for number in range(count):
        name, variants = made[number % len(made)]
        data = next(variants)
        if data[4:8] == b"ET12":  # tinyfuse takes others for no programs, by these bytes alone
            yield name, data


def main(format: str, seed: int, count: int, seconds: float, folder: Path, every: int = 10) -> None:
    finds = Finds(folder, seed, format)
    compiled = partial(limited, path=f"m.{format}", every=every)
    figures = try_mutants(files(format, seed, count), compiled, seconds, finds)
    print(json.dumps(figures | {"finds": finds.lines()}))


if __name__ == "__main__":
    format, seed, count, seconds, folder, *more = sys.argv[1:]
    main(format, int(seed), int(count), float(seconds), Path(folder), *map(int, more))
