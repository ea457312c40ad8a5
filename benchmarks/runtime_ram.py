"""Prints tinyfuse's RAM beside that of the runtime of a .pte or .onnx file:

    python benchmarks/runtime_ram.py FILE ...

runtime   .pte: the buffers that the program plans (non_const_buffer_sizes); .onnx: what the arena of onnxruntime's CPU
          provider grows by in two inferences, the second of which may take a block that the first one planned; with all
          optimizations and one thread. The input isn't in it
arena     of the module for Cortex-M4 with --optimize ram, and with --feed-rows, where the image is passed row by row
borders   bytes of the largest input and the largest output, which the arena holds whole without --feed-rows

tests/support/make_executorch_models.py makes .pte files of the five networks of MLPerf Tiny and others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tinyfuse.compiler import check_graph, compile_graph
from tinyfuse.errors import TinyfuseError
from tinyfuse.frontend.file_formats import is_executorch
from tinyfuse.frontend.flatbuffer_table import root
from tinyfuse.frontend.read_model import read_model
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.targets import load_target

_ONNXRUNTIME = """
import sys
import numpy as np
import onnxruntime as ort

types = {"tensor(float)": "float32", "tensor(int8)": "int8", "tensor(uint8)": "uint8"}
memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
ort.set_default_logger_severity(0)
# each request becomes an allocation of its own
arena = ort.OrtArenaCfg({"arena_extend_strategy": 1, "initial_chunk_size_bytes": 256})
ort.create_and_register_allocator(memory, arena)
options = ort.SessionOptions()
options.log_severity_level = 0
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.add_session_config_entry("session.use_env_allocators", "1")
options.add_session_config_entry("session.qdqisint8allowed", "1")
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
inputs = {
    i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], types[i.type]) for i in session.get_inputs()
}
for _ in range(2):
    print("inference", file=sys.stderr, flush=True)
    session.run(None, inputs)
"""


def planned_bytes(data: bytes) -> int:
    """Bytes that an ExecuTorch program plans for its values."""
    return sum(root(data, "Program")["execution_plan"][0].numbers("non_const_buffer_sizes"))


def onnxruntime_bytes(path: str) -> int:
    """Bytes that onnxruntime's arena grows by in two inferences."""
    done = subprocess.run([sys.executable, "-c", _ONNXRUNTIME, path], capture_output=True, text=True, check=True)
    _, inferences = done.stderr.split("inference\n", 1)
    return sum(int(size) for size in re.findall(r"Extended allocation by (\d+) bytes", inferences))


def arena_bytes(graph: Graph, feed_rows: bool) -> int | None:
    """Bytes of the module's arena; None where its input can't be fed by rows."""
    try:
        options = Options("net", optimize="ram", feed_rows=feed_rows)
        return compile_graph(graph, load_target("cortex-m4"), options).arena_bytes
    except TinyfuseError:
        return None


def main(paths: list[str]) -> None:
    print("| file | runtime | arena | of runtime | fed by rows | of runtime | largest input, output |")
    print("|---|---|---|---|---|---|---|")
    for path in paths:
        data = Path(path).read_bytes()
        graph = check_graph(read_model(path, data))
        theirs = planned_bytes(data) if is_executorch(data) else onnxruntime_bytes(path)
        cells = [Path(path).name, f"{theirs:,}"]
        for found in (arena_bytes(graph, False), arena_bytes(graph, True)):
            cells += ["-", "-"] if found is None else [f"{found:,}", f"{found / theirs:.2f}" if theirs else "-"]
        borders = [max((tensor.bytes for tensor in ends), default=0) for ends in (graph.inputs, graph.outputs)]
        print(f"| {' | '.join([*cells, ', '.join(f'{size:,}' for size in borders)])} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
