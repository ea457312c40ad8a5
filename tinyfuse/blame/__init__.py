"""Finds the layers that spoil a quantized model's outputs, and why: each layer's arithmetic beside the float model's.

match.py    tensors of the quantized graph and of the float graph that stand for one another.
layers.py   what each layer of the quantized graph computes between such tensors, and the float graph's part for it.
measure.py  errors of layers over samples.
tails.py    what a layer's own error does to the outputs of the float model.
causes.py   reasons and remedies, in words.
blame.py    all of these together.
"""
