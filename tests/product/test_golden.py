"""Generated files kept in the repository, so that a review shows how they change.

tests/golden/NAME/  the C of a small model for one core, and its graph before and after each rewrite that did something.

    python -m pytest tests/product/test_golden.py --update-golden

writes the files anew; their difference belongs into the commit that made it.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nchw_networks import flattened
from random_graphs import Sketch
from sliding_models import gesture
from stream_models import svdf

from tinyfuse.compiler import check_graph, compile_graph
from tinyfuse.emit import emit
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir.text import graph_text
from tinyfuse.options import Options
from tinyfuse.rewrite import OBSERVERS, rewrite
from tinyfuse.targets import load_target

GOLDEN = next(tests for tests in Path(__file__).resolve().parents if tests.name == "tests") / "golden"

#: of the module's files those that are code
_OWN = (".c", ".h")


def separable() -> bytes:
    """A padded convolution, a batch normalization, a depthwise-separable block, a mean and a dense layer, as in most
    small networks. Some channels are dead."""
    s = Sketch(4, dead=0.3)
    image = s.value((1, 8, 6, 2))
    x = s.conv(s.pad(image, 1, 1, 1, 1), 4, (3, 3), padding="VALID")
    x = s.relu(s.scale_channels(x, "MUL"))
    x = s.conv(s.relu(s.conv(s.depthwise(x, (3, 3), (2, 2)), 6, (1, 1)), "RELU6"), 5, (1, 1))
    return s.build([image], [s.softmax(s.fully_connected(s.mean(x), 3))])


def branches() -> bytes:
    """Two branches whose rows are concatenated, and a residual."""
    s = Sketch(12)
    image = s.value((1, 6, 6, 3))
    left = s.conv(image, 4, (1, 1), activation="RELU")
    right = s.requantize_to(s.pool(s.conv(image, 4, (3, 3)), "MAX_POOL_2D", (3, 3), (1, 1), "SAME"), left)
    x = s.concatenate([left, right], 1)
    return s.build([image], [s.add(x, s.conv(x, 4, (3, 3), activation="RELU"))])


def channels_first() -> bytes:
    """Layers between TRANSPOSEs; the last layer reads a flattened image."""
    return flattened(first=True)


def memory() -> bytes:
    """A layer with state."""
    return svdf("int8", (1, 6, 3, 2, 4), 0.001)


#: folder -> (model, target, options)
CASES: dict[str, tuple[Callable[[], bytes], str, dict[str, object]]] = {
    "separable_cortex-m4": (separable, "cortex-m4", {}),
    "branches_cortex-m55": (branches, "cortex-m55", {"optimize": "ram"}),
    "memory_host": (memory, "host", {}),
    "channels_first_host": (channels_first, "host", {"optimize": "speed"}),
    "gesture_cortex-m4": (gesture, "cortex-m4", {"optimize": "ram"}),
}


def generated(model: Callable[[], bytes], target: str, options: dict) -> dict[str, str]:
    """Maps file names to text: the module's own C, and the graph after each pass."""
    graph = read_tflite(f"{model.__name__}.tflite", model())
    named = Options(model.__name__, kernels="tinyfuse", **options)
    texts = emit(compile_graph(graph, load_target(target), named))
    files = {name: text for name, text in texts.items() if name.endswith(_OWN) and not name.startswith("tinyfuse_")}
    return files | {"passes.txt": "\n".join(passes(model, named))}


def passes(model: Callable[[], bytes], options: Options) -> Iterator[str]:
    """The graph as read, then the changes of each pass as diff lines."""
    graph = check_graph(read_tflite(f"{model.__name__}.tflite", model()))
    steps = [("read", graph)]
    OBSERVERS.append(lambda one_pass, before, after: steps.append((one_pass.__name__, after)))
    try:
        last = rewrite(graph, options.fusion, options.kernels, options.optimize)
    finally:
        OBSERVERS.pop()
    steps.append(("the last drop_dead", last))
    yield "--- read\n\n" + graph_text(graph)
    for (_, before), (name, after) in itertools.pairwise(steps):
        lines = difflib.unified_diff(graph_text(before).splitlines(), graph_text(after).splitlines(), lineterm="", n=1)
        changed = [line for line in lines if not line.startswith(("---", "+++"))]
        if changed:
            yield f"--- {name}\n\n" + "\n".join(changed) + "\n"
    yield "--- at the end\n\n" + graph_text(last)


@pytest.mark.parametrize("name", CASES)
def test_what_is_generated_is_what_is_written_down(name: str, pytestconfig) -> None:
    files, folder = generated(*CASES[name]), GOLDEN / name
    if pytestconfig.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, text in files.items():
            (folder / file).write_text(text)
    kept = {path.name: path.read_text() for path in folder.iterdir()} if folder.is_dir() else {}
    different = [
        line
        for file in sorted(files.keys() | kept.keys())
        for line in difflib.unified_diff(
            kept.get(file, "").splitlines(),
            files.get(file, "").splitlines(),
            f"golden {file}",
            f"new {file}",
            "",
            "",
            2,
            "",
        )
    ]
    assert not different, "\n".join(["with --update-golden the files become what is new:", *different[:200]])


def test_no_folder_is_left_of_a_case_that_is_gone() -> None:
    assert {folder.name for folder in GOLDEN.iterdir()} == set(CASES)


def test_the_models_meet_most_of_what_there_is() -> None:
    """A change of a pass or of a way to run shows in some of them."""
    texts = {name: "".join(generated(*case).values()) for name, case in CASES.items()}
    together = "".join(texts.values())
    for told in ("fold_pad", "fold_activation", "prune_channels", "split_full_height", "views"):
        assert f"--- {told}\n" in together, told
    for told in ("ring", "_reset(", "_run("):
        assert told in together, told
