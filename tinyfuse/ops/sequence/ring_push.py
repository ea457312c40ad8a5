"""RING_PUSH: adds rows to a ring, and drops its oldest ones. Only rewrite/ring_window.py makes it."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.core.family import OpFamily


class RingPushFamily(OpFamily):
    """RING_PUSH. Inputs: rows [.., h, W, C], a ring [1, H, W, C] and its cursor. The rows become the ring's last ones,
    and its first h rows are dropped.

    The reference keeps a ring's rows in order, so its cursor stays 0; the C moves the cursor.
    """

    kind = "RING_PUSH"
    summary = "new rows at the end of a ring, in place of the oldest"
    in_files = False
    updates = (1, 2)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        rows, ring, cursor = all_given(inputs)
        kept = ring.reshape(-1)[rows.size :]
        return np.concatenate([kept, rows.reshape(-1)]).reshape(ring.shape), cursor
