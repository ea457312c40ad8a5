"""Exact forms of requantization, from an int32 accumulator to an output element."""
