"""Proves that every byte of a .tflite file which `tinyfuse.tflite_reader` reads is inside the file.

PyPI's `tflite` accessors trust every offset, so nothing of a file reaches them before
`check_flatbuffer` has walked it. The walk follows `TABLES`, our own statement of the parts of the
TensorFlow Lite schema (version 3) that are read; the rest of a file is never looked at.
Source of the format: FlatBuffers' "internals" page; the checks are those of its C++ verifier, plus
limits on how much a small file may claim (tables and vectors may be shared, so a file can describe
far more than it holds).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache

import tflite

#: elements in any one vector of tables: operators, tensors, buffers
MAX_TABLES_A_VECTOR = 10_000
#: tables in all, each counted as often as it is referred to
MAX_TABLES = 60_000
#: elements of number vectors and bytes of strings in all, each counted as often as referred to
MAX_ITEMS = 1 << 22
#: bytes of one string; names of fused layers, joined by the converter, reach thousands
MAX_STRING = 1 << 16

_SIZES = {"bool": 1, "byte": 1, "ubyte": 1, "int": 4, "uint": 4, "float": 4, "long": 8, "ulong": 8}
#: enumerations and the bytes of one value
_ENUM_SIZES = {
    "ActivationFunctionType": 1,
    "BuiltinOperator": 4,
    "FullyConnectedOptionsWeightsFormat": 1,
    "MirrorPadMode": 1,
    "Padding": 1,
    "TensorType": 1,
}


@cache
def enumerators(enum: str) -> dict[int, str]:
    """The names of an enumeration of the schema by their values."""
    return {v: k for k, v in vars(getattr(tflite, enum)).items() if not k.startswith("_")}


@dataclass(frozen=True)
class Field:
    """One field of a table, in the schema's spelling; `slot` is its place in the vtable.

    `type` is a scalar, an enumeration, "string", a table, "union", or one of them in brackets: a
    vector. "-" is a field that nobody reads.
    """

    name: str
    type: str
    slot: int

    @property
    def enum(self) -> str | None:
        return self.type if self.type in _ENUM_SIZES else None


def _fields(text: str) -> tuple[Field, ...]:
    pairs = [part.split(":") for part in text.split()]
    return tuple(Field(name, kind, slot) for slot, (name, kind) in enumerate(pairs))


_CONV = "padding:Padding stride_w:int stride_h:int"
_ACTIVATION = "fused_activation_function:ActivationFunctionType"
_DILATION = "dilation_w_factor:int dilation_h_factor:int"

#: Tables of the schema, their fields in its order, up to the last one that is read.
TABLES: dict[str, tuple[Field, ...]] = {
    name: _fields(text)
    for name, text in {
        "Model": "version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:- "
        "buffers:[Buffer]",
        "OperatorCode": "deprecated_builtin_code:byte custom_code:string version:- "
        "builtin_code:BuiltinOperator",
        "SubGraph": "tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator]",
        "Buffer": "data:[ubyte] offset:ulong size:ulong",
        "Tensor": "shape:[int] type:TensorType buffer:uint name:string "
        "quantization:QuantizationParameters is_variable:bool sparsity:SparsityParameters "
        "shape_signature:[int] has_rank:- variant_tensors:- external_buffer:uint",
        "QuantizationParameters": "min:- max:- scale:[float] zero_point:[long] details_type:ubyte "
        "details:- quantized_dimension:int",
        "SparsityParameters": "",
        "Operator": "opcode_index:uint inputs:[int] outputs:[int] builtin_options_type:ubyte "
        "builtin_options:union custom_options:[ubyte]",
        # options of operators; a table without fields needs no line
        "AddOptions": f"{_ACTIVATION} pot_scale_int16:bool",
        "ArgMaxOptions": "output_type:TensorType",
        "ArgMinOptions": "output_type:TensorType",
        "BatchMatMulOptions": "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool",
        "CallOnceOptions": "init_subgraph_index:int",
        "CastOptions": "in_data_type:TensorType out_data_type:TensorType",
        "ConcatenationOptions": f"axis:int {_ACTIVATION}",
        "Conv2DOptions": f"{_CONV} {_ACTIVATION} {_DILATION} quantized_bias_type:TensorType",
        "DepthToSpaceOptions": "block_size:int",
        "DepthwiseConv2DOptions": f"{_CONV} depth_multiplier:int {_ACTIVATION} {_DILATION}",
        "FullyConnectedOptions": f"{_ACTIVATION} weights_format:FullyConnectedOptionsWeightsFormat "
        "keep_num_dims:bool asymmetric_quantize_inputs:bool quantized_bias_type:TensorType",
        "GatherOptions": "axis:int batch_dims:int",
        "L2NormOptions": _ACTIVATION,
        "LeakyReluOptions": "alpha:float",
        "MirrorPadOptions": "mode:MirrorPadMode",
        "MulOptions": _ACTIVATION,
        "PackOptions": "values_count:int axis:int",
        "Pool2DOptions": f"{_CONV} filter_width:int filter_height:int {_ACTIVATION}",
        "ReducerOptions": "keep_dims:bool",
        "ReshapeOptions": "new_shape:[int]",
        "ResizeBilinearOptions": "new_height:- new_width:- align_corners:bool "
        "half_pixel_centers:bool",
        "ResizeNearestNeighborOptions": "align_corners:bool half_pixel_centers:bool",
        "ShapeOptions": "out_type:TensorType",
        "SoftmaxOptions": "beta:float",
        "SpaceToDepthOptions": "block_size:int",
        "SplitOptions": "num_splits:int",
        "SplitVOptions": "num_splits:int",
        "SqueezeOptions": "squeeze_dims:[int]",
        "StridedSliceOptions": "begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int "
        "shrink_axis_mask:int offset:bool",
        "SubOptions": f"{_ACTIVATION} pot_scale_int16:bool",
        "SVDFOptions": f"rank:int {_ACTIVATION} asymmetric_quantize_inputs:bool",
        "TransposeConvOptions": f"{_CONV} {_ACTIVATION} quantized_bias_type:TensorType",
        "UnidirectionalSequenceLSTMOptions": f"{_ACTIVATION} cell_clip:float proj_clip:float "
        "time_major:bool asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool",
        "UnpackOptions": "num:int axis:int",
        "VarHandleOptions": "container:string shared_name:string",
    }.items()
}

#: operator kinds whose options are read, and the table that holds them
OPTION_TABLES: dict[str, str] = {
    "ADD": "AddOptions",
    "ARG_MAX": "ArgMaxOptions",
    "ARG_MIN": "ArgMinOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CALL_ONCE": "CallOnceOptions",
    "CAST": "CastOptions",
    "CONCATENATION": "ConcatenationOptions",
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "DEPTH_TO_SPACE": "DepthToSpaceOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "GATHER": "GatherOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "LEAKY_RELU": "LeakyReluOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "MIRROR_PAD": "MirrorPadOptions",
    "MUL": "MulOptions",
    "PACK": "PackOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "RESHAPE": "ReshapeOptions",
    "RESIZE_BILINEAR": "ResizeBilinearOptions",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    "SHAPE": "ShapeOptions",
    "SOFTMAX": "SoftmaxOptions",
    "SPACE_TO_DEPTH": "SpaceToDepthOptions",
    "SPLIT": "SplitOptions",
    "SPLIT_V": "SplitVOptions",
    "SQUEEZE": "SqueezeOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
    "SUB": "SubOptions",
    "SUM": "ReducerOptions",
    "SVDF": "SVDFOptions",
    "TRANSPOSE_CONV": "TransposeConvOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "UNPACK": "UnpackOptions",
    "VAR_HANDLE": "VarHandleOptions",
}

_UNION_TABLES = {v: k for v, k in enumerators("BuiltinOptions").items() if k in TABLES}


class Damaged(Exception):
    """The file can't be read; the message says at which field and why."""


