"""Recognizes files that are no .tflite: names the format and tells how to get a quantized .tflite from it.

Nothing of such a file is loaded: only its first bytes, its name and an archive's list of members are looked at.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile

from tinyfuse.errors import Problem

HINT_CONVERT = "give a .tflite file, a quantized .onnx file, or a .pte file for Cortex-M"
#: converter settings for a model that is int8 throughout
SETTINGS = (
    "converter.optimizations = [tf.lite.Optimize.DEFAULT], converter.representative_dataset = a function that yields "
    "some hundred real inputs, converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8], "
    "converter.inference_input_type = converter.inference_output_type = tf.int8"
)
_THEN_QUANTIZE = f"make a float .tflite of it, and quantize that with tinyfuse quantize; or convert with {SETTINGS}"
_KERAS = (
    f"load it with tf.keras.models.load_model, give that to tf.lite.TFLiteConverter.from_keras_model, {_THEN_QUANTIZE}"
)
_SAVED_MODEL = f"give the folder to tf.lite.TFLiteConverter.from_saved_model, {_THEN_QUANTIZE}"
_TORCH = (
    "convert the float module with litert-torch and quantize its .tflite with tinyfuse quantize, or export it with "
    "torch.onnx and quantize it with onnxruntime's quantize_static (docs/pytorch.md)"
)
_TORCH_EXPORTED = (
    "if it was quantized with ExecuTorch's CortexMQuantizer, three lines make a .pte of it, which tinyfuse reads: "
    'e = to_edge(torch.export.load("model.pt2"), compile_config=cortex_m_edge_compile_config()); '
    'e._edge_programs["forward"] = CortexMPassManager(e.exported_program()).transform(); '
    'open("model.pte", "wb").write(e.to_executorch().buffer). Of a float module, '
    f"{_TORCH}"
)
#: hint for formats that other commands read
_OTHER_COMMANDS = "this command reads .tflite files alone: tinyfuse gen, report, verify, run and profile read it"
_ONNX = (
    "quantize it with onnxruntime.quantization.quantize_static (QuantFormat.QDQ, per_channel=True), and give the "
    "quantized .onnx to tinyfuse gen (docs/onnx.md)"
)
_C_ARRAY = (
    'give the .tflite that it was made of; this makes it again: python3 -c "import re, sys; sys.stdout.buffer.write('
    "bytes(int(b, 16) for b in re.findall(r'0x[0-9a-fA-F]{2}\\b', sys.stdin.read())))\" < model.cc > model.tflite"
)
#: first bytes of a file -> (its format, what to do)
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/",
        "a Git LFS pointer: the model itself was not downloaded",
        "run `git lfs install` and `git lfs pull` in its repository",
    ),
    (b"\x89HDF\r\n\x1a\n", "a Keras model in HDF5 format (.h5)", _KERAS),
    (b"\x80\x02\x8a\x0al\xfc\x9cF", "a PyTorch file (a pickle of an old format)", _TORCH),
    (b"\x80", "a Python pickle, which PyTorch and scikit-learn write", _TORCH),
    (b"\x1f\x8b", "a gzip archive", "unpack it and give the .tflite file in it"),
    (b"<", "a web page: the download brought the page that shows the file", "download the file itself (its raw form)"),
)  # fmt: skip
_PAGE = re.compile(rb"<(!doctype|html|\?xml|head)", re.IGNORECASE)
#: a byte array as `xxd -i` and TensorFlow Lite Micro's examples write it
_ARRAY = re.compile(rb"\[[^\]]{0,80}\]\s*[^;={]{0,80}=\s*\{\s*0[xX][0-9a-fA-F]{2}\s*,")
#: the first fields of an ONNX file: ir_version, then the producer's name
_ONNX_START = re.compile(rb"\x08[\x01-\x1f]\x12[\x00-\x7f][\x20-\x7e]*")
#: operator type of a quantizing node, as a protobuf string
_QDQ = re.compile(rb"\x22[\x0b-\x10](QuantizeLinear|DequantizeLinear|QLinearConv|QLinearMatMul)")
#: identifiers of ExecuTorch's flatbuffers
_EXECUTORCH = b"ET12"
#: members of torch.export's archives, old and new versions
_EXPORTED = ("serialized_exported_program.json", "archive_format")
#: bytes of a text that are searched
_LOOKED_AT = 1 << 16


def folder_problem(path: str) -> Problem:
    """Describe a folder that was given as a model, and tell what to give instead."""
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        if os.path.exists(os.path.join(path, name)):
            return Problem("a folder: a TensorFlow SavedModel", hint=_SAVED_MODEL)
    return Problem("a folder, not a regular file", hint=HINT_CONVERT)


def irregular(path: str) -> Problem | None:
    """Return the problem of a path that is not a regular file, because reading a pipe or a device could block or
    never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return folder_problem(path)
    return None if stat.S_ISREG(mode) else Problem("not a regular file", hint=HINT_CONVERT)


