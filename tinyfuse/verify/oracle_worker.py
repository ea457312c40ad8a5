"""Runs an interpreter of TensorFlow Lite, onnxruntime or ExecuTorch on many inputs, in its own process: it may abort.

    python oracle_worker.py tflm|litert|float|onnxruntime|executorch

interpreter_process.py starts it as a script, so it imports nothing of tinyfuse. Each input line is a request

    {"folder": FOLDER, "arena_bytes": BYTES, "afresh": false, "frames": [4, 4], "tensors": []}

and is answered by a line with an exit code. FOLDER has model.tflite and inputs.npz, with arrays "STREAM_FRAME_INDEX".
`frames` has the number of frames of each stream. A model with state gets a new interpreter for every stream (`afresh`);
one without state keeps the first. The interpreter's library is loaded once. Child processes, which may abort, answer a
request: one, or for many streams one a processor, each with a part of them. Child number PART writes
outputs_PART.npz, with the tensors at the places `tensors` of the file, or the model's outputs if that is empty, and
log_PART.txt with everything printed.
"""

import ctypes
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

Inference = Callable[[list[np.ndarray]], list[np.ndarray]]

#: result of TFLM's invoke if a streaming model waits for more frames (kTfLiteAbort, micro_context.h)
_NO_RESULT = 15
#: streams for which a process of its own pays
_LEAST_STREAMS = 100


@contextmanager
def _memory_of_zeros() -> Iterator[None]:
    """Lets the C library (glibc) fill allocated memory with zeros, like a device's arena in .bss. One kernel reads
    memory that it never wrote: SPACE_TO_BATCH_ND, its padding."""
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
    """Inference of TensorFlow Lite Micro's interpreter, with an arena of `arena_bytes`."""
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
            # The interpreter does not tell how many outputs there are.
            try:
                found = np.array(interpreter.get_output(len(outputs)))
            except IndexError:
                return outputs
            outputs.append(np.zeros_like(found) if none else found)

    return infer


def litert(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = (), optimized: bool = False) -> Inference:
    """Return the inference of LiteRT's interpreter, with its reference kernels unless `optimized`. `arena_bytes` is
    ignored, because it allocates its own arena."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        experimental_op_resolver_type=OpResolverType.AUTO if optimized else OpResolverType.BUILTIN_REF,
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


def float_model(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """Return the inference of LiteRT's interpreter with its optimized kernels, whose float32 results may be rounded
    differently."""
    return litert(model, arena_bytes, tensors, optimized=True)


def _with_older_operators(model: bytes) -> bytes:
    """The ONNX file with its operator set lowered to 20, if it declares a later one."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = model[at]
            value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                return value, at

    at, parts = 0, []
    while at < len(model):
        begin = at
        tag, at = varint(at)
        if tag & 7 == 0:
            _, at = varint(at)
        elif tag & 7 == 2:
            size, at = varint(at)
            at += size
        else:
            return model  # no field of a model
        field = model[begin:at]
        # opset_import: the standard domain is left out or empty, and versions are below 128
        standard = field[:1] == b"\x42" and field[-2:-1] == b"\x10" and field[2:-2] in (b"", b"\x0a\x00")
        parts.append(field[:-1] + bytes([min(field[-1], 20)]) if standard else field)
    return b"".join(parts)


