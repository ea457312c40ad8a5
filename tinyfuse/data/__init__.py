"""Data sets of users, read piece by piece: samples for a model's inputs, and their labels.

`samples.open_samples` gives `Samples`, whose batches fit the model's inputs; `labels.read_labels` gives the labels.
Files are untrusted: nothing is unpickled, sizes are bounded, and every fault is a UsageError of one line. No file is
ever in memory as a whole.

    samples = open_samples(["x.npy"], input_specs(graph.inputs))
    for batch in samples.batches(256):
        batch.stored["x"]      # int8 [256, *shape], as the model's input stores it
        batch.real["x"]        # float32 [256, *shape]

samples.py  data sets of one or several inputs, and their batches.
inputs.py   what an input takes, and how numbers become its stored values.
doubts.py   warnings of value ranges that do not suit an input.
arrays.py   .npy and .npz files.
text.py     .csv files.
media.py    pictures and sounds.
folders.py  folders of these files.
labels.py   labels and names of classes.
"""
