"""Computes a model's outputs for the user's inputs with the generated code: `tinyfuse run`.

`arrays.py` turns .npy and .npz files into model inputs. api/measuring.py runs the same firmware as `verify`.
"""
