"""The Python API: the commands as functions with results. `tinyfuse.__all__` has the public names.

Nothing here prints, ends the process or changes global state; only `Module.write` writes. Results are frozen and can be
pickled, so `compile` and `estimate` can run in the workers of a process pool. Every error that a model, a setting or
the machine can cause is a `tinyfuse.TinyfuseError`; its message names settings as the command line does (`--max-ram` is
`max_ram`).
"""
