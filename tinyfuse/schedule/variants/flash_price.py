"""Price of a flash byte, by which every strategy decides whether more flash is worth the instructions that it saves.

`Context.flash_price` is that price, in predicted instructions of an inference. Kernels with larger weights (select.py),
rare kernels (drop_rare_kernels.py) and tables of channels ask for it; if --max-flash is too little, it rises
(fit_flash.py).
"""

from __future__ import annotations

import math

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.schedule.kernel_choice.stages import make_stages
from tinyfuse.schedule.variants.fuse_elementwise import instructions_of_region

#: minimum instructions saved per flash byte, tried in turn if --max-flash is exceeded at the usual price (FLASH_PRICES)
RISING_PRICES = (2.0, 8.0, 32.0, 128.0)


def pays_as_tables(table: Op, ops: tuple[Op, ...], context: Context) -> bool:
    """Tells whether a table of channels in place of `ops` saves enough instructions for the flash bytes that it
    adds."""
    saved = instructions_of_region(ops, context) - instructions_of_region((table,), context)
    spent = _constant_bytes((table,), context) - _constant_bytes(ops, context)
    return saved > 0 and (spent <= 0 or saved >= spent * price_of(context))


def price_of(context: Context) -> float:
    """Price of a flash byte; infinite if weights are to be compressed at any cost."""
    return math.inf if context.flash_price is None else context.flash_price


def _constant_bytes(ops: tuple[Op, ...], context: Context) -> int:
    """Bytes of the constants of operators that stand alone."""
    stages = (stage for op in ops for stage in make_stages([op], context))
    return sum(constant.data.nbytes for s in stages for constant in s.kernel.constants(s.op, context))
