"""C expressions that a group's function passes to its kernels: tensors, rows, scratch, constants."""

from __future__ import annotations

from functools import partial

from tinyfuse.emit.row_expressions import RowExpressions
from tinyfuse.emit.stack import StackWriter
from tinyfuse.emit.staging import staged_pointers
from tinyfuse.errors import InternalFault
from tinyfuse.ir import Tensor
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.kernel import CallSite, Piece, TensorAccess
from tinyfuse.plan import ConstantKey, Group, Plan, Stage, constant_key
from tinyfuse.plan.rows import height


class CallSites:
    """Call sites of a group.

    rows      output tensor -> C variable with the number of its rows made.
    first     tensor in a sliding ring -> C variable with the number of the ring's first row.
    loop      C expressions of the loop over rows.
    stack     the group's stack of rings.
    states    state -> its C name.
    pointers  tensor -> C name of its pointer.
    """

    def __init__(self, module: str, plan: Plan, group: Group, constants: dict[ConstantKey, str]):
        self._module, self._plan, self._group, self._constants = module, plan, group, constants
        self.rows = {t: f"y{s}" for s, stage in enumerate(group.stages) for t in stage.op.outputs}
        self.first = {t: f"first{y[1:]}" for t, y in self.rows.items() if plan.storage[t].slides}
        self.loop = RowExpressions(group, self.rows)
        self.stack = StackWriter(group, self.rows, self.first)
        self.states = {tensor: f"s{n}" for n, tensor in enumerate(plan.states)}
        self.pointers = self._names()
        self._staged = staged_pointers(plan, group.index)

    def call_site(self, stage: Stage, row: str | None, piece: Piece | None) -> CallSite:
        """C expressions for the call of a stage: for row `row`, or for the whole output if that is None."""
        return CallSite(
            inputs=tuple(self._input(tensor) for tensor in stage.op.inputs),
            outputs=tuple(self._output(stage, tensor, row) for tensor in stage.op.outputs),
            row=self._ring_row(stage, row),
            scratch=self._scratch(stage),
            constant=lambda name: self._symbol(stage, name),
            module=self._module,
            piece=piece,
        )

    def pointer(self, tensor: Tensor) -> str:
        """C expression for the address of a tensor."""
        return self.stack.pointer(tensor, CTYPE[tensor.dtype]) if tensor in self.stack else self.pointers[tensor]

    def is_ring(self, tensor: Tensor) -> bool:
        """Tells whether only some rows of the tensor are in memory."""
        return tensor in self.rows and self._plan.storage[tensor].buffer not in self._whole_buffers()

    def _whole_buffers(self) -> set[str]:
        return {self._plan.storage[t].buffer for t in self._group.inputs + self._group.outputs}

    def overwritable_tensor(self, stage: Stage) -> Tensor | None:
        """Tensor in a stack whose first row the stage's output may overwrite; None if there is none."""
        found = (tensor for tensor in stage.op.activations if self.stack.may_overwrite(stage.op.output, tensor))
        return next(found, None)

    def _names(self) -> dict[Tensor, str]:
        """C name of each tensor's pointer, from its place in the file or else its buffer. Names differ within a
        function, even if tensors share a buffer."""
        names: dict[Tensor, str] = {}
        for op in self._group.ops:
            for tensor in op.outputs + op.activations:
                name = f"t{tensor.index}" if tensor.index >= 0 else self._plan.storage[tensor].buffer
                if tensor not in names:
                    names[tensor] = f"{name}_{len(names)}" if name in names.values() else name
        return names

    def _scratch(self, stage: Stage) -> str:
        name = self._group.scratch[self._group.stages.index(stage)]
        return "NULL" if name is None else self.stack.scratch() if self.stack else name

    def _input(self, tensor: Tensor | None) -> TensorAccess | None:
        if tensor is None or tensor.is_constant:
            return None
        if tensor.is_state:
            rows = height(tensor) if len(tensor.shape) == 4 else 1
            return TensorAccess(tensor, self.states[tensor], rows, endless=tensor.cursor is not None)
        pointer, storage = self.pointer(tensor), self._plan.storage[tensor]
        if tensor not in self.first:
            return TensorAccess(tensor, pointer, storage.ring_rows)
        # rows lie in order, so a pointer to where row 0 would be addresses them as in a whole tensor
        ctype, size = CTYPE[tensor.dtype], tensor.bytes // height(tensor)
        whole = f"(const {ctype} *)tinyfuse_rows_start({pointer}, {self.first[tensor]}, {size})"
        return TensorAccess(tensor, f"({whole})", height(tensor))

    def _ring_row(self, stage: Stage, row: str | None) -> str | None:
        """C expression for the row number that a kernel gets; for operators on a ring state it counts from the ring's
        start."""
        cursors = [self.states[t.cursor] for t in stage.op.states if t.cursor is not None]
        return f"({cursors[0]}[0] + {row})" if cursors and row is not None else row

    def _output(self, stage: Stage, tensor: Tensor, row: str | None) -> TensorAccess:
        ring, row_at = self._plan.storage[tensor].ring_rows, partial(self._row_pointer, tensor)
        return TensorAccess(tensor, self._row_pointer(tensor, row), ring, row_at=row_at)

    def _row_pointer(self, tensor: Tensor, row: str | None) -> str:
        """C expression for the address of an output's row (in its first plane), or of its start if `row` is None."""
        pointer, ring = self.pointer(tensor), self._plan.storage[tensor].ring_rows
        if row is None or ring == 1:
            return pointer
        slot = row if ring >= height(tensor) else f"({row} % {ring})"
        if tensor in self.first:
            slot = f"({row} - {self.first[tensor]})"
        return f"{pointer} + {slot} * {tensor.elements // height(tensor) // tensor.planes}"

    def _symbol(self, stage: Stage, name: str) -> str:
        for constant in stage.constants:
            if constant.name == name:
                key = constant_key(constant)
                return self._staged.get(key) or self._constants[key]
        raise InternalFault("the printer of groups", f"{stage.kernel.name} has no constant {name!r}")
