"""Counts the instructions of an inference by operator: `tinyfuse profile`.

`plugin.c` counts, inside QEMU, the executions of every instruction of the second inference. `image.py` reads what the
firmware has at each address, `cycles.py` estimates an instruction's cycles on a real core, `measure.py` sums by group,
and `profile_json.py`, `text.py` and `picture.py` show the result.
"""
