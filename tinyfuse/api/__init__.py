"""The Python API: what the command line does, as functions and results. `tinyfuse` itself names what is public.

Nothing here prints, ends the process or changes global state; only `Module.write` writes. Results are frozen and
can be pickled, so that `compile` and `estimate` run in the workers of a process pool. Every error that a model,
a setting or the machine can cause is a `tinyfuse.TinyfuseError`; its message names settings as the command line does
(`--max-ram` is `max_ram`).
"""
