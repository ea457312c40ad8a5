"""Combines two model files: a front end, and a network that reads its output.

Interpreters run the combined file too, so that a module of both is verified against one run of both. The file embeds
both files unchanged, after new tables for everything that is renumbered: the network's tensors and operators, and all
lists. Shapes, quantizations, options and data keep their places, even if tinyfuse doesn't read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.file_around import FileAround
from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flatbuffer_table import root
from tinyfuse.frontend.inside_file import inside_file
from tinyfuse.frontend.reader import load_file, read_tflite
from tinyfuse.frontend.tensors import HINT_DAMAGED
from tinyfuse.ir import Graph, Quant, Tensor
from tinyfuse.ops import FAMILIES


def with_front_end(front_path: str, network_path: str, network: bytes | None = None) -> bytes:
    """Return the bytes of a model that runs the file `front_path` in front of `network_path` (of `network`, when
    given).

    The front end's output replaces the network input of the same type and shape; the outputs are the network's. Raises
    CompileError if either file can't be read or the two don't fit.
    """
    front = load_file(front_path)
    network = load_file(network_path) if network is None else network
    before, after = read_tflite(front_path, front), read_tflite(network_path, network)
    fed = _fed(before, after, network)
    try:
        return _Join(inside_file(front), inside_file(network)).file(before.outputs[0].index, fed.index)
    except Damaged as damaged:
        raise CompileError(network_path, Problem(f"damaged file: {damaged}", hint=HINT_DAMAGED)) from None


# --- what fits ---------------------------------------------------------------------------------


def _fed(before: Graph, after: Graph, network: bytes) -> Tensor:
    """Return the network's input that the front end feeds."""

    def refuse(message: str, hint: str, tensor: Tensor | None = None) -> CompileError:
        about = None if tensor is None else str(tensor)
        return CompileError(before.path, Problem(f"as a front end: {message}", tensor=about, hint=hint))

    if len(before.outputs) != 1:
        raise refuse(f"it has {len(before.outputs)} outputs", "give a model whose one output is the network's input")
    (output,) = before.outputs
    if output in before.inputs:
        raise refuse("its output is its input", "leave --front-end out")
    alike = [t for t in after.inputs if (t.shape, t.dtype) == (output.shape, output.dtype)]
    if not alike:
        inputs = "; ".join(map(str, after.inputs))
        raise refuse(f"its output is not an input of {after.path}: {inputs}", _hint(after.inputs[0]), output)
    fed = alike[0]
    if output.quant is not None and _numbers(output.quant) != _numbers(fed.quant):
        message = f"its output is quantized otherwise than {fed} of {after.path} ({_told(output)}, {_told(fed)})"
        raise refuse(message, _hint(fed), output)
    if len(root(network)["subgraphs"]) > 1:
        message = f"{after.path} has several subgraphs, which no front end can stand before"
        raise refuse(message, "convert the network without control flow, and its variables without initial values")
    shared = _variables(before) & _variables(after)
    if shared:
        names = ", ".join(map(repr, sorted(shared)))
        raise refuse(f"{after.path} has variables of the same name: {names}", "name the variables otherwise")
    return fed


def _numbers(quant: Quant | None) -> Any:
    return None if quant is None else (quant.scale, quant.zero_point)


def _told(tensor: Tensor) -> str:
    if tensor.quant is None or tensor.quant.per_channel:
        return "no scale for all of it"
    return f"scale {tensor.scale:.9g}, zero point {tensor.zero_point}"


def _hint(fed: Tensor) -> str:
    shape = ",".join(map(str, fed.shape))
    if fed.quant is None or fed.quant.per_channel:
        return f"the network wants {fed.dtype}[{shape}]"
    return (
        f"tinyfuse front-end --shape {shape} --scale {fed.scale:.9g} --zero-point {fed.zero_point} makes one that "
        "fits, with --frames and --channels as the network was trained"
    )


def _variables(graph: Graph) -> set[str]:
    """Return the names of a graph's resource variables."""
    return {op.input.name for op in graph.ops if FAMILIES[op.kind].resource} if _known(graph) else set()


def _known(graph: Graph) -> bool:
    """Tell whether every operator is supported; if not, the check of the combined model reports it."""
    return all(op.kind in FAMILIES for op in graph.ops)


# --- the combined file -------------------------------------------------------------------------


class _Join(FileAround):
    """Builds the combined file of front end and network."""

    def __init__(self, front: bytes, network: bytes) -> None:
        super().__init__(network, front)
        self.front, self.network = root(front), root(network)
        self.front_graph, self.network_graph = self.front["subgraphs"][0], self.network["subgraphs"][0]

    def file(self, source: int, fed: int) -> bytes:
        """Return the file, in which the front end's tensor `source` replaces the network's tensor `fed`."""
        front, network = self.front, self.network
        count, codes, buffers = (
            len(self.front_graph["tensors"]), len(front["operator_codes"]), len(front["buffers"])
        )  # fmt: skip

        def moved(numbers: np.ndarray) -> list[int]:
            return [source if n == fed else n + count if n >= 0 else n for n in numbers.tolist()]

        # the buffer of an unused tensor was never checked, so its number may be anything
        known = range(1, len(network["buffers"]))
        tensors = [
            self.copied(t, buffer=t["buffer"] + buffers if t["buffer"] in known else 0)
            for t in self.network_graph["tensors"]
        ]
        operators = [
            self.copied(
                op, opcode_index=op["opcode_index"] + codes, inputs=self.vector(moved(op["inputs"])),
                outputs=self.vector(moved(op["outputs"])),
            )
            for op in self.network_graph["operators"]
        ]  # fmt: skip
        inputs = self.front_graph["inputs"].tolist()
        inputs += [n for n in moved(self.network_graph["inputs"]) if n != source]
        graph = self.table(
            "SubGraph",
            tensors=self.tables(self.kept(self.front_graph["tensors"]) + tensors),
            inputs=self.vector(inputs),
            outputs=self.vector(moved(self.network_graph["outputs"])),
            operators=self.tables(self.kept(self.front_graph["operators"]) + operators),
        )

        def both(name: str) -> int:
            return self.tables(self.kept(front[name]) + self.kept(network[name]))

        model = self.table(
            "Model",
            version=3,
            operator_codes=both("operator_codes"),
            subgraphs=self.tables([graph, *self.kept(front["subgraphs"][1:])]),
            buffers=both("buffers"),
        )
        return self.finished(model)
