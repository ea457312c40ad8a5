"""Variants of a graph that may have cheaper plans."""
