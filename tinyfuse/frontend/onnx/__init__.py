"""Reads ONNX models that are quantized with Q/DQ pairs or with QLinear operators.

protobuf.py decodes the wire format, messages.py the messages of onnx.proto, model.py checks them. graph.py converts
nodes into operators of tinyfuse; conversions.py lists the kinds of nodes, and other files have a function for each.
functions.py computes functions of one value as onnxruntime does. rewritten.py and integers.py write the copy of a file
that onnxruntime runs as the reference.
"""
