"""Compiles hostile files in a process of its own, with the limits that a user is promised:

    python hostile_worker.py PASSES SECONDS SEED FOLDER [EXACT [STRUCTURE]]

It makes a few mutants of each of many small models, PASSES times or for SECONDS, and compiles each for some target, as
`gen` does. A file is a find if it gives neither a module nor one clear refusal, or takes over 10 s or a GiB; it is kept
in FOLDER under a name that begins with what happened. With EXACT, of so many models that compile one also runs, under
sanitizers, and is compared with the references. With STRUCTURE of 1, no bytes are damaged. The last line is JSON:
{files, read, compiled, c_checked, exact, finds, seconds, seconds_longest, peak_mb}.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), *(str(_ROOT / "tests" / name) for name in ("support", "hostile", "exact"))]

from cases import NAMED
from cases.common import add_operator, model_of, options_of
from control_flow_models import MODELS as CONTROL_FLOW
from executors import assert_exact, plan_of
from mutant_trials import Finds, try_mutants
from npu_models import npu_model
from random_graphs import Sketch
from signal_models import SIGNAL_MODELS
from stream_models import STREAM_MODELS
from test_hostile_files import assert_clear, assert_sound, sample
from test_ops_network import network
from tflite_builder import ModelBuilder
from tflite_mutations import mutants
from tflite_structure import structural_mutants

from tinyfuse.compiler import compile_graph
from tinyfuse.emit import emit
from tinyfuse.errors import CompileError, InternalFault, TinyfuseError
from tinyfuse.frontend.check import MOST_ROWS, check
from tinyfuse.frontend.read_model import read_model
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.options import FUSION, KERNELS, Options
from tinyfuse.report.report_json import report_json
from tinyfuse.report.text import report_text
from tinyfuse.targets import load_target

SECONDS_A_FILE = 10
#: rows of images that are planned in that time
ROWS_A_FILE = 1 << 15
BYTES_A_FILE = 1 << 30
_TARGETS = ("host", "cortex-m0plus", "cortex-m4", "cortex-m55")


class TooLong(Exception):
    """Compiling took more than SECONDS_A_FILE."""


def starting_points() -> dict[str, bytes]:
    """Small models that cover every operator family."""
    found = {"sample": sample(), "network": network(), "convolutions": _convolutions()}
    found |= {f"stream {name}": data for name, data in (STREAM_MODELS | SIGNAL_MODELS).items()}
    found |= {f"graphs {name}": make() for name, make in CONTROL_FLOW.items()}
    found["a program for an NPU"] = npu_model()
    for kind, cases in NAMED.items():
        for name, op in islice(cases.items(), 2):
            found[f"{kind} {name}"] = model_of(op) if op.activations else _of_constants(op)
    return found


def _of_constants(op: Op) -> bytes:
    """An operator that reads no input of the graph, next to one that does."""
    model = ModelBuilder()
    _, outputs = add_operator(model, op, options_of(op))
    x, y = (model.tensor(name, (2, 3), scale=0.1, zero_point=3) for name in ("x", "y"))
    model.op("RELU", [x], [y])
    return model.build([x], [y, *outputs])


def _convolutions() -> bytes:
    sketch = Sketch(5)
    x = sketch.value((1, 9, 7, 3))
    y = sketch.conv(x, 8, (3, 3), (2, 2), activation="RELU6")
    z = sketch.conv(sketch.depthwise(y, (3, 3), activation="RELU"), 8, (1, 1))
    y = sketch.fully_connected(sketch.add(y, z), 11, "RELU")
    return sketch.build([x], [y])


def files(seed: int, passes: int, structure: bool) -> Iterator[tuple[str, bytes]]:
    """Yields (name of the starting point, file): in each pass a few variants of each starting point, of damaged bytes
    and of damaged structure, or of the latter alone."""
    made = []
    for number, (name, data) in enumerate(sorted(starting_points().items())):
        made.append((f"{name}, structure", structural_mutants(data, seed * 1000 + number)))
        if not structure:
            made.append((f"{name}, bytes", mutants(data, seed * 1000 + number)))
    for _ in range(passes):
        for name, variants in made:
            for data in islice(variants, 3 if name.endswith("structure") else 1):
                yield name, data


def compiled(data: bytes, chance: random.Random, path: str = "m.tflite", every: int = 1) -> dict[str, str] | bool:
    """The module's files; False if the file was not read, True if it was read but refused, or its turn is not now.

    every: of how many files that can be compiled one is
    """
    read = False
    try:
        graph = read_model(path, data)
        read = True
        _more_time(graph)
        if not path.endswith(".tflite"):
            check(graph)  # refuses graphs without operators, which are not read of other files
        assert_sound(graph)
        if chance.randrange(every):
            check(graph)
            return read
        target = load_target(chance.choice(_TARGETS))
        options = Options("net", chance.choice(KERNELS), chance.choice(FUSION))
        plan = compile_graph(graph, target, options)
        report_text(plan, report_json(plan, plan.arena_bytes, None))
        return emit(plan)
    except CompileError as error:
        assert_clear(error)
    except InternalFault:
        raise
    except TinyfuseError:
        pass
    return read


def _more_time(graph: Graph) -> None:
    """Extra time for tall images: a plan is checked row by row, so it takes time in proportion."""
    rows = sum(t.shape[1] for op in graph.ops for t in op.outputs if len(t.shape) == 4)
    if ROWS_A_FILE < rows <= MOST_ROWS:
        signal.setitimer(signal.ITIMER_PROF, SECONDS_A_FILE * rows / ROWS_A_FILE)


def limited(data: bytes, chance: random.Random, path: str = "m.tflite", every: int = 1) -> dict[str, str] | bool:
    """Like `compiled`; raises TooLong or MemoryError beyond the limits. CPU time is limited, because the machine may be
    busy."""

    def too_long(*_) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_A_FILE)
    try:
        with limited_memory(), warnings.catch_warnings():
            warnings.simplefilter("error")  # a user would see them
            return compiled(data, chance, path, every)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def limited_memory() -> Iterator[None]:
    """Makes allocations fail that would grow the process by more than BYTES_A_FILE."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES_A_FILE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main(passes: int, seconds: float, seed: int, folder: Path, exact: int = 0, structure: int = 0) -> None:
    finds, runs = Finds(folder, seed, "tflite"), 0

    def run_some(name: str, number: int, modules: int, data: bytes) -> None:
        nonlocal runs
        if not exact or modules % exact:
            return
        plan = plan_of(data, "host")
        if any(not FAMILIES[op.kind].runs_here for op in plan.source.ops):
            return  # an NPU's program: nobody here can say what it computes
        runs += 1
        try:
            assert_exact(plan, runs=4)
        except Exception as error:
            finds.keep(f"inexact-{type(error).__name__}", name, number, data, traceback.format_exc())

    figures = try_mutants(files(seed, passes, bool(structure)), limited, seconds, finds, run_some)
    print(json.dumps(figures | {"exact": runs, "finds": finds.lines()}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), *map(int, sys.argv[5:]))
