"""Explains a plan's fusions: `tinyfuse explain`.

`fusions.py` compares every group with its operators alone, and every pair of adjacent groups with the group that they
could be. `advice.py` finds changes to the model that would help. `text.py` prints both.
"""
