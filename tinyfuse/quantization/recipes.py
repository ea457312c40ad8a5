"""Recipes: ai-edge-quantizer's lists of rules for the quantization of each operator.

The last rule that matches an operator holds. A rule that the quantizer lacks
for an operator's kind doesn't match it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from tinyfuse.errors import UsageError
from tinyfuse.ir import Graph

#: name of a scheme -> bits of activations and of weights
SCHEMES = {"int8": (8, 8), "int16x8": (16, 8), "int8x4": (8, 4)}
#: scheme of a layer that stays float32, which only single layers may have
FLOAT = "float"
LAYER_SCHEMES = (*SCHEMES, FLOAT)

Rule = Mapping[str, Any]
Recipe = list[Rule]


def recipe(
    scheme: str, float_io: bool = False, layers: Sequence[tuple[str, str]] = (), left: str | None = None
) -> Recipe:
    """Return the recipe of a scheme of SCHEMES.

    float_io  leave the model's inputs and outputs float32
    layers    (name of an output tensor, one of LAYER_SCHEMES) of layers with another scheme
    left      kind of operators that are not quantized; None for none
    """
    rules = _rules(".*", scheme)
    for name, own in layers:
        # an operator is known by the names of its outputs, each with a semicolon behind it
        rules += _rules(f"(^|;){re.escape(name)};", own)
    if float_io:
        rules += [_left(".*", "INPUT"), _left(".*", "OUTPUT")]
    return rules if left is None else [*rules, _left(".*", left)]


def _rules(scope: str, scheme: str) -> list[Rule]:
    if scheme == FLOAT:
        return [_left(scope, "*")]
    bits, weight_bits = SCHEMES[scheme]
    rules = [_static(scope, bits)]
    if weight_bits == 4:  # the rule above applies to layers of other kinds
        scope = f"{scope}(?#)"
        # kernels accept fully connected layers with int4 weights only if these have one scale
        rules += [_static(scope, bits, 4, "CONV_2D"), _static(scope, bits, 4, "FULLY_CONNECTED", "TENSORWISE")]
    return rules


def _static(scope: str, bits: int, weight_bits: int = 8, kind: str = "*", weight_scales: str = "CHANNELWISE") -> Rule:
    """Return the rule for operators on integers. Kernels only take int16 data, and weights, whose zero points are 0."""
    activations = {"num_bits": bits, "symmetric": bits == 16, "granularity": "TENSORWISE", "dtype": "INT"}
    weights = {"num_bits": weight_bits, "symmetric": True, "granularity": weight_scales, "dtype": "INT"}
    return {
        "regex": scope,
        "operation": kind,
        "algorithm_key": "min_max_uniform_quantize",
        "op_config": {
            "activation_tensor_config": activations,
            "weight_tensor_config": weights,
            "compute_precision": "INTEGER",
            "explicit_dequantize": False,
        },
    }


def _left(scope: str, kind: str) -> Rule:
    return {"regex": scope, "operation": kind, "algorithm_key": "no_quantize", "op_config": {}}


def layers_of(graph: Graph, given: Sequence[str]) -> list[tuple[str, str]]:
    """Return (output tensor's name, scheme) of NAME=SCHEME texts, whose names may hold * and ?.

    Raises UsageError for an unknown scheme, and for a name that matches no input and no operator's output.
    """
    names = [tensor.name for tensor in (*graph.inputs, *(t for op in graph.ops for t in op.outputs))]
    found = list[tuple[str, str]]()
    for text in given:
        name, _, scheme = text.rpartition("=")
        if not name or scheme not in LAYER_SCHEMES:
            raise UsageError(f"--layer {text}: write NAME=SCHEME; SCHEME is {', '.join(LAYER_SCHEMES)}")
        matching = [each for each in names if each == name or fnmatchcase(each, name)]
        if not matching:
            known = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            raise UsageError(f"--layer {text}: no input and no operator's output has this name; the names are {known}")
        found += [(each, scheme) for each in matching]
    return found
