"""Where the instructions of an inference go: `tinyfuse profile`.

`plugin.c` counts, inside QEMU, what every instruction of the second inference did; `image.py` says
what the firmware has at each address, `cycles.py` what an instruction costs on a real core;
`measure.py` adds it all up by group, `data.py`, `text.py` and `picture.py` show it.
"""
