"""Reads ONNX models: quantized with Q/DQ pairs or with QLinear operators, and float32 ones.

protobuf.py decodes the wire format, messages.py the messages of onnx.proto, model.py checks them. graph.py converts
nodes into operators of tinyfuse; the other files have a function per kind of node. arithmetic.py holds what
onnxruntime computes, which says what is right for such a model.
"""
