"""Accuracy of the generated code over a data set: `tinyfuse evaluate` and `Module.evaluate`.

options.py        options of an evaluation.
streams.py        samples as the calls of a module, and as the inferences of the model in its file.
native.py         the module compiled for this machine, run on files of inputs (native.c).
emulated.py       the module on an emulated core.
interpreters.py   the same model in an interpreter, and the float model.
metrics.py        the metrics, added up batch by batch.
statistics.py     intervals, areas and precisions.
classes.py        confusion matrix, classes, mistakes, thresholds.
result.py         results of an evaluation.
evaluation.py     the loop over all batches.
"""
