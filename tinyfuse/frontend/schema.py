"""The parts of the TensorFlow Lite schema (version 3) that tinyfuse reads, as data.

`flatbuffer_check` walks a file along `TABLES`, and `flatbuffer_table` reads by the same tables, so that nothing is read
that was not checked. Only the names of enumerators come from PyPI's `tflite`. Its accessors are not used, because some
of them hide what a file's fields contain:

- `OperatorCode.BuiltinCode()` gives the deprecated field's value for codes below 127, 0 (ADD) where that
  field is absent;
- `...AsNumpy()` of an absent vector is the number 0, and so is an element of it; its length is that of an empty one;
- `Metadata`, `SignatureDefs` and the unions (`BuiltinOptions()`) follow any offset, whatever its type;
- a `tflite` that is older than a file's schema has no accessor at all (`external_buffer`), and its enumerators
  end early, so that a number without a name must stay a number.

Scalars with a default other than 0 that are read: the dilations, 1.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SIZES = {"bool": 1, "byte": 1, "ubyte": 1, "int": 4, "uint": 4, "float": 4, "long": 8, "ulong": 8, "double": 8}
#: enumeration -> bytes of one value
ENUM_SIZES = {
    "ActivationFunctionType": 1,
    "BuiltinOperator": 4,
    "FullyConnectedOptionsWeightsFormat": 1,
    "MirrorPadMode": 1,
    "Padding": 1,
    "TensorType": 1,
}


@cache
def enumerators(enum: str) -> dict[int, str]:
    """Return the names of a schema enumeration by value.

    Runs only the package's file of that enumeration: `import tflite` runs some two hundred files, which takes longer
    than compiling many models.
    """
    package = importlib.util.find_spec("tflite")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'tflite'", name="tflite")
    described = importlib.util.spec_from_file_location(f"tflite.{enum}", Path(package.origin).with_name(f"{enum}.py"))
    if described is None or described.loader is None:
        raise ImportError(f"tflite has no {enum}", name="tflite")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    names: dict[str, int] = vars(getattr(module, enum))
    return {value: name for name, value in names.items() if not name.startswith("_")}


@dataclass(frozen=True)
class Field:
    """Field of a table, in the schema's spelling; `slot` is its place in the vtable.

    `type` is a scalar, an enumeration, "string", a table, a union, or one of them in brackets for a vector. "-" is a
    field that is never read. `default` is the value of an absent scalar. The type of a union is in the field before it.
    """

    name: str
    type: str
    slot: int
    default: bool | int | float = 0

    @property
    def enum(self) -> str | None:
        return self.type if self.type in ENUM_SIZES else None


def _fields(text: str) -> tuple[Field, ...]:
    found = []
    for slot, part in enumerate(text.split()):
        name, _, kind = part.partition(":")
        kind, _, default = kind.partition("=")
        number = {"bool": bool, "float": float}.get(kind, int)
        found.append(Field(name, kind, slot, number(int(default or 0))))
    return tuple(found)


_CONV = "padding:Padding stride_w:int stride_h:int"
_ACTIVATION = "fused_activation_function:ActivationFunctionType"
_DILATION = "dilation_w_factor:int=1 dilation_h_factor:int=1"

#: Tables of the schema, their fields in its order, up to the last one that is read. Options that no family of
#: tinyfuse/ops reads are left out, or "-", because their errors have no effect.
TABLES: dict[str, tuple[Field, ...]] = {
    name: _fields(text)
    for name, text in {
        "Model": "version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:- buffers:[Buffer] "
        "metadata_buffer:- metadata:[Metadata] signature_defs:-",
        "Metadata": "name:string buffer:uint",
        # written only (quantization/float_file.py)
        "SignatureDef": "inputs:[TensorMap] outputs:[TensorMap] signature_key:string deprecated_tag:- "
        "subgraph_index:uint",
        "TensorMap": "name:string tensor_index:uint",
        # TFLM's own FlatBuffer (frontend/compressed.py)
        "CompressionMetadata": "schema_version:uint=1 subgraphs:[CompressedSubgraph]",
        "CompressedSubgraph": "lut_tensors:[LutTensor]",
        "LutTensor": "tensor:int value_buffer:uint index_bitwidth:ubyte",
        # TensorFlow Lite Support's own FlatBuffer (frontend/labels.py)
        "ModelMetadata": "name:- description:- version:- subgraph_metadata:[SubGraphMetadata]",
        "SubGraphMetadata": "name:- description:- input_tensor_metadata:- output_tensor_metadata:[TensorMetadata]",
        "TensorMetadata": "name:- description:- dimension_names:- content:- process_units:- stats:- "
        "associated_files:[AssociatedFile]",
        "AssociatedFile": "name:string description:- type:byte locale:string",
        "OperatorCode": "deprecated_builtin_code:byte custom_code:string version:int=1 builtin_code:BuiltinOperator",
        "SubGraph": "tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator]",
        "Buffer": "data:[ubyte] offset:ulong size:ulong",
        "Tensor": "shape:[int] type:TensorType buffer:uint name:string "
        "quantization:QuantizationParameters is_variable:bool sparsity:SparsityParameters "
        "shape_signature:[int] has_rank:- variant_tensors:- external_buffer:uint",
        "QuantizationParameters": "min:- max:- scale:[float] zero_point:[long] details_type:ubyte "
        "details:- quantized_dimension:int",
        "SparsityParameters": "",
        "Operator": "opcode_index:uint inputs:[int] outputs:[int] builtin_options_type:ubyte "
        "builtin_options:BuiltinOptions custom_options:[ubyte]",
        # options of operators; a table without fields needs no line
        "AddOptions": _ACTIVATION,
        "BatchMatMulOptions": "adj_x:bool adj_y:bool",
        "CallOnceOptions": "init_subgraph_index:int",
        "ConcatenationOptions": f"axis:int {_ACTIVATION}",
        "Conv2DOptions": f"{_CONV} {_ACTIVATION} {_DILATION} quantized_bias_type:TensorType",
        "CumsumOptions": "exclusive:bool reverse:bool",
        "DepthToSpaceOptions": "block_size:int",
        "DepthwiseConv2DOptions": f"{_CONV} depth_multiplier:int {_ACTIVATION} {_DILATION}",
        "DivOptions": _ACTIVATION,
        "FullyConnectedOptions": f"{_ACTIVATION} weights_format:FullyConnectedOptionsWeightsFormat "
        "keep_num_dims:- asymmetric_quantize_inputs:- quantized_bias_type:TensorType",
        "GatherOptions": "axis:int batch_dims:int",
        "GeluOptions": "approximate:bool",
        "IfOptions": "then_subgraph_index:int else_subgraph_index:int",
        "L2NormOptions": _ACTIVATION,
        "LeakyReluOptions": "alpha:float",
        "MirrorPadOptions": "mode:MirrorPadMode",
        "MulOptions": _ACTIVATION,
        "OneHotOptions": "axis:int",
        "PackOptions": "values_count:int axis:int",
        "Pool2DOptions": f"{_CONV} filter_width:int filter_height:int {_ACTIVATION}",
        "ReducerOptions": "keep_dims:bool",
        "ResizeBilinearOptions": "new_height:- new_width:- align_corners:bool half_pixel_centers:bool",
        "ResizeNearestNeighborOptions": "align_corners:bool half_pixel_centers:bool",
        "ReverseSequenceOptions": "seq_dim:int batch_dim:int",
        "SoftmaxOptions": "beta:float",
        "SpaceToDepthOptions": "block_size:int",
        "SqueezeOptions": "squeeze_dims:[int]",
        "StridedSliceOptions": "begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int "
        "shrink_axis_mask:int offset:bool",
        "SubOptions": _ACTIVATION,
        "SVDFOptions": f"rank:int {_ACTIVATION}",
        "TransposeConvOptions": f"{_CONV} {_ACTIVATION}",
        "UnidirectionalSequenceLSTMOptions": f"{_ACTIVATION} cell_clip:float proj_clip:- time_major:bool",
        "UnpackOptions": "num:int axis:int",
        "VarHandleOptions": "container:string shared_name:string",
        "WhileOptions": "cond_subgraph_index:int body_subgraph_index:int",
        # ExecuTorch's FlatBuffer, schema/program.fbs of its release 1.5 (frontend/executorch)
        "Program": "version:uint execution_plan:[ExecutionPlan] constant_buffer:[ProgramBuffer] "
        "backend_delegate_data:- segments:[DataSegment] constant_segment:SubsegmentOffsets",
        "ExecutionPlan": "name:string container_meta_type:- values:[EValue] inputs:[int] outputs:[int] chains:[Chain] "
        "operators:[KernelName] delegates:[BackendDelegate] non_const_buffer_sizes:[long]",
        "EValue": "val_type:ubyte val:KernelTypes",
        "ProgramTensor": "scalar_type:byte storage_offset:int sizes:[int] dim_order:[ubyte] requires_grad:- "
        "data_buffer_idx:uint allocation_info:AllocationDetails layout:- shape_dynamism:byte "
        "extra_tensor_info:ExtraTensorInfo",
        "AllocationDetails": "memory_id:uint memory_offset_low:uint memory_offset_high:uint",
        "ExtraTensorInfo": "mutable_data_segments_idx:ulong fully_qualified_name:string location:byte",
        "Int": "int_val:long",
        "Bool": "bool_val:bool",
        "Double": "double_val:double",
        "IntList": "items:[long]",
        "DoubleList": "items:[double]",
        "TensorList": "items:[int]",
        "Chain": "inputs:- outputs:- instructions:[Instruction]",
        "Instruction": "instr_args_type:ubyte instr_args:InstructionArguments",
        "KernelCall": "op_index:int args:[int]",
        "DelegateCall": "delegate_index:int",
        "KernelName": "name:string overload:string",
        "BackendDelegate": "id:string",
        "ProgramBuffer": "storage:[ubyte]",
        "DataSegment": "offset:ulong size:ulong",
        "SubsegmentOffsets": "segment_index:uint offsets:[ulong]",
    }.items()
}

#: union -> tables that are read, by their numbers
UNIONS = {
    "BuiltinOptions": {v: k for v, k in enumerators("BuiltinOptions").items() if k in TABLES},
    "KernelTypes": {
        2: "Int", 3: "Bool", 4: "Double", 5: "ProgramTensor", 7: "IntList", 8: "DoubleList", 10: "TensorList",
    },
    "InstructionArguments": {1: "KernelCall", 2: "DelegateCall"},
}  # fmt: skip
