"""Operator families of pooling, reductions, softmax and normalization."""
