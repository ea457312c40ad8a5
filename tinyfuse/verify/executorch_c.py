"""Writes an ExecuTorch program for Cortex-M as C that calls CMSIS-NN, as ExecuTorch's kernels call it.

Values lie where the program plans them. Nothing of tinyfuse's graph, rewrites or kernels has a part in it: the calls'
arguments are those of the file. Sources: backends/cortex_m/ops and kernels/portable/cpu of ExecuTorch's public
repository, release 1.5. Float32 is to be compiled without contractions (-ffp-contract=off).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyfuse.errors import UsageError
from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.kinds import KINDS
from tinyfuse.frontend.executorch.program import Program, Value, read_program
from tinyfuse.frontend.tensors import Problems
from tinyfuse.ir import Array, Int64s

_CTYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
           "float32": "float", "bool": "uint8_t"}  # fmt: skip
_NHWC = (0, 2, 3, 1)
#: sort of layer -> the function of CMSIS-NN
_LAYERS = {
    "conv": "arm_convolve_wrapper_s8",
    "dw_conv": "arm_depthwise_conv_wrapper_s8",
    "transpose_conv": "arm_transpose_conv_wrapper_s8",
}

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
    return _Writer(program).program()


class _Writer:
    def __init__(self, program: Program):
        self._program = program
        self._constants: dict[str, str] = {}
        self._functions: set[str] = set()
        self._memory: dict[int, int] = {}
        self._scratch = 1024

    def program(self) -> ProgramC:
        bodies = []
        for call in self._program.calls:
            write = self._KINDS.get(call.kind.replace("_nhwc.", "."))
            if write is None:
                raise UsageError(f"cmsis-nn can't run this model: {call} has no C (hint: leave out --oracle)")
            arguments = Arguments(call, KINDS[call.kind].names)
            self._scratch = max(self._scratch, 16 * sum(self._elements(arguments)))
            text = "\n".join(f"        {line}" for line in write(self, arguments))
            bodies.append(f"    {{ /* {call.index} {call.name} */\n{text}\n    }}")
        inputs, outputs = (
            tuple((self._pointer(value), value.bytes) for value in values)
            for values in (self._program.inputs, self._program.outputs)
        )
        memory = [
            f"static uint8_t memory_{number}[{size}] __attribute__((aligned(16)));"
            for number, size in sorted(self._memory.items())
        ]
        run = "\n".join(["int run_program(void)", "{", "    failed = 0;", *bodies, "    return failed;", "}"])
        head = _PRELUDE.format(scratch=self._scratch)
        text = "\n".join([head, *memory, *self._constants.values(), "", run, ""])
        return ProgramC(
            text, frozenset(self._functions), inputs, outputs, tuple(v.dtype for v in self._program.outputs)
        )

    @staticmethod
    def _elements(arguments: Arguments) -> Iterable[int]:
        """Elements of a call's tensors: no scratch of CMSIS-NN has more than 16 bytes for each."""
        return (value.elements for value in arguments.call.arguments if isinstance(value, Value))

    # --- values ------------------------------------------------------------------------------

    def _pointer(self, value: Value) -> str:
        """A pointer to a value's elements."""
        ctype = _CTYPES[value.dtype]
        if value.place is None:
            assert value.data is not None
            return self._constant(f"value_{value.number}", value.data, ctype)
        memory, offset = value.place
        self._memory[memory] = max(self._memory.get(memory, 16), offset + value.bytes)
        return f"(({ctype} *)(void *)(memory_{memory} + {offset}))"

    def _constant(self, name: str, values: Array, ctype: str) -> str:
        """The name of an array of constants."""
        if name not in self._constants:
            flat = np.ascontiguousarray(values).reshape(-1)
            numbers = ",".join(_number(v, ctype) for v in flat.tolist())
            self._constants[name] = f"static const {ctype} {name}[] __attribute__((aligned(16))) = {{{numbers}}};"
        return name

    def _place(self, a: Arguments, places: Int64s, what: str) -> str:
        """An expression, by `i`, of places in memory."""
        flat = np.ascontiguousarray(places).reshape(-1)
        if np.array_equal(flat, np.arange(flat.size)):
            return "i"
        if (flat == flat[0]).all():
            return f"{flat[0]}"
        return f"{self._constant(f'places_{a.call.index}_{what}', flat, 'uint32_t')}[i]"

    def _call(self, name: str, *arguments: str) -> str:
        """A statement that calls a function of CMSIS-NN and notes its failure."""
        self._functions.add(name)
        return f"failed |= {name}({', '.join(arguments)}) != ARM_CMSIS_NN_SUCCESS;"

    def _space(self, name: str, *arguments: str) -> str:
        """Scratch memory of the size that a function of CMSIS-NN tells."""
        self._functions.add(name)
        return f"{name}({', '.join(arguments)})"

    # --- layers ------------------------------------------------------------------------------

    def _images(self, a: Arguments) -> list[str]:
        """Declarations of the dimensions of input and result, images."""
        explicit = "_nhwc." in a.call.kind
        found = []
        for name, value in (("in", a.value("input")), ("out", a.out)):
            n, h, w, c = value.sizes if explicit else (value.sizes[d] for d in _NHWC)
            found.append(f"const cmsis_nn_dims {name} = {{{n}, {h}, {w}, {c}}};")
        return found

    def _layer(self, a: Arguments, kind: str, settings: str, last: str = "") -> list[str]:
        weight, bias = a.value("weight"), a.optional("bias")
        rows, columns = a.pair("stride")
        top, left = a.pair("padding")
        down, right = a.pair("dilation")
        low, high = a.clamp()
        multipliers, shifts = (self._pointer(a.value(f"requantize_{w}")) for w in ("multipliers", "shifts"))
        channels = a.value("requantize_multipliers").elements
        biases = "NULL" if bias is None else self._pointer(bias)
        data = f"{self._pointer(a.value('input'))}, &filter, {self._pointer(weight)}, &biases, {biases}, &out"
        contexts = "&context, &output" if kind == "transpose_conv" else "&context"
        return [
            *self._images(a),
            f"const cmsis_nn_dims filter = {{{', '.join(map(str, weight.sizes))}}}, biases = {{1, 1, 1, {channels}}};",
            f"const cmsis_nn_{kind}_params settings = {{.input_offset = {a.integer('input_offset')}, "
            f".output_offset = {a.integer('output_offset')}, {settings}.stride = {{.h = {rows}, .w = {columns}}}, "
            f".padding = {{.h = {top}, .w = {left}}}, .dilation = {{.h = {down}, .w = {right}}}, "
            f".activation = {{.min = {low}, .max = {high}}}}};",
            "const cmsis_nn_per_channel_quant_params quant = "
            f"{{(int32_t *)(uintptr_t){multipliers}, (int32_t *)(uintptr_t){shifts}}};",
            *self._layer_space(kind),
            self._call(
                _LAYERS[kind], contexts, "&settings", "&quant", "&in", data, self._pointer(a.out),
            ),
        ]  # fmt: skip

    def _layer_space(self, kind: str) -> list[str]:
        if kind == "transpose_conv":
            sizes = (
                self._space("arm_transpose_conv_s8_get_buffer_size", "&settings", "&in", "&filter", "&out"),
                self._space("arm_transpose_conv_s8_get_reverse_conv_buffer_size", "&settings", "&in", "&filter"),
            )
            return [
                f"const cmsis_nn_context {name} = space({number}, {size});"
                for number, (name, size) in enumerate(zip(("context", "output"), sizes, strict=True))
            ]
        size = self._space(f"{_LAYERS[kind]}_get_buffer_size", "&settings", "&in", "&filter", "&out")
        return [f"const cmsis_nn_context context = space(0, {size});"]

    def _conv(self, a: Arguments) -> list[str]:
        return self._layer(a, "conv", "")

    def _depthwise(self, a: Arguments) -> list[str]:
        return self._layer(a, "dw_conv", f".ch_mult = {a.integer('depth_multiplier')}, ")

    def _transposed_conv(self, a: Arguments) -> list[str]:
        rows, columns = a.pair("output_padding")
        return self._layer(a, "transpose_conv", f".padding_offsets = {{.h = {rows}, .w = {columns}}}, ")

    def _linear(self, a: Arguments) -> list[str]:
        value, weights, bias, sums = (
            a.value("input"), a.value("weights"), a.optional("bias"), a.optional("kernel_sum"),
        )  # fmt: skip
        outputs, inputs = weights.sizes
        low, high = a.clamp()
        offset = a.integer("input_offset")
        if bias is not None:
            biases = self._pointer(bias)
        elif sums is not None and sums.data is not None:
            # the sums, for Helium alone, have the bias
            folded = sums.data - a.constant("weights", "int8").astype(np.int64).sum(axis=1) * offset
            biases = self._constant(f"bias_{a.call.index}", folded, "int32_t")
        else:
            biases = "NULL"
        sizes = f"{{{value.elements // inputs}, 1, 1, "
        (multiplier,), (shift,) = (a.integers(f"requantize_{what}", 1) for what in ("multipliers", "shifts"))
        size = self._space("arm_fully_connected_s8_get_buffer_size", "&filter")
        self._functions.add("arm_vector_sum_s8")
        weight = self._pointer(weights)
        helium = (
            f"context.buf = (void *)(uintptr_t){self._pointer(sums)};"
            if sums is not None
            else f"(void)arm_vector_sum_s8(context.buf, {inputs}, {outputs}, {weight}, {offset}, 0, {biases});"
        )
        return [
            f"const cmsis_nn_dims in = {sizes}{inputs}}}, filter = {{{inputs}, 1, 1, {outputs}}};",
            f"const cmsis_nn_dims out = {sizes}{outputs}}}, bias = {{1, 1, 1, {outputs}}};",
            f"const cmsis_nn_fc_params settings = {{.input_offset = {offset}, .filter_offset = "
            f"{a.integer('filter_offset')}, .output_offset = {a.integer('output_offset')}, "
            f".activation = {{.min = {low}, .max = {high}}}}};",
            f"const cmsis_nn_per_tensor_quant_params quant = {{{multiplier}, {shift}}};",
            f"cmsis_nn_context context = space(0, {size});",
            *([] if sums is None else [f"(void){self._pointer(sums)};"]),
            "#if defined(ARM_MATH_MVEI)", helium, "#endif",
            self._call("arm_fully_connected_s8", "&context", "&settings", "&quant", "&in", self._pointer(value),
                       "&filter", weight, "&bias", biases, "&out", self._pointer(a.out)),
        ]  # fmt: skip

    def _matmul(self, a: Arguments) -> list[str]:
        left, right = a.value("lhs"), a.value("rhs_transposed")
        batch, rows, inner = left.sizes
        columns = right.sizes[1]
        return [
            f"const cmsis_nn_dims left = {{1, {batch}, {rows}, {inner}}}, right = {{1, {batch}, {columns}, {inner}}};",
            f"const cmsis_nn_dims out = {{1, {batch}, {rows}, {columns}}};",
            "const cmsis_nn_bmm_params settings = {.fc_params = {.input_offset = "
            f"{a.integer('lhs_zero_point')}, .filter_offset = {a.integer('rhs_zero_point')}, .output_offset = "
            f"{a.integer('output_zero_point')}, .activation = {{.min = -128, .max = 127}}}}}};",
            f"const cmsis_nn_per_tensor_quant_params quant = {{{a.integer('output_multiplier')}, "
            f"{a.integer('output_shift')}}};",
            "const cmsis_nn_context context = "
            f"space(0, {self._space('arm_fully_connected_s8_get_buffer_size', '&out')} + {4 * columns});",
            self._call("arm_batch_matmul_s8", "&context", "&settings", "&quant", "&left", self._pointer(left),
                       "&right", self._pointer(right), "&out", self._pointer(a.out)),
        ]  # fmt: skip

    def _pool(self, a: Arguments) -> list[str]:
        average = "avg_pool" in a.call.kind
        low, high = (-128, 127) if average else a.clamp()
        settings = [
            f".{name} = {{.h = {pair[0]}, .w = {pair[1]}}}"
            for name, pair in (("stride", a.pair("stride")), ("padding", a.pair("padding")))
        ]
        rows, columns = a.pair("kernel_size")
        size = self._space("arm_avgpool_s8_get_buffer_size", "out.w", "in.c") if average else "0"
        return [
            *self._images(a),
            f"const cmsis_nn_dims filter = {{1, {rows}, {columns}, 1}};",
            f"const cmsis_nn_pool_params settings = {{{', '.join(settings)}, "
            f".activation = {{.min = {low}, .max = {high}}}}};",
            f"const cmsis_nn_context context = space(0, {size});",
            self._call("arm_avgpool_s8" if average else "arm_max_pool_s8", "&context", "&settings", "&in",
                       self._pointer(a.value("input")), "&filter", "&out", self._pointer(a.out)),
        ]  # fmt: skip

    def _softmax(self, a: Arguments) -> list[str]:
        value = a.value("input")
        row = value.sizes[-1]
        self._functions.add("arm_softmax_s8")
        numbers = [a.integer(name) for name in ("input_multiplier", "input_shift", "diff_min")]
        return [
            f"arm_softmax_s8({self._pointer(value)}, {value.elements // row}, {row}, "
            f"{', '.join(map(str, numbers))}, {self._pointer(a.out)});"
        ]

    # --- int8, element by element ------------------------------------------------------------

    def _operands(self, a: Arguments) -> tuple[list[str], int, bool]:
        """(pointers to both operands, elements of a call, whether these change places): a value a channel is second."""
        first, second = a.value("self"), a.value("other")
        pointers = [self._pointer(first), self._pointer(second)]
        channels = first.sizes[1] if len(first.sizes) == len(second.sizes) == 4 else 0
        beside = channels and channels == second.sizes[1] and channels in (first.elements, second.elements)
        if not beside:
            return pointers, a.out.elements, False
        turned = first.elements < second.elements
        return pointers[::-1] if turned else pointers, channels, turned

    def _by_parts(self, a: Arguments, statement: str, part: int) -> list[str]:
        return [f"for (int32_t at = 0; at < {a.out.elements}; at += {part}) {{", f"    {statement}", "}"]

    def _sum(self, a: Arguments) -> list[str]:
        (first, second), part, turned = self._operands(a)
        numbers = [
            [-a.integer(f"{name}_zero_point"), a.integer(f"{name}_multiplier"), a.integer(f"{name}_shift")]
            for name in ("self", "other")
        ]
        left, right = (", ".join(map(str, each)) for each in (numbers[::-1] if turned else numbers))
        to = ", ".join(str(a.integer(f"output_{name}")) for name in ("zero_point", "multiplier", "shift"))
        low, high = a.clamp()
        call = self._call("arm_elementwise_add_s8", f"{first} + at", second, left, right, "20",
                          f"{self._pointer(a.out)} + at", to, f"{low}, {high}, {part}")  # fmt: skip
        return self._by_parts(a, call, part)

    def _product(self, a: Arguments) -> list[str]:
        (first, second), part, turned = self._operands(a)
        points = [-a.integer(f"{name}_zero_point") for name in ("self", "other")]
        left, right = points[::-1] if turned else points
        to = ", ".join(str(a.integer(f"output_{name}")) for name in ("zero_point", "multiplier", "shift"))
        call = self._call("arm_elementwise_mul_s8", f"{first} + at", second, f"{left}, {right}",
                          f"{self._pointer(a.out)} + at", to, f"-128, 127, {part}")  # fmt: skip
        return self._by_parts(a, call, part)

    def _quotient(self, a: Arguments) -> list[str]:
        x, y = a.value("self"), a.value("other")
        points = [a.integer(f"{name}_zero_point") for name in ("self", "other", "output")]
        return self._loop(
            a.out.elements,
            f"const float above = (float)({self._pointer(x)}[i] - {points[0]});",
            f"const float below = (float)({self._pointer(y)}[i] - {points[1]});",
            f"const float found = roundf((below != 0.0f ? above / below : 0.0f) * {_float(a.scale('output_scale'))});",
            f"{self._pointer(a.out)}[i] = stored(found, {points[2]}, -128, 127);",
        )

    def _table(self, a: Arguments) -> list[str]:
        lut = self._pointer(a.value("lut"))
        return self._loop(
            a.out.elements,
            f"{self._pointer(a.out)}[i] = {lut}[(uint8_t)({self._pointer(a.value('input'))}[i] + 128)];",
        )

    def _choice(self, a: Arguments) -> list[str]:
        if a.call.kind.startswith("aten"):
            return self._arithmetic(a)
        names = ("self", "other", "out")
        dims = [(1,) * (4 - len(a.value(name).sizes)) + a.value(name).sizes for name in names]
        texts = [f"{name} = {{{', '.join(map(str, sizes))}}}" for name, sizes in zip(names, dims, strict=True)]
        return [
            f"const cmsis_nn_dims {', '.join(texts)};",
            "const cmsis_nn_context context = space(0, 0);",
            self._call(f"arm_{a.call.name}_s8", "&context", *(f"{self._pointer(a.value(n))}, &{n}" for n in names)),
        ]

    def _transpose(self, a: Arguments) -> list[str]:
        value, order = a.value("input"), a.integers("dims")
        rank = len(value.sizes)
        dims = [", ".join(map(str, (*sizes, *(1,) * (4 - rank)))) for sizes in (value.sizes, a.out.sizes)]
        orders = self._constant(f"order_{a.call.index}", np.array([*order, *range(rank, 4)]), "uint32_t")
        return [
            f"const cmsis_nn_dims in = {{{dims[0]}}}, out = {{{dims[1]}}};",
            f"const cmsis_nn_transpose_params settings = {{{rank}, {orders}}};",
            self._call("arm_transpose_s8", self._pointer(value), self._pointer(a.out), "&in", "&out", "&settings"),
        ]

    def _pad(self, a: Arguments) -> list[str]:
        value = a.value("input")
        sizes = value.sizes
        image = len(sizes) == 4 and (
            sizes[1] == 1 or sizes[2] * sizes[3] == 1 or value.dim_order == _NHWC
        )  # as ExecuTorch decides  # fmt: skip
        dims = [sizes[d] for d in _NHWC] if image else [*(1,) * (4 - len(sizes)), *sizes]
        texts = [
            f"{name} = {{{', '.join(map(str, numbers))}}}"
            for name, numbers in (("in", dims), ("before", a.integers("pre_pad")), ("behind", a.integers("post_pad")))
        ]
        return [
            f"const cmsis_nn_dims {', '.join(texts)};",
            self._call("arm_pad_s8", self._pointer(value), self._pointer(a.out), str(a.integer("pad_value")), "&in",
                       "&before", "&behind"),
        ]  # fmt: skip

    # --- borders -----------------------------------------------------------------------------

    def _quantize(self, a: Arguments) -> list[str]:
        inverse = np.float32(1) / np.float32(a.scale("scale"))
        bounds = ", ".join(str(a.integer(name)) for name in ("zero_point", "quant_min", "quant_max"))
        product = f"{_float(inverse)} * {self._pointer(a.value('input'))}[i]"
        return self._loop(a.out.elements, f"{self._pointer(a.out)}[i] = stored({product}, {bounds});")

    def _dequantize(self, a: Arguments) -> list[str]:
        number = f"(float)({self._pointer(a.value('input'))}[i] - {a.integer('zero_point')})"
        return self._loop(a.out.elements, f"{self._pointer(a.out)}[i] = {number} * {_float(a.scale('scale'))};")

    # --- movement ----------------------------------------------------------------------------

    def _loop(self, count: int, *statements: str) -> list[str]:
        return [f"for (int32_t i = 0; i < {count}; ++i) {{", *(f"    {text}" for text in statements), "}"]

    def _moved(self, a: Arguments, places: Int64s) -> list[str]:
        """Let each element of the result, by its logical place, be that at a place in the input's memory."""
        flat = places.reshape(a.out.sizes).transpose(a.out.dim_order)
        at = self._place(a, flat, "input")
        return self._loop(a.out.elements, f"{self._pointer(a.out)}[i] = {self._pointer(a.value('input'))}[{at}];")

    def _view(self, a: Arguments) -> list[str]:
        return [f"memmove({self._pointer(a.out)}, {self._pointer(a.value('input'))}, {a.out.bytes});"]

    def _copy(self, a: Arguments) -> list[str]:
        return self._moved(a, _places(a.value("input")))

    def _permute(self, a: Arguments) -> list[str]:
        return self._moved(a, _places(a.value("input")).transpose(a.integers("dims")))

    def _slice(self, a: Arguments) -> list[str]:
        places, axis = _places(a.value("input")), a.integer("dim")
        if a.has("index"):
            return self._moved(a, places.take([a.integer("index")], axis))
        bounds = slice(a.optional_integer("start"), a.optional_integer("end"), a.integer("step"))
        return self._moved(a, np.moveaxis(np.moveaxis(places, axis, 0)[bounds], 0, axis))

    def _upsample(self, a: Arguments) -> list[str]:
        places = _places(a.value("input"))
        factors = a.optional_numbers("scale_factors", 2)
        for axis in (2, 3):
            before, behind = places.shape[axis], a.out.sizes[axis]
            step = np.float32(before / behind if factors is None else 1 / factors[axis - 2])
            taken = np.minimum(np.floor(np.arange(behind, dtype=np.float32) * step), before - 1).astype(int)
            places = places.take(taken, axis)
        return self._moved(a, places)

    def _join(self, a: Arguments) -> list[str]:
        places, at, lines = np.moveaxis(_places(a.out), a.integer("dim"), 0), 0, []
        for number, value in enumerate(a.values("tensors")):
            count = value.sizes[a.integer("dim")]
            logical = np.moveaxis(places[at : at + count], 0, a.integer("dim"))
            to = self._place(a, logical.transpose(value.dim_order), f"{number}")
            lines += self._loop(value.elements, f"{self._pointer(a.out)}[{to}] = {self._pointer(value)}[i];")
            at += count
        return lines

    # --- float32 -----------------------------------------------------------------------------

    _BINARY: ClassVar = {"add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "minimum": "x < y ? x : y",
                         "maximum": "x > y ? x : y"}  # fmt: skip

    def _arithmetic(self, a: Arguments) -> list[str]:
        ctype, lines = _CTYPES[a.out.dtype], []
        for letter, name in (("x", "self"), ("y", "other")):
            value = a.value(name)
            places = np.broadcast_to(_places(value), a.out.sizes).transpose(a.out.dim_order)
            lines.append(f"const {ctype} {letter} = {self._pointer(value)}[{self._place(a, places, letter)}];")
        return self._loop(a.out.elements, *lines, f"{self._pointer(a.out)}[i] = {self._BINARY[a.call.name]};")

    _FUNCTIONS: ClassVar = {"relu": "x < 0.0f ? 0.0f : x", "abs": "fabsf(x)", "neg": "-x", "sqrt": "sqrtf(x)",
                            "floor": "floorf(x)", "ceil": "ceilf(x)"}  # fmt: skip

    def _function(self, a: Arguments) -> list[str]:
        return self._of_one(a, self._FUNCTIONS[a.call.name])

    def _clamp(self, a: Arguments) -> list[str]:
        low, high = a.optional_number("min"), a.optional_number("max")
        text = "x" if low is None else f"(x < {_float(low)} ? {_float(low)} : x)"
        return self._of_one(a, text if high is None else f"({_float(high)} < {text} ? {_float(high)} : {text})")

    def _of_one(self, a: Arguments, text: str) -> list[str]:
        places = _places(a.value("input")).transpose(a.out.dim_order)
        read = f"{self._pointer(a.value('input'))}[{self._place(a, places, 'input')}]"
        return self._loop(a.out.elements, f"const float x = {read};", f"{self._pointer(a.out)}[i] = {text};")

    def _mean(self, a: Arguments) -> list[str]:
        value = a.value("input")
        axes = sorted(dim % len(value.sizes) for dim in a.integers("dim"))
        places = np.moveaxis(_places(value), axes, range(-len(axes), 0))
        count = math.prod(value.sizes[axis] for axis in axes)
        name = self._constant(f"places_{a.call.index}", places, "uint32_t")
        return self._loop(
            a.out.elements, "float total = 0.0f;",
            f"for (int32_t k = 0; k < {count}; ++k) {{ total += {self._pointer(value)}[{name}[i * {count} + k]]; }}",
            f"{self._pointer(a.out)}[i] = total / {_float(count)};",
        )  # fmt: skip

    def _normalized(self, a: Arguments) -> list[str]:
        value, count = a.value("input"), math.prod(a.integers("normalized_shape"))
        scaled = "(row[k] - mean) / deviation"
        for sign, name in (("*", "weight"), ("+", "bias")):
            if (constant := a.optional(name)) is not None:
                scaled = f"({scaled}) {sign} {self._pointer(constant)}[k]"
        return self._loop(
            value.elements // count, f"const float *row = {self._pointer(value)} + i * {count};",
            "float total = 0.0f, squares = 0.0f;",
            f"for (int32_t k = 0; k < {count}; ++k) {{ total += row[k]; squares += row[k] * row[k]; }}",
            f"const float mean = total / {_float(count)};",
            f"const float deviation = sqrtf(squares / {_float(count)} - mean * mean + {_float(a.number('eps'))});",
            f"for (int32_t k = 0; k < {count}; ++k) {{ {self._pointer(a.out)}[i * {count} + k] = {scaled}; }}",
        )  # fmt: skip

    _KINDS: ClassVar[dict[str, Callable[[_Writer, Arguments], list[str]]]] = {
        "cortex_m::quantize_per_tensor.out": _quantize,
        "cortex_m::dequantize_per_tensor.out": _dequantize,
        "cortex_m::quantized_add.out": _sum,
        "cortex_m::quantized_mul.out": _product,
        "cortex_m::quantized_div.out": _quotient,
        "cortex_m::quantized_activation.out": _table,
        "cortex_m::quantized_linear.out": _linear,
        "cortex_m::quantized_conv2d.out": _conv,
        "cortex_m::quantized_depthwise_conv2d.out": _depthwise,
        "cortex_m::quantized_transpose_conv2d.out": _transposed_conv,
        "cortex_m::quantized_batch_matmul.out": _matmul,
        "cortex_m::quantized_avg_pool2d.out": _pool,
        "cortex_m::quantized_max_pool2d.out": _pool,
        "cortex_m::softmax.out": _softmax,
        "cortex_m::transpose.out": _transpose,
        "cortex_m::pad.out": _pad,
        "aten::permute_copy.out": _permute,
        "aten::view_copy.out": _view,
        "aten::cat.out": _join,
        "dim_order_ops::_to_dim_order_copy.out": _copy,
        "dim_order_ops::_clone_dim_order.out": _copy,
        "aten::unsqueeze_copy.out": _view,
        "aten::squeeze_copy.dim_out": _view,
        "aten::squeeze_copy.dims_out": _view,
        "aten::slice_copy.Tensor_out": _slice,
        "aten::select_copy.int_out": _slice,
        "aten::upsample_nearest2d.vec_out": _upsample,
        "aten::clamp.out": _clamp,
        "aten::hardtanh.out": _clamp,
        "aten::mean.out": _mean,
        "aten::native_layer_norm.out": _normalized,
        "cortex_m::minimum.out": _choice,
        "cortex_m::maximum.out": _choice,
        "aten::minimum.out": _choice,
        "aten::maximum.out": _choice,
        "aten::add.out": _arithmetic,
        "aten::sub.out": _arithmetic,
        "aten::mul.out": _arithmetic,
        "aten::div.out": _arithmetic,
        "aten::relu.out": _function,
        "aten::abs.out": _function,
        "aten::neg.out": _function,
        "aten::sqrt.out": _function,
        "aten::floor.out": _function,
        "aten::ceil.out": _function,
    }


def _places(value: Value) -> Int64s:
    """Places in memory of a value's elements, as an array of its logical dimensions."""
    memory = np.arange(value.elements).reshape([value.sizes[d] for d in value.dim_order])
    return memory.transpose(np.argsort(value.dim_order))


def _float(number: float | np.float32) -> str:
    text = repr(float(np.float32(number)))
    return f"{text}f"


def _number(number: float, ctype: str) -> str:
    if ctype == "float":
        return _float(number)
    return "(-2147483647 - 1)" if number == -(2**31) else str(int(number))
