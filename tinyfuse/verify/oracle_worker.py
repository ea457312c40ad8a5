"""Runs an interpreter of TensorFlow Lite, onnxruntime or ExecuTorch's operators on many inputs, as a process of its own: an interpreter may
abort on a model it doesn't like. Started by interpreter_process.py as a script, so it imports nothing of tinyfuse.

    python oracle_worker.py tflm|litert|onnxruntime|executorch

It answers each line of its input, a request

    {"folder": FOLDER, "arena_bytes": BYTES, "afresh": false, "frames": [4, 4], "tensors": []}

with a line that has an exit code. `frames`: of each stream. FOLDER has model.tflite and inputs.npz (arrays
"STREAM_FRAME_INDEX"); outputs.npz is written there, with the tensors of those places in the file instead of the
model's outputs where any are named, and log.txt with what was printed. A model with state gets a new interpreter for
every stream (`afresh`), one without keeps the first. The interpreter's library is loaded once: a request is answered by
a child, which may abort.
"""

import ctypes
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

Inference = Callable[[list[np.ndarray]], list[np.ndarray]]

#: what TFLM's invoke gives where a streaming model waits for more frames (kTfLiteAbort, micro_context.h)
_NO_RESULT = 15


@contextmanager
def _memory_of_zeros() -> Iterator[None]:
    """Memory is allocated as zeros meanwhile, where the C library can do it (glibc): as a device's arena is, in .bss.
    One kernel reads what it never wrote: SPACE_TO_BATCH_ND, what it pads with."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    perturb, inverted = -6, 0xFF  # M_PERTURB; memory is filled with the inverse of the byte
    if mallopt is not None:
        mallopt(perturb, inverted)
    try:
        yield
    finally:
        if mallopt is not None:
            mallopt(perturb, 0)


def tflm(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """TensorFlow Lite Micro's interpreter, with an arena of so many bytes."""
    from tflite_micro.python.tflite_micro import runtime

    config = (
        runtime.InterpreterConfig.kPreserveAllTensors if tensors else runtime.InterpreterConfig.kAllocationRecording
    )
    with _memory_of_zeros():
        interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes, intrepreter_config=config)

    def infer(inputs: list[np.ndarray]) -> list[np.ndarray]:
        for index, array in enumerate(inputs):
            interpreter.set_input(array, index)
        none = interpreter.invoke() == _NO_RESULT
        if tensors:
            return [np.array(interpreter.GetTensor(index, 0)["tensor_data"]) for index in tensors]
        outputs: list[np.ndarray] = []
        while True:
            # The interpreter doesn't tell how many outputs there are.
            try:
                found = np.array(interpreter.get_output(len(outputs)))
            except IndexError:
                return outputs
            outputs.append(np.zeros_like(found) if none else found)

    return infer


def litert(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """LiteRT's interpreter with its reference kernels, which has an arena of its own."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=bool(tensors),
    )

    allocated = False

    def infer(inputs: list[np.ndarray]) -> list[np.ndarray]:
        nonlocal allocated
        details = interpreter.get_input_details()
        if not allocated:
            for detail, array in zip(details, inputs, strict=True):
                # A batch of -1 in the file has become 1.
                interpreter.resize_tensor_input(detail["index"], array.shape)
            interpreter.allocate_tensors()
            interpreter.reset_all_variables()
            allocated = True
        for detail, array in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        places = tensors or [detail["index"] for detail in interpreter.get_output_details()]
        return [interpreter.get_tensor(place) for place in places]

    return infer


def onnxruntime(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """onnxruntime's CPU provider: all optimizations, one thread, stored int8 computed as integers (as on Arm)."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]

    def infer(inputs: list[np.ndarray]) -> list[np.ndarray]:
        return list(session.run(None, dict(zip(names, inputs, strict=True))))

    return infer


#: (ScalarType, torch's name of the dtype)
_TORCH_DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 6: "float32", 11: "bool"}


