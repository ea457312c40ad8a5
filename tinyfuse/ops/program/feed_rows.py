"""FEED_ROWS: stands for an image that the caller passes row by row. Only rewrite/feed_rows.py makes it."""

from __future__ import annotations

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.family import OpFamily


class FeedRowsFamily(OpFamily):
    """FEED_ROWS: -> any dtype [1, H, W, C]. Row y is the y-th row that the caller passes to NAME_feed_rows."""

    kind = "FEED_ROWS"
    summary = "the rows of an input, as the caller brings them"
    in_files = False
    source = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        raise AssertionError(f"{op} computes nothing: its caller brings the rows")
