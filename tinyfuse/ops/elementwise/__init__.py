"""Operator families that compute each output element from the inputs at the same position."""
