"""Turns a float model and calibration data into a quantized model, with Google's ai-edge-quantizer.

    twin = float_file("model.tflite", data)          weights that were stored as integers become float32 again
    with Quantizer(twin.data) as quantizer:
        quantizer.calibrate(batches)                  ranges of every tensor
        data = quantizer.quantize(recipe("int8"))     bytes of a .tflite

float_file.py        the float32 model of a float, dynamic-range, weight-only or float16 file.
recipes.py           the quantizer's rules for each operator.
session.py           the quantizer, in a process of its own.
quantizer_worker.py  what that process runs.
islands.py           operators that stay float32, and what they cost.
convert.py           all of these together.
options.py           options of the commands.
"""
