"""The values that the public header and the API functions are printed from."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse import __version__
from tinyfuse.emit.functions import CTYPE
from tinyfuse.emit.weights import scalar
from tinyfuse.identifiers import comment, unique_identifiers
from tinyfuse.ir import Tensor
from tinyfuse.plan import ARENA_ALIGN, Plan

#: Stack of one inference, in bytes: what the API functions and a group's locals take, and what the
#: deepest kernel takes. `verify` measures the real figure and fails when it is larger.
API_STACK_BYTES = 256


@dataclass(frozen=True)
class Port:
    """A model input or output as the header shows it."""

    symbol: str
    macro: str
    label: str
    ctype: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    bytes: int
    offset: int
    scale: str | None
    zero_point: int | None


def header_context(plan: Plan) -> dict:
    inputs, outputs = ports(plan)
    return {
        "name": plan.options.name,
        "macro": plan.options.name.upper(),
        "version": __version__,
        "sha256": plan.graph.sha256,
        "target": plan.context.target,
        "cmsis_nn": plan.context.cmsis_nn if plan.uses_cmsis_nn else None,
        "options": plan.options,
        "inputs": inputs,
        "outputs": outputs,
        "arena_bytes": plan.arena_bytes,
        "arena_align": ARENA_ALIGN,
        "stack_bytes": stack_bound(plan),
    }


def stack_bound(plan: Plan) -> int:
    """Bytes of stack that an inference is allowed; checked by `verify`, not derived from the C."""
    deepest = max((s.kernel.stack_bytes for g in plan.groups for s in g.stages), default=0)
    return API_STACK_BYTES + deepest


def ports(plan: Plan) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs with C names that differ from each other, whatever the model calls them."""
    graph = plan.graph
    return (
        [_port(plan, t, s) for t, s in zip(graph.inputs, tensor_symbols(graph.inputs), strict=True)],
        [_port(plan, t, s) for t, s in zip(graph.outputs, tensor_symbols(graph.outputs), strict=True)],
    )


def tensor_symbols(tensors: tuple[Tensor, ...]) -> list[str]:
    # "bytes" and "count" are taken: NAME_input_bytes() is a function of the API
    return [
        f"{symbol}_" if symbol in ("bytes", "count") else symbol
        for symbol in unique_identifiers((t.name for t in tensors), "tensor")
    ]


def _port(plan: Plan, tensor: Tensor, symbol: str) -> Port:
    per_tensor = tensor.quant is not None and not tensor.quant.per_channel
    return Port(
        symbol=symbol,
        macro=symbol.upper(),
        label=comment(repr(tensor.name)),
        ctype=CTYPE[tensor.dtype],
        dtype=tensor.dtype,
        shape=tensor.shape,
        elements=tensor.elements,
        bytes=tensor.bytes,
        offset=plan.offset(tensor),
        scale=scalar(float(tensor.scale)) if per_tensor else None,
        zero_point=tensor.zero_point if per_tensor else None,
    )
