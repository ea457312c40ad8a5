"""CMSIS-NN 7.0's functions for int16 data and int4 weights, as our kernels call them, are exact."""

from __future__ import annotations

from pathlib import Path

import layer_cases
import numpy as np
import pytest
from cases import NAMED
from cmsis_harness import PRELUDE, Case, array, cases_of, context_for, drawn, run_cases, run_program, tree_or_skip
from conv_cases import Shape, make_op, of_int4, random_input, random_shape
from test_cmsis_scratch import grid

from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.cmsis.conv_paths import ConvCall
from tinyfuse.kernels.cmsis.layers_s4 import convolve_scratch_s4, depthwise_scratch_s4
from tinyfuse.kernels.cmsis.layers_s16 import convolve_scratch_s16, depthwise_scratch_s16
from tinyfuse.kernels.cmsis.pooling_reduce import CmsisSoftmaxS16
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for, kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.pooling_reduce.softmax import Softmax
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import Tree

#: operators without weights that CMSIS-NN has in int16
_KINDS = ("ADD", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX", "BATCH_MATMUL")


def newest_tree() -> Tree:
    """The tree in CMSIS_NN_PATH; skips if it lacks the int16 and int4 functions that our kernels call."""
    tree = tree_or_skip("newest")
    if tree.version < (7, 0):
        pytest.skip("needs CMSIS-NN 7.0 or later: CMSIS_NN_PATH names an older one")
    return tree


def _inputs(op: Op, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Inputs of every magnitude, and both ends of the range."""

    def one(tensor: Tensor) -> np.ndarray:
        if rng.random() < 0.2:
            return np.full(tensor.shape, rng.choice(RANGE[tensor.dtype]), tensor.dtype)
        bits = int(rng.integers(3, 16 if tensor.dtype == "int16" else 8))
        return rng.integers(-(2**bits), 2**bits, tensor.shape).astype(tensor.dtype)

    return tuple(one(tensor) for tensor in op.activations)


def _softmax(depth: int, scale: float) -> Op:
    x = Tensor("x", (3, depth), "int16", Quant((float(np.float32(scale)),), (0,)), index=0)
    y = Tensor("y", (3, depth), "int16", Quant((2.0**-15,), (0,)), index=1)
    return Op("SOFTMAX", (x,), (y,), Softmax(1.0), index=0)


def int16_cases(context: Context) -> list[Case]:
    rng = np.random.default_rng(21)
    ops = [op for of_kind in layer_cases.NAMED.values() for op in of_kind.values()]
    ops += layer_cases.random_ops("int16", 40)
    ops += [_softmax(depth, scale) for depth in (2, 3, 8) for scale in (1e-5, 1e-3, 3e-2)]
    for kind in _KINDS:
        ops += [*NAMED[kind].values(), *drawn(kind, 20)]
    ops = [op for op in ops if op.output.dtype == "int16"]
    return [case for op in ops for case in cases_of(op, _inputs(op, rng), context)]


def int4_cases(context: Context) -> list[Case]:
    rng = np.random.default_rng(22)
    cases: list[Case] = []
    while len(cases) < 160:
        kind = str(rng.choice(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"], p=[0.6, 0.3, 0.1]))
        op = make_op(of_int4(random_shape(kind, rng, explicit_padding=bool(rng.random() < 0.2))), rng)
        found = cases_of(op, (random_input(op, rng, bool(rng.random() < 0.3)),), context)
        cases += [case for case in found if case.kernel.int4_weights]
    return cases


@pytest.mark.emulated
@pytest.mark.parametrize(
    "target", ["cortex-m4", "cortex-m55", pytest.param("cortex-m0plus", marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("dtype", ["int16", "int4"])
def test_functions_are_exact(dtype: str, target: str, tmp_path: Path) -> None:
    """Every kernel against its operator's reference, with guards around output and scratch."""
    tree = newest_tree()
    context = context_for(target, tree)
    cases = int16_cases(context) if dtype == "int16" else int4_cases(context)
    assert {case.kernel.name for case in cases} == _kernels(dtype)
    for case, result in zip(cases, run_cases(cases, context, tree, tmp_path), strict=True):
        how = "by rows" if case.by_row else "whole"
        shapes = [tensor.shape for tensor in (*case.op.inputs, *case.op.outputs) if tensor is not None]
        assert result.good, (result, case.kernel.name, how, shapes, case.op.attributes)
        assert result.stack <= case.kernel.stack_bytes, (result, case.kernel.name, shapes)


def _kernels(dtype: str) -> set[str]:
    kernels = [kernel for family in FAMILIES.values() for kernel in kernels_of(family.kind) if not family.updates]
    names = {kernel.name for kernel in kernels if kernel.library == "cmsis-nn"}
    return {name for name in names if name.endswith("_s16" if dtype == "int16" else "_s4")}


_GETTERS = {
    f"arm_{sort}_wrapper_{suffix}_get_buffer_size"
    for sort in ("convolve", "depthwise_conv")
    for suffix in ("s16", "s4")
}

_PROGRAM = """
int main(void)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i += 15) {
        const int32_t *const c = calls + i;
        const cmsis_nn_dims input = {1, c[0], c[1], c[2]}, output = {1, c[3], c[4], c[5]};
        const cmsis_nn_dims filter = {c[5], c[6], c[7], c[8]}, depthwise_filter = {1, c[6], c[7], c[5]};
        const cmsis_nn_tile stride = {c[10], c[9]}, dilation = {c[12], c[11]}, padding = {c[14], c[13]};
        const cmsis_nn_conv_params params = {.stride = stride, .padding = padding, .dilation = dilation};
        const cmsis_nn_dw_conv_params depthwise = {
            .ch_mult = c[5] / c[2], .stride = stride, .padding = padding, .dilation = dilation};

        port_write("case", 4);
        write_number(arm_convolve_wrapper_s16_get_buffer_size(&params, &input, &filter, &output));
        write_number(arm_depthwise_conv_wrapper_s16_get_buffer_size(&depthwise, &input, &depthwise_filter, &output));
        write_number(arm_convolve_wrapper_s4_get_buffer_size(&params, &input, &filter, &output));
        write_number(arm_depthwise_conv_wrapper_s4_get_buffer_size(&depthwise, &input, &depthwise_filter, &output));
        port_write("\\n", 1);
    }
    port_exit(0);
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_scratch_is_what_the_getters_say(target: str, tmp_path: Path) -> None:
    """With MVE the int4 getter calls the int8 getter, which asks for more than one-row convolutions need."""
    tree = newest_tree()
    context, calls = context_for(target, tree), grid()
    fields = tuple(ConvCall._fields)
    table = array("int32_t", "calls", np.array([[getattr(c, f) for f in fields] for c in calls]))
    text = f"#include <arm_nnfunctions.h>\n{PRELUDE}{table}{_PROGRAM}"
    lines = run_program(text, _GETTERS, context.target, tree, tmp_path)
    assert len(lines) == len(calls) > 500
    for call, (convolve, depthwise, convolve_s4, depthwise_s4) in zip(calls, lines, strict=True):
        assert convolve_scratch_s16(call, context) == convolve, call
        whole = call.out_c % call.in_c == 0
        assert not whole or depthwise_scratch_s16(call, context) == depthwise, call
        if not context.target.mve:
            assert convolve_scratch_s4(call, context) == convolve_s4, call
            assert not whole or depthwise_scratch_s4(call, context) == depthwise_s4, call
        elif not (call.in_h == call.kernel_h == 1):
            assert convolve_scratch_s4(call, context) == convolve_s4, call


def _accepted(op: Op, target: str) -> set[str]:
    """Kernels that call CMSIS-NN's functions of int16 or int4 and accept the operator."""
    context = Context(load_target(target))
    kernels = [kernel for kernel in kernels_for(op) if kernel.library == "cmsis-nn" and kernel.accepts(op, context)]
    return {kernel.name for kernel in kernels if kernel.name.endswith(("_s16", "_s4"))}


def test_what_gives_other_results_is_left_to_our_kernels() -> None:
    """A row of one output is 1, which its int16 can't hold; 18 ones in a sum overflow; and what the layers' int32 can't
    hold."""
    context = Context(load_target("cortex-m4"))
    taken = [depth for depth in range(1, 12) if CmsisSoftmaxS16().accepts(_softmax(depth, 1e-3), context)]
    assert taken == [2, 3, 4, 5, 6, 7, 8]
    far = {name: op for of_kind in layer_cases.NAMED.values() for name, op in of_kind.items()}
    for name in ("sums beyond int32", "int32 sums that wrap", "a bias beyond int32", "zero points"):
        assert _accepted(far[f"int16 {name}"], "cortex-m4") == set(), name
    rng = np.random.default_rng(1)
    plain = make_op(of_int4(Shape("DEPTHWISE_CONV_2D", 5, 5, 8, 8, (3, 3))), rng)
    odd = make_op(of_int4(Shape("DEPTHWISE_CONV_2D", 5, 5, 3, 6, (3, 3), multiplier=2)), rng)
    assert _accepted(plain, "cortex-m4") == {"arm_depthwise_conv_wrapper_s4"}
    assert _accepted(plain, "cortex-m55") == _accepted(odd, "cortex-m4") == set()
