"""tinyfuse: quantized TensorFlow Lite models to C for Cortex-M, ahead of time."""

__version__ = "0.1.0"
