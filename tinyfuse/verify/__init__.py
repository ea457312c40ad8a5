"""Verifies that generated code computes what TensorFlow Lite Micro computes: oracle, emulation, comparison."""
