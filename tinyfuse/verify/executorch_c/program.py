"""Writes the C of a whole program: its declarations, then call after call."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.errors import UsageError
from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.kinds import KINDS
from tinyfuse.frontend.executorch.program import Call, Value, read_program
from tinyfuse.frontend.tensors import Problems
from tinyfuse.verify.executorch_c import elements, layers, movement, portable
from tinyfuse.verify.executorch_c.declarations import Declarations

_WRITERS = layers.WRITERS | elements.WRITERS | movement.WRITERS | portable.WRITERS

_PRELUDE = """\
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "arm_nnfunctions.h"

static int failed;
static int8_t scratch[2][{scratch}] __attribute__((aligned(16)));

static inline cmsis_nn_context space(int which, int32_t bytes)
{{
    cmsis_nn_context context;

    failed |= bytes < 0 || bytes > (int32_t)sizeof scratch[which];
    context.buf = scratch[which];
    context.size = bytes;
    return context;
}}

static inline int8_t stored(float number, int32_t zero_point, int32_t low, int32_t high)
{{
    const double place = (double)nearbyintf(number) + (double)zero_point;

    return (int8_t)(place < (double)low ? (double)low : place > (double)high ? (double)high : place);
}}
"""


@dataclass(frozen=True)
class ProgramC:
    """C of a program.

    text       declarations, and `int run_program(void)`, which returns 0 where no call failed
    functions  those of CMSIS-NN that it calls
    inputs     (expression of a pointer, bytes) of each input
    outputs    likewise of each output
    dtypes     of the outputs
    """

    text: str
    functions: frozenset[str]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    dtypes: tuple[str, ...]


def program_c(data: bytes) -> ProgramC:
    """Return the C of a .pte file that was read without problems. UsageError if a call has no C."""
    program = read_program(data, Problems())
    assert program is not None, "it was read before"
    declarations = Declarations()
    calls = [_call_arguments(call) for call in program.calls]
    bodies = [_block(declarations, arguments) for arguments in calls]
    inputs, outputs = (
        tuple((declarations.pointer(value), value.bytes) for value in values)
        for values in (program.inputs, program.outputs)
    )
    run = "\n".join(["int run_program(void)", "{", "    failed = 0;", *bodies, "    return failed;", "}"])
    head = _PRELUDE.format(scratch=max([1024, *map(_most_scratch_bytes, calls)]))
    text = "\n".join([head, *declarations.lines(), "", run, ""])
    dtypes = tuple(value.dtype for value in program.outputs)
    return ProgramC(text, frozenset(declarations.functions), inputs, outputs, dtypes)


def _call_arguments(call: Call) -> Arguments:
    if _writer_kind(call) not in _WRITERS:
        raise UsageError(f"cmsis-nn can't run this model: {call} has no C (hint: leave out --oracle)")
    return Arguments(call, KINDS[call.kind].names)


def _writer_kind(call: Call) -> str:
    """Return the kind, in _WRITERS, of a call: sizes [N, H, W, C] make no difference there."""
    return call.kind.replace("_nhwc.", ".")


def _block(declarations: Declarations, arguments: Arguments) -> str:
    """Return the C of a call, in a block of its own."""
    call = arguments.call
    lines = _WRITERS[_writer_kind(call)](declarations, arguments)
    text = "\n".join(f"        {line}" for line in lines)
    return f"    {{ /* {call.index} {call.name} */\n{text}\n    }}"


def _most_scratch_bytes(arguments: Arguments) -> int:
    """Return bytes that suffice for a call's scratch memory: CMSIS-NN takes at most 16 for each element."""
    return 16 * sum(value.elements for value in arguments.call.arguments if isinstance(value, Value))
