"""Base of kernels that call another one, for parts of an operator or for an operator in another form."""

from __future__ import annotations

from typing import Any

from tinyfuse.kernels.core.kernel import Kernel

#: every attribute that kernels declare: what plans and generated code ask for besides methods
DECLARED = tuple(Kernel.__annotations__)

#: attributes of a wrapper whose calls compute the whole output, over none of its inputs
CALLED_WHOLE: dict[str, Any] = {
    "by_row": False, "whole": True, "rows_a_call": 1, "rings": False, "in_order": False, "accumulates": False,
    "in_place": (), "columns": 0, "indivisible": False,
}  # fmt: skip


class Wrapper(Kernel):
    """A kernel whose C is that of `kernel`. Attributes that kernels declare are that one's, but for those that are
    given: none is lost, and none will be where kernels declare another one."""

    def __init__(self, kernel: Kernel, **differing: Any):
        unknown = differing.keys() - set(DECLARED)
        if unknown:
            raise TypeError(f"kernels declare no {', '.join(sorted(unknown))}")
        self.kernel = kernel
        for name in DECLARED:
            setattr(self, name, differing.get(name, getattr(kernel, name)))