def foreign_format(path: str, data: bytes) -> Problem:
    """Describe a file without the TFL3 identifier, as far as its format can be recognized."""
    found = _by_content(data) or _by_name(path, data)
    if found is None:
        return Problem("not a TensorFlow Lite model (no TFL3 identifier)", hint=HINT_CONVERT)
    what, hint = found
    return Problem(f"not a TensorFlow Lite model, but {what}", hint=hint)


def _by_content(data: bytes) -> tuple[str, str] | None:
    if data.startswith(b"PK\x03\x04"):
        return _archive(data)
    for magic, what, hint in _MAGIC:
        if data.startswith(magic) and (magic != b"<" or _PAGE.match(data)):
            return what, hint
    if _ARRAY.search(data, 0, _LOOKED_AT):
        return "its bytes as a C array", _C_ARRAY
    if data[4:8] == _EXECUTORCH:
        return "a program for ExecuTorch (.pte)", _OTHER_COMMANDS
    if _ONNX_START.match(data):
        return _onnx("what looks like an ONNX model", data)
    return None


def is_executorch(data: bytes) -> bool:
    """Tell whether a file is a program for ExecuTorch, by its identifier."""
    return data[4:8] == _EXECUTORCH


def is_onnx(path: str, data: bytes) -> bool:
    """Tell whether a file is an ONNX model: by its first fields, or by its name if no other format is recognized."""
    if data[4:8] == b"TFL3" or not data:
        return False
    return bool(_ONNX_START.match(data)) or (path.lower().endswith(".onnx") and _by_content(data) is None)


def _onnx(what: str, data: bytes) -> tuple[str, str]:
    if _QDQ.search(data):
        return f"{what}, quantized already (QDQ or QLinear operators)", _OTHER_COMMANDS
    return what, _ONNX


def _by_name(path: str, data: bytes) -> tuple[str, str] | None:
    name = path.lower()
    if name.endswith(".onnx"):
        return _onnx("an ONNX model", data)
    if name.endswith(("saved_model.pb", "saved_model.pbtxt")):
        return "the graph of a TensorFlow SavedModel", _SAVED_MODEL
    if name.endswith(".pb"):
        return (
            "a frozen TensorFlow graph",
            f"give it to tf.compat.v1.lite.TFLiteConverter.from_frozen_graph, and convert with {SETTINGS}",
        )
    return None


def _archive(data: bytes) -> tuple[str, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, UnicodeError):
        names = []
    if "config.json" in names and any(name.startswith("model.weights") for name in names):
        return "a Keras model (.keras)", _KERAS
    if any(name.rpartition("/")[2] in _EXPORTED for name in names):
        return "a program that torch.export has saved (.pt2)", _TORCH_EXPORTED
    if any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return "a PyTorch file", _TORCH
    if any(name.rpartition("/")[2] == "saved_model.pb" for name in names):
        return "a ZIP archive with a TensorFlow SavedModel", f"unpack it; {_SAVED_MODEL}"
    if any(name.lower().endswith(".tflite") for name in names):
        return "a ZIP archive with a .tflite file in it", "unpack it and give that file"
    return "a ZIP archive", HINT_CONVERT