def check_flatbuffer(data: bytes) -> None:
    """Raises Damaged unless everything `TABLES` names can be read from `data` safely."""
    Walk(data).run()


class Walk:
    """One walk over a file; the tests' mutations are built on it too.

    Offsets to tables are unsigned and TABLES has no cycle, so the walk ends; it keeps its own
    stack, and the budgets bound its time whatever the file says.
    """

    def __init__(self, data: bytes):
        self.data = data
        self.tables = MAX_TABLES
        self.items = MAX_ITEMS
        self.stack: list[tuple[str, int, str]] = []

    def run(self) -> None:
        self.push("Model", 0, "Model")
        while self.stack:
            self.table(*self.stack.pop())

    def number(self, format: str, position: int, place: str) -> int:
        """The unsigned or signed integer at a position, after bounds and alignment."""
        size = struct.calcsize(format)
        self.bounds(position, size, place)
        if position % size:
            raise Damaged(f"{place} is misaligned (byte {position})")
        return struct.unpack_from(format, self.data, position)[0]

    def bounds(self, position: int, size: int, place: str) -> None:
        if position < 0 or position + size > len(self.data):
            raise Damaged(
                f"{place} lies outside the file (bytes {position} to {position + size} "
                f"of {len(self.data)})"
            )

    def push(self, table: str, position: int, place: str) -> None:
        """Follows the offset at a position to a table that is still to be checked."""
        self.tables -= 1
        if self.tables < 0:
            raise Damaged(f"it has more than {MAX_TABLES} tables")
        # a table that was seen before is walked again: it costs the reader as much each time
        self.stack.append((table, position + self.number("<I", position, place), place))

    def table(self, table: str, position: int, place: str) -> None:
        vtable = position - self.number("<i", position, place)
        vtable_size = self.number("<H", vtable, f"the vtable of {place}")
        if vtable_size < 4 or vtable_size % 2:
            raise Damaged(f"the vtable of {place} has an impossible size ({vtable_size})")
        self.bounds(vtable, vtable_size, f"the vtable of {place}")
        union = 0
        for field in TABLES[table]:
            entry = 4 + 2 * field.slot
            if entry >= vtable_size:
                break
            offset = self.number("<H", vtable + entry, f"the vtable of {place}")
            if offset and field.type != "-":
                at = f"{place}.{field.name}"
                if field.name == "builtin_options_type":
                    union = self.number("<B", position + offset, at)
                self.field(field, position + offset, at, union)

    def field(self, field: Field, position: int, place: str, union: int) -> None:
        kind = field.type
        if kind in _SIZES or kind in _ENUM_SIZES:
            size = _SIZES.get(kind) or _ENUM_SIZES[kind]
            self.number(f"<{'BHIQ'[size.bit_length() - 1]}", position, place)
        elif kind == "union":
            if union in _UNION_TABLES:
                self.push(_UNION_TABLES[union], position, place)
        elif kind in TABLES:
            self.push(kind, position, place)
        else:
            self.vector(kind, position + self.number("<I", position, place), place)

    def vector(self, kind: str, position: int, place: str) -> None:
        element = "byte" if kind == "string" else kind[1:-1]
        length = self.number("<I", position, place)
        self.bounds(position + 4, length * _SIZES.get(element, 4), place)
        if element in TABLES:
            if length > MAX_TABLES_A_VECTOR:
                raise Damaged(f"{place} has {length} elements, more than {MAX_TABLES_A_VECTOR}")
            for i in range(length):
                self.push(element, position + 4 + 4 * i, f"{place}[{i}]")
        elif element != "ubyte":  # the bytes of buffers are shared, never copied
            if kind == "string" and length > MAX_STRING:
                raise Damaged(f"{place} has {length} bytes, more than {MAX_STRING}")
            self.items -= length
            if self.items < 0:
                raise Damaged(f"its vectors and strings have more than {MAX_ITEMS} elements")
