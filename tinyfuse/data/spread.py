"""Takes some samples of a data set, spread evenly over it, because data sets are often sorted by class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyfuse.data.samples import Samples
from tinyfuse.ir import Array


def spread_batches(samples: Samples, most: int, size: int = 64) -> Iterator[dict[str, Array]]:
    """Yield at most `most` samples, evenly spread over a data set, in batches of up to `size`: the stored values [n,
    *shape] by input name. The whole data set is read, a batch at a time."""
    total = len(samples)
    wanted = np.unique(np.arange(min(most, total)) * total // min(most, total)) if total else np.zeros(0, np.int64)
    for batch in samples.batches(min(size, samples.batch_size)):
        places = wanted[(wanted >= batch.start) & (wanted < batch.start + batch.count)] - batch.start
        if places.size:
            yield {name: array[places] for name, array in batch.stored.items()}
