"""Operator families of batch matrix products."""
