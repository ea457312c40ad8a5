"""The promises that verify_plan checks (tinyfuse/plan/check/), against the references, the kernels and the C."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import computed_layer_models
import layer_cases
import numpy as np
import pytest
from attention_cases import products, rows_of_layers
from cases import NAMED
from cases.common import random_data
from compiler_modules import layers_by_four, layers_of_fours, layers_of_int4, layers_of_int16, winograd_layers
from compressed_cases import compressed_layers
from computed_parameter_models import MEMORY
from contexts import context_of
from conv_cases import FAMILIES as CONV_FAMILIES
from conv_cases import Shape, make_op, random_shape
from host_program import compile_c
from hypothesis import HealthCheck, given, settings
from planes_cases import swaps
from resizing_graphs import resizing_chains
from test_fused_luts import layers
from uint8_models import layers_of_uint8

from tinyfuse.board_timing import BoardTiming
from tinyfuse.compiler import check_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.core.statements import Call, iterate_calls
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan.check.rows import _OF_ELEMENTS, _ROWS, rows_read
from tinyfuse.plan.check.scratch import _site, rows_made, scratch_needed
from tinyfuse.plan.check.scratch_sizes import (
    CONV_4X2_MVE_BYTES,
    INTERLEAVED_BYTES,
    INTERLEAVED_PLANE_BYTES,
    POINTER_BYTES,
    QUAD_BYTES,
    SCRATCH,
)
from tinyfuse.resources import resource_dir
from tinyfuse.schedule.kernel_choice.select import candidates
from tinyfuse.targets import load_target
from tinyfuse.verify.comparison import same_bits

#: which row changes what is probed so often with other numbers; images are small
PROBES = 3


def convolutions(count: int) -> Iterator[Op]:
    for kind in CONV_FAMILIES:
        rng = np.random.default_rng(7)
        for _ in range(count):
            yield make_op(random_shape(kind, rng), rng)
    for channels in (4, 8):
        yield make_op(Shape("CONV_2D", 5, 6, channels, 6, (1, 1)), np.random.default_rng(8))


def streaming(ops: Iterator[Op]) -> list[tuple[Op, int]]:
    """Operators with those inputs whose needed rows a row window gives."""
    return [
        (op, i)
        for op in ops
        for i, tensor in enumerate(op.inputs)
        if op.output.is_image and _at_run_time(tensor) and tensor.is_image and FAMILIES[op.kind].row_window(op, i)
    ]


def _at_run_time(tensor: Tensor | None) -> bool:
    return tensor is not None and not tensor.is_constant and not tensor.is_state


def influences(op: Op, index: int) -> list[set[int]]:
    """For each output row, the input rows whose change was seen to affect it."""
    found: list[set[int]] = [set() for _ in range(op.output.shape[1])]
    for probe in range(PROBES):
        rng = np.random.default_rng(probe)
        values = [t and (t.data if t.is_constant else _numbers(t, rng)) for t in op.inputs]
        before = FAMILIES[op.kind].reference(op, *values)[0]
        for row in range(op.inputs[index].shape[1]):
            changed = values[index].copy()
            changed[:, row] = _numbers(op.inputs[index], rng)[:, row]
            after = FAMILIES[op.kind].reference(op, *values[:index], changed, *values[index + 1 :])[0]
            for y in np.unique(np.nonzero(~same_bits(np.asarray(after), np.asarray(before)))[1]):
                found[y].add(row)
    return found


def _numbers(tensor: Tensor, rng: np.random.Generator) -> np.ndarray:
    if tensor.dtype == "float32":
        return rng.normal(size=tensor.shape).astype(np.float32)
    return random_data(tensor.shape, rng, tensor.dtype)


def check_rows(op: Op, index: int) -> None:
    """Checks that rows that affect an output row are read for it, and that rows that are read lie in the schedule's
    window."""
    rows, height = rows_read(op, index), op.inputs[index].shape[1]
    window = FAMILIES[op.kind].row_window(op, index)
    for y, (read, seen) in enumerate(zip(rows, influences(op, index), strict=True)):
        assert seen <= set(read) or op.kind in ("ROW_SUM", "ROW_MAX", "ROW_MIN", "ROW_MACS"), (
            f"{op} {op.attributes}: row {y}"
        )
        if read:
            planned = range(window.first(y), window.needed(y, height))
            assert planned.start <= read.start and read.stop <= planned.stop, f"{op} {op.attributes}: row {y}"


def made_by_rewrites() -> Iterator[Op]:
    yield from (after for _, after in products())
    yield from rows_of_layers()
    yield from swaps()


_CASES = streaming(op for ops in (*(named.values() for named in NAMED.values()), made_by_rewrites()) for op in ops)
_IDS = [f"{op.kind}{number}" for number, (op, _) in enumerate(_CASES)]


@pytest.mark.parametrize(("op", "index"), _CASES, ids=_IDS)
def test_what_changes_a_row_is_read_for_it(op: Op, index: int) -> None:
    check_rows(op, index)


def test_what_changes_a_row_of_a_convolution_is_read_for_it() -> None:
    found = streaming(convolutions(40))
    assert len(found) > 40
    for op, index in found:
        check_rows(op, index)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(resizing_chains())
def test_what_changes_a_row_of_a_random_layer_is_read_for_it(data: bytes) -> None:
    for op, index in streaming(iter(read_tflite("model.tflite", data).ops)):
        check_rows(op, index)


def test_every_operator_that_streams_has_a_contract() -> None:
    streams = {kind for kind, family in FAMILIES.items() if any(kernel.by_row for kernel in kernels_of(family.kind))}
    assert streams - {"FEED_ROWS"} == _OF_ELEMENTS | set(_ROWS)


def _functions(op: Op, kernel: Kernel, by_row: bool, context: Context) -> set[str]:
    """Functions that a call of the kernel calls."""
    return {s.function for s in iterate_calls(kernel.call(op, _site(op, by_row), context)) if isinstance(s, Call)}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_kernels_ask_for_the_scratch_of_their_contract(target: str) -> None:
    """Our kernels are checked to the byte: tests/exact/test_op_kernels.py runs each with exactly its scratch.
    test_cmsis_scratch.py asks CMSIS-NN for its sizes."""
    asked = set()
    cases = (op for named in (NAMED, layer_cases.NAMED) for ops in named.values() for op in ops.values())
    ops = [*cases, *convolutions(25), *layers_of_int4(), *layers_of_uint8(), *compressed_layers(), *made_by_rewrites()]
    ops += [
        *layers_of_int16(),
        *winograd_layers(),
        *layers_by_four(),
        *layers_of_fours(zero_point=3),
        *(layers() if load_target(target).dsp else []),
    ]
    computed = [*computed_layer_models.MODELS.values(), *(make() for make in MEMORY.values())]
    ops += [op for data in computed for op in check_graph(read_tflite("m.tflite", data)).ops]
    core = load_target(target)
    contexts = [context_of(core, optimize=optimize) for optimize in OPTIMIZE]
    contexts += [Context(core, weights=weights) for weights in ("winograd", "unpacked", "compressed")]
    contexts += [context_of(core, optimize="speed", weights="unpacked")]
    contexts += [context_of(core, optimize="speed", cycles=BoardTiming())]
    takes_none = set()  # most kernels, of elements: they do what they do whatever is chosen
    for context in contexts:
        for number, op in enumerate(ops):
            for kernel in candidates(op, context):
                none = not kernel.scratch(op, context)
                if none and (number, kernel) in takes_none:
                    continue
                if none:
                    takes_none.add((number, kernel))
                for by_row in {not kernel.whole, not kernel.whole or (kernel.by_row and op.output.is_image)}:
                    told, needed = kernel.scratch(op, context), scratch_needed(op, kernel, by_row, context)
                    assert told == needed if kernel.library == "tinyfuse" else told >= needed, f"{kernel.name}: {op}"
                    asked |= _functions(op, kernel, by_row, context) if needed else set()
                    assert not by_row or rows_made(op, kernel, context) == kernel.rows_a_call, f"{kernel.name}: {op}"
    elsewhere = {name for name in SCRATCH if "mve" in name and not core.mve}
    elsewhere |= set() if core.mve else {"tinyfuse_depthwise_interleaved_mve_row_s8"}
    elsewhere |= {name for name in SCRATCH if "palettized" in name and core.mve}
    elsewhere |= {name for name in SCRATCH if "_s4" in name and not (core.dsp and core.mve == ("mve" in name))}
    only_dsp = {"tinyfuse_winograd_rows_s8", "tinyfuse_conv_int16_weights_row_s8", "tinyfuse_dense_int16_weights_s8"}
    only_dsp |= {
        f"tinyfuse_{of}_s8"
        for of in (
            "pointwise_few_channels",
            "pointwise_int16_weights",
            "depthwise_weight_stationary_row",
            "depthwise_1d",
        )
    }
    only_dsp |= {"tinyfuse_winograd_along_row_s8"}
    only_dsp |= {"tinyfuse_pointwise_4x2_s8", "tinyfuse_conv_4x2_row_s8", "tinyfuse_dense_five_outputs_s8"}
    only_dsp |= {f"tinyfuse_{of}_s8" for of in ("pointwise_lut", "conv_packed_lut_row")}
    only_dsp |= {"tinyfuse_conv_bytes_row_w16", "tinyfuse_conv_packed_row_w16"}
    elsewhere |= {"tinyfuse_conv_dots_row_w16"} if core.dsp and not core.mve else only_dsp
    joined = {"tinyfuse_conv_paired_row_s8", "tinyfuse_depthwise_paired_row_s8"}
    joined |= {f"tinyfuse_{kind}_paired_s8" for kind in ("pointwise", "dense")}
    elsewhere |= joined if core.dsp else set()
    assert set(SCRATCH) - asked == elsewhere


@pytest.mark.parametrize(("compiler", "word"), [("gcc", 8), ("arm-none-eabi-gcc", 4)])
def test_the_structure_in_scratch_has_its_size(tmp_path: Path, compiler: str, word: int) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    source = tmp_path / "size.c"
    source.write_text(
        '#include "tinyfuse_depthwise_3x3.h"\n#include "tinyfuse_depthwise_interleaved_mve.h"\n'
        '#include "tinyfuse_conv_4x2_mve.h"\n'
        f"typedef char four_is[TINYFUSE_CONV_4X2_MVE_END_BYTES == {CONV_4X2_MVE_BYTES} ? 1 : -1];\n"
        f"typedef char columns_are[TINYFUSE_INTERLEAVED_JOB_BYTES == {INTERLEAVED_BYTES} ? 1 : -1];\n"
        f"typedef char planes_are[TINYFUSE_INTERLEAVED_PLANE_BYTES == {INTERLEAVED_PLANE_BYTES} ? 1 : -1];\n"
        f"typedef char pointer_is[sizeof(void *) == {word} ? 1 : -1];\n"
        f"typedef char quad_is[TINYFUSE_QUAD_BYTES == {QUAD_BYTES} ? 1 : -1];\n"
        f"typedef char quad_fits[sizeof(void *) > 4 || sizeof(tinyfuse_quad) == {QUAD_BYTES} ? 1 : -1];\n"
        f"typedef char pointers_are[TINYFUSE_POINTER_BYTES == {POINTER_BYTES} ? 1 : -1];\n"
    )
    flags = ["-mcpu=cortex-m4", "-mthumb"] if compiler.startswith("arm") else []
    compile_c([compiler, "-std=c99", *flags, f"-I{resource_dir('runtime_c')}", "-fsyntax-only", source])
