"""A model's outputs for the user's own inputs, from the generated code: `tinyfuse run`.

`arrays.py` reads .npy and .npz files and makes model inputs of them; api/measuring.py runs the firmware
that `verify` runs.
"""
