"""Kernels of convolutions, depthwise convolutions and fully connected layers, by dtype and core."""
