"""Generates the text of all files of a module from its plan. The same plan gives the same bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from tinyfuse.emit.blob import blob_bytes, code_digest, hex_rows, make_blob
from tinyfuse.emit.forms import PLAIN, Delivery, check_cmsis_nn, package_files
from tinyfuse.emit.forms.spdx import with_licence
from tinyfuse.emit.functions import group_functions, reset_lines, subgraph_functions
from tinyfuse.emit.header import header_context
from tinyfuse.emit.memory import linker_fragments
from tinyfuse.emit.render import render
from tinyfuse.emit.runtime import headers, runtime_files
from tinyfuse.emit.selftest import SelfTest
from tinyfuse.emit.weights import name_constants, weight_arrays
from tinyfuse.plan import Plan


def emit(plan: Plan, selftest: SelfTest | None = None, delivery: Delivery = PLAIN) -> dict[str, str]:
    """Texts of the module's files, by file name: header, code, weights, the runtime headers that it needs, and CMake.

    A self-test adds NAME_selftest.c, and `delivery.board` adds NAME_board.c. Output forms arrange the same C in their
    own folders, and add files. The weights' file of --weights-blob comes from `emit_weights`. UsageError if the forms
    contradict each other, or cannot provide the CMSIS-NN that the module calls.
    """
    if plan.uses_cmsis_nn:
        check_cmsis_nn(delivery)
    context = _context(plan) | {"selftest": selftest, "delivery": delivery}
    if plan.options.weights_blob:
        context["blob"] = make_blob(context["weights"], _code(plan, context))
    if delivery.board:
        context["board_digests"] = hex_rows(bytes.fromhex(plan.graph.sha256) + _code(plan, context))
    fragments = linker_fragments(plan, context)
    if delivery.forms:
        fragments = {file: with_licence(file, text, delivery.about.license) for file, text in fragments.items()}
    return package_files(context, _c_files(context) | runtime_files(plan), delivery) | fragments


def emit_weights(plan: Plan) -> dict[str, bytes]:
    """Content of NAME_weights.bin by file name; empty without --weights-blob."""
    if not plan.options.weights_blob:
        return {}
    context = _context(plan)
    arrays, code = context["weights"], _code(plan, context)
    data = blob_bytes(arrays, make_blob(arrays, code), code, plan.graph.sha256)
    return {f"{plan.options.name}_weights.bin": data}


def module_digest(plan: Plan) -> bytes:
    """SHA-256 of the plan's code (32 bytes), independent of output forms and self-test."""
    return _code(plan, _context(plan))


def _code(plan: Plan, context: Mapping[str, Any]) -> bytes:
    """SHA-256 of the plan's code without self-test, board code and weights' blob."""
    alone = {**context, "selftest": None, "delivery": PLAIN, "blob": make_blob(context["weights"])}
    return code_digest((_c_files(alone) | runtime_files(plan)).values())


_UNWRITTEN = re.compile(r"\b(INFINITY|NAN)\b")


def _context(plan: Plan) -> dict[str, Any]:
    """Variables of the templates for the module's C."""
    constants = name_constants(plan)
    own_headers, cmsis_nn_headers = headers(plan)
    functions = {
        "subgraphs": subgraph_functions(plan, constants), "groups": group_functions(plan, constants)
    }  # fmt: skip
    arrays = weight_arrays(plan, constants)
    return {
        **header_context(plan),
        **functions,
        "check_key": _key(plan, functions),
        # math.h defines the names of numbers that are not finite (weights.scalar)
        "needs_math": bool(_UNWRITTEN.search(repr(functions))) or not all(array.is_finite for array in arrays),
        "reset_lines": reset_lines(plan, constants),
        "includes": {
            "tinyfuse": own_headers,
            "cmsis_nn": cmsis_nn_headers,
        },
        "weights": arrays,
        "blob": None,
    }


def _key(plan: Plan, functions: Mapping[str, Any]) -> int:
    """32-bit multiplier for check words, from the model and the code of its groups. It is odd, so that multiplication
    maps different numbers to different numbers."""
    digest = hashlib.sha256(f"{plan.graph.sha256} {functions}".encode()).digest()
    return int.from_bytes(digest[:4], "little") | 1


def _c_files(context: Mapping[str, Any]) -> dict[str, str]:
    """Texts of the module's own C files, by file name."""
    name, blob, selftest = context["name"], context["blob"], context["selftest"]
    templates = {
        f"{name}.h": "module.h.j2",
        f"{name}.c": "module.c.j2",
        f"{name}_weights.h": "blob.h.j2" if blob else "weights.h.j2",
        **({} if blob else {f"{name}_weights.c": "weights.c.j2"}),
        **({f"{name}_selftest.c": "selftest.c.j2"} if selftest else {}),
        **({f"{name}_board.c": "board.c.j2"} if context["delivery"].board else {}),
    }
    return {file: render(template, context) for file, template in templates.items()}
