"""From a plan to the text of every generated file. Pure: the same plan gives the same bytes."""

from __future__ import annotations

from tinyfuse.emit.forms import PLAIN, Delivery, check_cmsis_nn, handed_over
from tinyfuse.emit.functions import group_functions, reset_lines, subgraph_functions
from tinyfuse.emit.header import header_context
from tinyfuse.emit.render import render
from tinyfuse.emit.runtime import headers, runtime_files
from tinyfuse.emit.selftest import SelfTest
from tinyfuse.emit.weights import name_constants, weight_arrays
from tinyfuse.plan import Plan


def emit(plan: Plan, selftest: SelfTest | None = None, delivery: Delivery = PLAIN) -> dict[str, str]:
    """File name -> text of the module: header, code, weights, the runtime it needs, CMake, and with
    the self-test NAME_selftest.c. With output forms: the same C in their layout, and their files.

    UsageError where the forms don't go together, or have no way to the CMSIS-NN that the module calls.
    """
    if plan.uses_cmsis_nn:
        check_cmsis_nn(delivery)
    name = plan.options.name
    constants = name_constants(plan)
    own_headers, cmsis_nn_headers = headers(plan)
    context = {
        **header_context(plan),
        "subgraphs": subgraph_functions(plan, constants),
        "groups": group_functions(plan, constants),
        "reset_lines": reset_lines(plan, constants),
        "includes": {
            "tinyfuse": own_headers,
            "cmsis_nn": cmsis_nn_headers,
        },
        "weights": weight_arrays(plan, constants),
        "selftest": selftest,
        "delivery": delivery,
    }
    c_files = {
        out: render(template, context)
        for out, template in {
            f"{name}.h": "module.h.j2",
            f"{name}.c": "module.c.j2",
            f"{name}_weights.h": "weights.h.j2",
            f"{name}_weights.c": "weights.c.j2",
            **({f"{name}_selftest.c": "selftest.c.j2"} if selftest else {}),
        }.items()
    }
    return handed_over(context, c_files | runtime_files(plan), delivery)
