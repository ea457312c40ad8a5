"""Operator families of control flow, subgraphs, computed operands and other processors."""