def onnxruntime(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """onnxruntime's CPU provider: all optimizations, one thread, stored int8 computed as integers (as on Arm).

    x86 without VNNI saturates sums of two products of uint8 activations and int8 weights. With the option
    x64quantprecision, weights become uint8 and sums are exact. Layers of int8 activations are exact without the option,
    and files that have them can't be loaded with it. The option doesn't know the QLinearMatMul of operator set 21, so a
    file with a MatMul is first tried with a lower set.
    """
    import onnxruntime as ort

    def session_of(model: bytes, precise: str) -> Any:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.add_session_config_entry("session.x64quantprecision", precise)
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    session = None
    if b"MatMul" in model:
        with suppress(Exception):
            session = session_of(_with_older_operators(model), "1")
    if session is None:
        try:
            session = session_of(model, "1")
        except Exception:
            session = session_of(model, "0")
    names = [entry.name for entry in session.get_inputs()]

    def infer(inputs: list[np.ndarray]) -> list[np.ndarray]:
        return list(session.run(None, dict(zip(names, inputs, strict=True))))

    return infer


def executorch(model: bytes, arena_bytes: int, tensors: tuple[int, ...] = ()) -> Inference:
    """ExecuTorch's Python operators (executorch_operators.py), which lie beside this script."""
    name = "executorch_operators"
    found = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    inference: Inference = module.program_inference(model, tensors)
    return inference


#: kind -> (function that makes its inferences, Python module that it imports)
_KINDS: dict[str, tuple[Callable[[bytes, int, tuple[int, ...]], Inference], str]] = {
    "tflm": (tflm, "tflite_micro.python.tflite_micro.runtime"),
    "litert": (litert, "ai_edge_litert.interpreter"),
    "float": (float_model, "ai_edge_litert.interpreter"),
    "onnxruntime": (onnxruntime, "onnxruntime"),
    "executorch": (executorch, "executorch.backends.cortex_m.passes"),
}


def answer(
    kind: str, folder: str, arena_bytes: int, afresh: bool, frames: list[int], tensors: list[int], part: int, parts: int
) -> None:
    """Runs a folder's model.tflite on the streams PART, PART + PARTS and so on of inputs.npz."""
    model = Path(folder, "model.tflite").read_bytes()
    # a model may have no inputs
    runs: dict[tuple[int, int], dict[int, np.ndarray]] = {
        (stream, frame): {} for stream in range(part, len(frames), parts) for frame in range(frames[stream])
    }
    with np.load(Path(folder, "inputs.npz")) as arrays:
        for name in arrays.files:
            stream, frame, index = map(int, name.split("_"))
            if stream % parts == part:
                runs[stream, frame][index] = arrays[name]
    outputs, infer = {}, None
    for (stream, frame), inputs in runs.items():
        if infer is None or (frame == 0 and afresh):
            infer = _KINDS[kind][0](model, arena_bytes, tuple(tensors))
        for index, array in enumerate(infer([inputs[i] for i in range(len(inputs))])):
            outputs[f"{stream}_{frame}_{index}"] = array
    np.savez(Path(folder, f"outputs_{part}.npz"), allow_pickle=False, **outputs)


def answer_into_log(kind: str, request: dict[str, Any], part: int = 0, parts: int = 1) -> int:
    """Answers a part of a request; returns 0, or 1 if the interpreter refuses. Everything printed goes to the log."""
    log = os.open(Path(request["folder"], f"log_{part}.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    kept = os.dup(1), os.dup(2)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        answer(kind, **request, part=part, parts=parts)
        return 0
    except Exception as error:
        os.write(log, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        return 1
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (log, *kept):
            os.close(descriptor)


def answer_in_children(kind: str, request: dict[str, Any]) -> int:
    """Answers a request in child processes. Returns 0, or the exit code of the first one that failed, which is minus
    the signal's number after a signal. Without fork, answers it in this process."""
    if not hasattr(os, "fork"):
        return answer_into_log(kind, request)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = max(1, min(processors, len(request["frames"]) // _LEAST_STREAMS))
    children = []
    for part in range(parts):
        child = os.fork()
        if child == 0:
            os._exit(answer_into_log(kind, request, part, parts))
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return next(filter(None, codes), 0)


def serve(kind: str) -> None:
    """Answers requests from standard input until it ends."""
    # children inherit the library; if it cannot be loaded, each child's log says why
    with suppress(Exception):
        importlib.import_module(_KINDS[kind][1])
    for line in sys.stdin:
        print(answer_in_children(kind, json.loads(line)), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
