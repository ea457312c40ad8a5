"""The messages of onnx.proto that are read: field numbers, names and kinds (ONNX IR version 3 to 13)."""

from __future__ import annotations

from tinyfuse.frontend.onnx.protobuf import Field, Schema

SCHEMA: Schema = {
    "Model": {
        1: Field("ir_version", "int"),
        2: Field("producer_name", "text"),
        3: Field("producer_version", "text"),
        7: Field("graph", "Graph"),
        8: Field("opset_import", "OperatorSet", repeated=True),
        25: Field("functions", "Function", repeated=True),
    },
    "OperatorSet": {1: Field("domain", "text"), 2: Field("version", "int")},
    "Function": {1: Field("name", "text"), 10: Field("domain", "text")},
    "Graph": {
        1: Field("node", "Node", repeated=True),
        2: Field("name", "text"),
        5: Field("initializer", "Tensor", repeated=True),
        11: Field("input", "ValueInfo", repeated=True),
        12: Field("output", "ValueInfo", repeated=True),
        13: Field("value_info", "ValueInfo", repeated=True),
        15: Field("sparse_initializer", "SparseTensor", repeated=True),
    },
    "SparseTensor": {1: Field("values", "Tensor")},
    "Node": {
        1: Field("input", "text", repeated=True),
        2: Field("output", "text", repeated=True),
        3: Field("name", "text"),
        4: Field("op_type", "text"),
        5: Field("attribute", "Attribute", repeated=True),
        7: Field("domain", "text"),
    },
    "Attribute": {
        1: Field("name", "text"),
        2: Field("f", "float"),
        3: Field("i", "int"),
        4: Field("s", "bytes"),
        5: Field("t", "Tensor"),
        7: Field("floats", "float", repeated=True),
        8: Field("ints", "int", repeated=True),
        9: Field("strings", "bytes", repeated=True),
        20: Field("type", "int"),
    },
    "Tensor": {
        1: Field("dims", "int", repeated=True),
        2: Field("data_type", "int"),
        4: Field("float_data", "float", repeated=True),
        5: Field("int32_data", "int", repeated=True),
        7: Field("int64_data", "int", repeated=True),
        8: Field("name", "text"),
        9: Field("raw_data", "bytes"),
        10: Field("double_data", "double", repeated=True),
        11: Field("uint64_data", "int", repeated=True),
        13: Field("external_data", "Entry", repeated=True),
        14: Field("data_location", "int"),
    },
    "Entry": {1: Field("key", "text"), 2: Field("value", "text")},
    "ValueInfo": {1: Field("name", "text"), 2: Field("type", "Type")},
    "Type": {1: Field("tensor_type", "TensorType")},
    "TensorType": {1: Field("elem_type", "int"), 2: Field("shape", "Shape")},
    "Shape": {1: Field("dim", "Dimension", repeated=True)},
    "Dimension": {1: Field("dim_value", "int"), 2: Field("dim_param", "text")},
}

#: TensorProto.DataType -> name
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1",
}  # fmt: skip

#: dtypes whose constants are read, with the field that holds them where they are not raw bytes
FIELDS_OF_DTYPES = {
    "float32": "float_data", "uint8": "int32_data", "int8": "int32_data", "uint16": "int32_data",
    "int16": "int32_data", "int32": "int32_data", "int64": "int64_data", "bool": "int32_data",
    "float64": "double_data", "uint32": "uint64_data", "uint64": "uint64_data",
}  # fmt: skip

#: TensorProto.DataLocation of data in another file
EXTERNAL = 1
