"""Reads mutants of ONNX files and ExecuTorch programs in a process of its own, with the limits of hostile_worker.py:

    python hostile_ways_in.py FORMAT SEED COUNT SECONDS FOLDER [EVERY]

Half of COUNT mutants of a format (onnx, pte) have damaged bytes, half damaged structure (.pte: all numbers of the
flatbuffer). Each is read and checked; of those that can be compiled, each EVERY-th (10) is, for some target, and some of
these modules are given to a C compiler. Finds are kept in FOLDER. The last line is JSON: {files, read, compiled,
c_checked, finds, seconds, seconds_longest}.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from hostile_worker import C_CHECKED, c_problem, limited
from tflite_mutations import mutants

_PROGRAMS = Path(__file__).with_name("executorch_models")


def files(format: str, seed: int, count: int) -> Iterator[bytes]:
    """Mutants: the same for the same seed."""
    if format == "onnx":
        from onnx_mutations import byte_mutant, structural_mutant

        for number in range(count):
            yield (structural_mutant if number % 2 else byte_mutant)(seed * 10_000_000 + number)
        return
    programs = [path.read_bytes() for path in sorted(_PROGRAMS.glob("*.pte"))]
    made = [mutants(data, seed * 1000 + number, "Program") for number, data in enumerate(programs)]
    for number in range(count):
        yield next(made[number % len(made)])


def main(format: str, seed: int, count: int, seconds: float, folder: Path, every: int = 10) -> None:
    path = f"m.{format}"
    figures: dict[str, float] = {"files": 0, "read": 0, "compiled": 0, "c_checked": 0}
    finds: dict[str, str] = {}
    begin, longest = time.monotonic(), 0.0

    def keep(what: str, data: bytes, details: str) -> None:
        if what not in finds:
            found = folder / f"{what}-{seed}-{figures['files']}.{format}"
            found.write_bytes(data)
            found.with_suffix(".txt").write_text(details)
            finds[what] = f"{found}: {details.strip().splitlines()[-1]}"
            print(finds[what], flush=True)

    for data in files(format, seed, count):
        if time.monotonic() - begin > seconds:
            break
        if format == "pte" and data[4:8] != b"ET12":
            continue  # told by its first bytes
        figures["files"] += 1
        before = time.process_time()
        try:
            result = limited(data, random.Random(figures["files"]), path, every)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            keep(f"{type(error).__name__}-{Path(frame.filename).stem}-{frame.lineno}", data, traceback.format_exc())
            continue
        longest = max(longest, time.process_time() - before)
        figures["read"] += bool(result)
        if isinstance(result, dict):
            figures["compiled"] += 1
            if figures["compiled"] % C_CHECKED == 0:
                figures["c_checked"] += 1
                problem = c_problem(result)
                if problem:
                    keep("C", data, problem)
        if figures["files"] % 1000 == 0:
            print(figures, round(time.monotonic() - begin), flush=True)
    figures |= {
        "seconds": round(time.monotonic() - begin),
        "seconds_longest": round(longest, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(figures | {"finds": list(finds.values())}))


if __name__ == "__main__":
    format, seed, count, seconds, folder, *more = sys.argv[1:]
    main(format, int(seed), int(count), float(seconds), Path(folder), *map(int, more))
