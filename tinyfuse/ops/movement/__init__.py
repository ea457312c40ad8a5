"""Operator families that move elements and compute none."""
