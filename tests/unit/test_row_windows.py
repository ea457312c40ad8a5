"""Row windows: their Python and printed C agree with the definition."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from host_program import WARNINGS, compile_c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_compiler import COMPILER, SANITIZERS

from tinyfuse.ops.core.family import RowWindow
from tinyfuse.resources import resource_dir

#: rows of the output for which every window is asked
ROWS = 40


@pytest.mark.parametrize("spread", [1, 2, 3, 5])
def test_a_windows_rows_are_those_of_its_definition(spread: int) -> None:
    """Input row r is at r * spread; row y of the output reads kernel places from y * stride - pad_top."""
    for kernel, stride, pad_top, y in product(range(1, 6), range(4), range(-2, 4), range(12)):
        window, start = RowWindow(kernel, stride, pad_top, spread), y * stride - pad_top
        read = [r for r in range(9) if start <= r * spread < start + kernel]
        if read:
            assert (window.first(y), window.needed(y, 9)) == (read[0], read[-1] + 1), window


def test_the_least_window_over_given_rows() -> None:
    rows = [(0, 0), (0, 1), (0, 1), (1, 2), (1, 2)]  # a bilinear image of twice the height
    assert RowWindow.over(rows, 1, 2) == RowWindow(4, 1, 2, 2)
    mirrored = [(1, 1), (0, 0), (1, 1), (2, 2), (1, 1)]
    window = RowWindow.over(mirrored)
    assert all(window.first(y) <= r < window.needed(y, 3) for y, (r, _) in enumerate(mirrored))


WINDOWS = st.builds(RowWindow, st.integers(1, 9), st.integers(0, 6), st.integers(-6, 9), st.integers(1, 6))


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(WINDOWS, st.integers(1, 30)), min_size=150, max_size=150))
def test_the_c_that_a_window_prints_computes_what_it_says(tmp_path_factory, windows) -> None:
    found = _computed(tmp_path_factory.mktemp("windows"), windows)
    for (window, height), rows in zip(windows, found, strict=True):
        said = [[window.first(y), window.needed(y, height)] for y in range(ROWS)]
        assert rows.tolist() == said, f"{window}: {window.first_c('y')}, {window.needed_c('y', height)}"


def _computed(folder: Path, windows: list[tuple[RowWindow, int]]) -> np.ndarray:
    """Results of each window's printed C, int32 [windows, ROWS, 2]: the first row, the number of rows."""
    functions, calls = [], []
    for number, (window, height) in enumerate(windows):
        functions.append(
            f"static void w{number}(int32_t y)\n{{\n"
            f"    const int32_t rows[2] = {{{window.first_c('y')}, {window.needed_c('y', height)}}};\n"
            "    (void)y;\n    fwrite(rows, sizeof rows, 1, stdout);\n}\n"
        )
        calls.append(f"    for (y = 0; y < {ROWS}; ++y) {{\n        w{number}(y);\n    }}\n")
    source = folder / "windows.c"
    source.write_text(
        '#include <stdio.h>\n#include "tinyfuse_rows.h"\n' + "".join(functions)
        + f"int main(void)\n{{\n    int32_t y;\n{''.join(calls)}    return 0;\n}}\n"
    )  # fmt: skip
    program = folder / "windows"
    compile_c([COMPILER, "-std=c99", *WARNINGS, *SANITIZERS, f"-I{resource_dir('runtime_c')}", source, "-o", program])
    done = run([program], capture_output=True, timeout=60, check=True)
    return np.frombuffer(done.stdout, np.int32).reshape(len(windows), ROWS, 2)
