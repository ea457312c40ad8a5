"""Whole ExecuTorch programs on CMSIS-NN itself, on this machine and on emulated cores: what our references compute.

Needs a tree of CMSIS-NN 7.0 in CMSIS_NN_PATH.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cmsis_harness import PRELUDE, array, run_program, tree_or_skip

from tinyfuse.compiler import check_graph
from tinyfuse.errors import UsageError
from tinyfuse.frontend.read_model import read_model
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.executorch_c import ProgramC, program_c
from tinyfuse.verify.executorch_native import LEAST_VERSION
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle

MODELS = Path(__file__).parents[1] / "support/executorch_models"
NAMES = sorted(path.stem for path in MODELS.glob("*.pte"))
needs_tree = pytest.mark.skipif(not os.environ.get("CMSIS_NN_PATH"), reason="CMSIS_NN_PATH is not set")


@needs_tree
@pytest.mark.parametrize("name", NAMES)
def test_references_are_cmsis_nn_on_this_machine(name: str) -> None:
    path = MODELS / f"{name}.pte"
    data = path.read_bytes()
    graph = check_graph(read_model(path, data))
    oracle = make_oracle("auto", data, graph)
    assert (oracle.name, oracle.version, oracle.warnings) == ("cmsis-nn", "7.0", ())
    inputs = input_set(graph, 100, seed=2)
    for wanted, found in zip(oracle.run_all(inputs), ReferenceOracle(graph).run_all(inputs), strict=True):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)


def program_of(written: ProgramC, inputs: list[list[np.ndarray]], outputs: list[list[np.ndarray]]) -> str:
    """C that runs a program on some inputs, and writes how many bytes of the outputs are wrong."""
    lines, body = [], []
    for run, (given, wanted) in enumerate(zip(inputs, outputs, strict=True)):
        for what, arrays in (("in", given), ("out", wanted)):
            lines += [array(CTYPE[str(a.dtype)], f"{what}_{run}_{i}", a) for i, a in enumerate(arrays)]
        body += [f"memcpy({to}, in_{run}_{i}, {size});" for i, (to, size) in enumerate(written.inputs)]
        body.append('port_write("case", 4);\n    write_number(run_program());')
        body += [
            f"write_number(wrong({at}, (const uint8_t *)out_{run}_{i}, {size}));"
            for i, (at, size) in enumerate(written.outputs)
        ]
        body.append('port_write("\\n", 1);')
    text = "\n    ".join(body)
    return f"""{written.text}
{PRELUDE}
{chr(10).join(lines)}
static int32_t wrong(const void *found, const uint8_t *wanted, int32_t bytes)
{{
    int32_t count = 0, i;

    for (i = 0; i < bytes; ++i) {{
        count += ((const uint8_t *)found)[i] != wanted[i];
    }}
    return count;
}}

int main(void)
{{
    {text}
    port_exit(0);
}}
"""


@needs_tree
@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", NAMES)
def test_references_are_cmsis_nn_on_cores(name: str, target: str, tmp_path: Path) -> None:
    tree, path = tree_or_skip("newest"), MODELS / f"{name}.pte"
    if tree.version < LEAST_VERSION:
        pytest.skip(f"needs CMSIS-NN {LEAST_VERSION}")
    data = path.read_bytes()
    graph, written = check_graph(read_model(path, data)), program_c(data)
    inputs = input_set(graph, 6, seed=3)
    outputs = ReferenceOracle(graph).run_all(inputs)
    text = program_of(written, inputs, outputs)
    found = run_program(text, set(written.functions), load_target(target), tree, tmp_path, ("-ffp-contract=off",))
    assert found == [[0] * (1 + len(graph.outputs))] * len(inputs)


def test_an_old_tree_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("bakenn", reason="needs the PyPI package bakenn")
    folder = Path(package.__file__).parent / "backend" / "cmsis_nn" / "vendor"
    monkeypatch.setenv("CMSIS_NN_PATH", str(folder))
    path = MODELS / "separable.pte"
    with pytest.raises(UsageError, match=r"lacks functions that ExecuTorch calls \(hint: give 7\.0"):
        make_oracle("auto", path.read_bytes(), read_model(path))
