"""Whether more flash is worth the instructions that it saves: one price of a byte, for whatever spends it.

`Context.flash_price` is that price, in predicted instructions of an inference. Kernels with larger weights (select.py),
fewer kernels (fewer_kernels.py) and tables of channels ask it; where --max-flash is too little, it rises
(within_flash.py).
"""

from __future__ import annotations

import math

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Context
from tinyfuse.schedule.kernel_choice.stages import make_stages
from tinyfuse.schedule.variants.fuse_elementwise import instructions_of_region

#: the prices that are tried, one after the other, where --max-flash is too little at the usual one (FLASH_PRICES)
RISING = (2.0, 8.0, 32.0, 128.0)


def pays_as_tables(table: Op, ops: tuple[Op, ...], context: Context) -> bool:
    """Return whether tables of channels save so many instructions in the place of `ops` that each byte which they take
    more saves as many as it costs."""
    saved = instructions_of_region(ops, context) - instructions_of_region((table,), context)
    spent = _constant_bytes((table,), context) - _constant_bytes(ops, context)
    return saved > 0 and (spent <= 0 or saved >= spent * price_of(context))


def price_of(context: Context) -> float:
    """Return the price of a byte of flash; infinite where weights are to be compressed whatever that adds."""
    return math.inf if context.flash_price is None else context.flash_price


def _constant_bytes(ops: tuple[Op, ...], context: Context) -> int:
    """Return the bytes of the constants of operators that stand alone."""
    stages = (stage for op in ops for stage in make_stages([op], context))
    return sum(constant.data.nbytes for s in stages for constant in s.kernel.constants(s.op, context))
