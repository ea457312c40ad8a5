"""Measures bakeNN 1.0.0 (PyPI) with its CMSIS-NN overlay, in the same firmware as tinyfuse's modules.

bakeNN refuses the MLPerf Tiny models as they are (open batch, RESHAPE without options, SOFTMAX), so it
is given patched copies: static batch, options added, SOFTMAX removed. Its results are compared with
TensorFlow Lite Micro's on the same copies.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import flatbuffers
import numpy as np
from rows import Row
from tinyfuse_runs import expected_outputs, measured_inputs

from tinyfuse.errors import TinyfuseError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import BuildOptions, ModuleFiles, build_firmware, find_emulator

SETTINGS = ("portable", "cmsis-nn")

_HEADER = """\
#ifndef NET_H
#define NET_H
#include <stddef.h>
#include "bknn_net.h"
#define NET_ALIGNED(bytes) (((bytes) + 15u) / 16u * 16u)
#define NET_INPUT_AT NET_ALIGNED(BKNN_NET_ARENA_SIZE)
#define NET_OUTPUT_AT (NET_INPUT_AT + NET_ALIGNED(BKNN_NET_INPUT_BYTES))
#define NET_ARENA_BYTES (NET_OUTPUT_AT + BKNN_NET_OUTPUT_BYTES)
#define NET_ARENA_ALIGN 16
#define NET_INPUTS 1
#define NET_OUTPUTS 1
enum { NET_OK = 0 };
int net_init(void *arena, size_t bytes);
int net_run(void *arena);
void *net_input(void *arena, size_t index);
const void *net_output(const void *arena, size_t index);
size_t net_input_bytes(size_t index);
size_t net_output_bytes(size_t index);
#endif
"""

_SOURCE = """\
#include "net.h"
int net_init(void *arena, size_t bytes) { return arena == NULL || bytes < NET_ARENA_BYTES; }
int net_run(void *arena)
{
    uint8_t *bytes = arena;
    bknn_net_infer(bytes, (const int8_t *)bytes + NET_INPUT_AT, (int8_t *)bytes + NET_OUTPUT_AT);
    return NET_OK;
}
void *net_input(void *arena, size_t index) { (void)index; return (uint8_t *)arena + NET_INPUT_AT; }
const void *net_output(const void *arena, size_t index)
{
    (void)index;
    return (const uint8_t *)arena + NET_OUTPUT_AT;
}
size_t net_input_bytes(size_t index) { (void)index; return BKNN_NET_INPUT_BYTES; }
size_t net_output_bytes(size_t index) { (void)index; return BKNN_NET_OUTPUT_BYTES; }
"""


def patched(data: bytes) -> bytes:
    """A copy of a model that bakeNN accepts: see the top of this file."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(data, 0)
    graph = model.subgraphs[0]
    kinds = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in model.operatorCodes]
    for tensor in graph.tensors:
        if tensor.shape is not None:
            tensor.shape = [1 if dim == -1 else int(dim) for dim in tensor.shape]
        tensor.shapeSignature = None
    for op in list(graph.operators):
        kind = kinds[op.opcodeIndex]
        if kind == schema.BuiltinOperator.RESHAPE and op.builtinOptions is None:
            op.builtinOptionsType = schema.BuiltinOptions.ReshapeOptions
            op.builtinOptions = schema.ReshapeOptionsT()
            op.builtinOptions.newShape = [int(dim) for dim in graph.tensors[op.outputs[0]].shape]
        if kind == schema.BuiltinOperator.SOFTMAX:
            graph.operators.remove(op)
            graph.outputs = [op.inputs[0] if o == op.outputs[0] else int(o) for o in graph.outputs]
    model.signatureDefs = None
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def measure(path: Path, model: str, macs: int, setting: str, opt: str, corners: int) -> Row:
    """The row of bakeNN on the Cortex-M4, the one core of ours that it knows; a failure is a row too."""
    row = Row("bakeNN", f"{setting}, patched copy", model, "cortex-m4")
    try:
        return _run(patched(path.read_bytes()), row, macs, setting, opt, corners)
    except (TinyfuseError, ValueError, RuntimeError) as error:
        return Row(row.tool, row.setting, model, row.target, failure=str(error).split("\n", 1)[0])


def _run(data: bytes, row: Row, macs: int, setting: str, opt: str, corners: int) -> Row:
    import bakenn
    from bakenn.backend.portable_c import CBackendOptions, KernelPolicy

    target = load_target("cortex-m4")
    graph = read_tflite("patched.tflite", data)
    inputs = measured_inputs(graph, corners)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        work = Path(folder)
        (work / "net.tflite").write_bytes(data)
        options = CBackendOptions()
        if setting == "cmsis-nn":
            options = CBackendOptions(kernel_policy=KernelPolicy.STATIC_PRIORITY, enable_cmsis_nn=True)
        bakenn.compile_tflite(
            str(work / "net.tflite"), work / "made", name="net", backend_options=options, target="cortex-m4"
        )
        wrapper = work / "wrapper"
        wrapper.mkdir()
        (wrapper / "net.h").write_text(_HEADER)
        (wrapper / "net.c").write_text(_SOURCE)
        arena = int(re.search(r"ARENA_SIZE (\d+)u", (work / "made" / "bknn_net.h").read_text())[1])
        folders = {header.parent for header in (work / "made").rglob("*.h")}
        firmware = build_firmware(
            ModuleFiles("net", "NET", wrapper, ("net.c",), tuple(f"-isystem{f}" for f in sorted(folders))),
            inputs,
            target,
            sorted((work / "made").rglob("*.c")),
            sorted(folders),
            work / "build",
            "qemu",
            BuildOptions(opt),
        )
        outcome = find_emulator("qemu", target).run(firmware, 600)
    expected = expected_outputs(data, graph, inputs, corners)
    exact = not outcome.guards and all(
        np.array_equal(np.frombuffer(found, wanted.dtype), wanted.ravel())
        for run, outputs in zip(expected, outcome.outputs, strict=True)
        for wanted, found in zip(run, outputs, strict=True)
    )
    return Row(
        row.tool,
        row.setting,
        row.model,
        row.target,
        outcome.instructions,
        round(outcome.instructions / macs, 3),
        arena,
        firmware.ram_bytes,
        outcome.stack_bytes,
        firmware.code_bytes,
        firmware.weight_bytes,
        exact,
    )
