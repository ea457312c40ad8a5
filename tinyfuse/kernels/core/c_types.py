"""Names of dtypes in C."""

from __future__ import annotations

#: dtype -> C type of an element
CTYPE = {
    "bool": "uint8_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
}

#: dtype -> suffix of C function names
SUFFIX = {
    "bool": "bool",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "int32": "s32",
    "uint32": "u32",
    "int64": "s64",
    "float32": "f32",
}
