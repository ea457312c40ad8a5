"""Operator families of convolutions, depthwise convolutions and fully connected layers."""