def executorch(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """ExecuTorch's Python operators, one call after the other, in memory planned as the program plans it.

    Two operators of release 1.5 don't compute what their kernels do: the average pool and the division, which are
    computed here as the kernels compute them. Inputs and outputs are arrays of the elements in the order of memory.
    """
    import torch

    importlib.import_module("executorch.backends.cortex_m.ops.operators")
    importlib.import_module("executorch.exir.passes.dim_order_ops_registry")
    serialize = importlib.import_module("executorch.exir._serialize._program")
    found = serialize.deserialize_pte_binary(model)
    program = getattr(found, "program", found)
    plan = program.execution_plan[0]
    memory = [torch.zeros(size, dtype=torch.uint8) for size in plan.non_const_buffer_sizes]
    torch.set_num_threads(1)

    def tensor(value: Any) -> Any:
        """A view of planned memory, or a constant."""
        dtype = getattr(torch, _TORCH_DTYPES[int(value.scalar_type)])
        strides, step = [0] * len(value.sizes), 1
        for axis in reversed(list(value.dim_order)):
            strides[axis] = step
            step *= value.sizes[axis]
        if value.allocation_info is not None:
            place = value.allocation_info.memory_offset_high << 32 | value.allocation_info.memory_offset_low
            storage = memory[value.allocation_info.memory_id].untyped_storage()
            return torch.empty(0, dtype=dtype).set_(storage, place // dtype.itemsize, list(value.sizes), strides)
        data = bytearray(program.constant_buffer[value.data_buffer_idx].storage)
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.as_strided(list(value.sizes), strides)

    def content(index: int) -> Any:
        value = plan.values[index].val
        kind = type(value).__name__
        if kind == "Tensor":
            return values[index]
        if kind in ("IntList", "TensorList"):
            return [content(item) for item in value.items]
        fields = {"Int": "int_val", "Bool": "bool_val", "Double": "double_val"}
        return getattr(value, fields[kind]) if kind in fields else None

    values = {i: tensor(v.val) for i, v in enumerate(plan.values) if type(v.val).__name__ == "Tensor"}

    def call(instruction: Any) -> None:
        operator = plan.operators[instruction.op_index]
        space, name = operator.name.split("::")
        signature = getattr(getattr(torch.ops, space), name)
        declared = [a for a in getattr(signature, operator.overload)._schema.arguments if not a.is_out]
        arguments = [content(index) for index in instruction.args[: len(declared)]]
        for i, argument in enumerate(declared):
            if str(argument.type) == "ScalarType" or argument.name == "dtype":
                arguments[i] = getattr(torch, _TORCH_DTYPES[arguments[i]])
        out = content(instruction.args[-1])
        if name in _LIKE_KERNELS:
            out.copy_(torch.from_numpy(_LIKE_KERNELS[name](out.shape, *arguments)))
            return
        named = {a.name: value for a, value in zip(declared, arguments, strict=True) if a.kwarg_only}
        plain = [value for a, value in zip(declared, arguments, strict=True) if not a.kwarg_only]
        overload = operator.overload.removesuffix("out").removesuffix("_") or "default"
        out.copy_(getattr(signature, overload)(*plain, **named))

    def elements(value: Any) -> np.ndarray:
        """All elements in the order of memory."""
        flat: np.ndarray = value.as_strided([value.numel()], [1]).numpy().copy()
        return flat

    def infer(inputs: list[np.ndarray]) -> list[np.ndarray]:
        for index, array in zip(plan.inputs, inputs, strict=True):
            value = values[index]
            value.as_strided([value.numel()], [1]).copy_(torch.from_numpy(np.ascontiguousarray(array).reshape(-1)))
        for instruction in plan.chains[0].instructions:
            call(instruction.instr_args)
        return [elements(values[index]) for index in tensors or plan.outputs]

    return infer


def _average(shape: Any, data: Any, kernel: Any, stride: Any, padding: Any, *_unread: Any) -> np.ndarray:
    """arm_avgpool_s8 of int8 [N, C, H, W]: halves go away from zero, padding doesn't count."""
    values = data.numpy().astype(np.int64)
    result = np.zeros(tuple(shape), np.int8)
    for row, column in np.ndindex(*result.shape[2:]):
        top, left = row * stride[0] - padding[0], column * stride[1] - padding[1]
        window = values[:, :, max(top, 0) : top + kernel[0], max(left, 0) : left + kernel[1]]
        total, count = window.sum(axis=(2, 3)), window.shape[2] * window.shape[3]
        result[:, :, row, column] = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return result


def _divided(shape: Any, data: Any, point: int, other: Any, other_point: int, out_point: int,
             scale: float) -> np.ndarray:  # fmt: skip
    """ExecuTorch's kernel of quantized_div, int8: halves go away from zero."""
    above, below = (t.numpy().astype(np.float32) - np.float32(z) for t, z in ((data, point), (other, other_point)))
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(below != 0, above / below, np.float32(0))
    products = (quotients * np.float32(scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(products) + 0.5), products) + out_point
    return np.broadcast_to(np.clip(rounded, -128, 127).astype(np.int8), tuple(shape)).copy()


#: operators whose Python doesn't compute what their kernel does -> a function that does
_LIKE_KERNELS: dict[str, Callable[..., np.ndarray]] = {"quantized_avg_pool2d": _average, "quantized_div": _divided}


#: kind -> how its inferences are made, and the module that is imported for it
_KINDS: dict[str, tuple[Callable[[bytes, int, tuple[int, ...]], Inference], str]] = {
    "tflm": (tflm, "tflite_micro.python.tflite_micro.runtime"),
    "litert": (litert, "ai_edge_litert.interpreter"),
    "onnxruntime": (onnxruntime, "onnxruntime"),
    "executorch": (executorch, "executorch.backends.cortex_m.ops.operators"),
}


def answer(kind: str, folder: str, arena_bytes: int, afresh: bool, frames: list[int], tensors: list[int]) -> None:
    """Runs model.tflite of a folder on inputs.npz and writes outputs.npz."""
    model = Path(folder, "model.tflite").read_bytes()
    # a model may have no inputs
    runs: dict[tuple[int, int], dict[int, np.ndarray]] = {
        (stream, frame): {} for stream, count in enumerate(frames) for frame in range(count)
    }
    with np.load(Path(folder, "inputs.npz")) as arrays:
        for name in arrays.files:
            stream, frame, index = map(int, name.split("_"))
            runs[stream, frame][index] = arrays[name]
    outputs, infer = {}, None
    for (stream, frame), inputs in runs.items():
        if infer is None or (frame == 0 and afresh):
            infer = _KINDS[kind][0](model, arena_bytes, tuple(tensors))
        for index, array in enumerate(infer([inputs[i] for i in range(len(inputs))])):
            outputs[f"{stream}_{frame}_{index}"] = array
    np.savez(Path(folder, "outputs.npz"), allow_pickle=False, **outputs)


def answer_into_log(kind: str, request: dict[str, Any]) -> int:
    """0, or 1 where the interpreter refuses: log.txt says why. What it prints itself goes there too."""
    log = os.open(Path(request["folder"], "log.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    kept = os.dup(1), os.dup(2)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        answer(kind, **request)
        return 0
    except Exception as error:
        os.write(log, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        return 1
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (log, *kept):
            os.close(descriptor)


def answer_in_a_child(kind: str, request: dict[str, Any]) -> int:
    """The same, or minus the number of the signal that ended the child. Where there is no fork, here."""
    if not hasattr(os, "fork"):
        return answer_into_log(kind, request)
    child = os.fork()
    if child == 0:
        os._exit(answer_into_log(kind, request))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def serve(kind: str) -> None:
    """Answers until nobody asks any more."""
    # a child has it then; where it can't be loaded, each child's log says why
    with suppress(Exception):
        importlib.import_module(_KINDS[kind][1])
    for line in sys.stdin:
        print(answer_in_a_child(kind, json.loads(line)), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
