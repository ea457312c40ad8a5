"""Finds the layers that spoil a quantized model's outputs, and the reasons, by comparing each layer with the float
model.

match.py    pairs of tensors that correspond in the quantized and the float graph.
layers.py   operators of both graphs between such pairs.
measure.py  errors of layers over samples.
tails.py    effect of a layer's own error on the outputs of the float model.
causes.py   reasons and remedies, in words.
blame.py    all of these together.
"""
