"""Our kernels of ADD and MUL (runtime_c/tinyfuse_elementwise.h)."""

from __future__ import annotations

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.rows import row_pointer
from tinyfuse.ops.base import Call, Constant, Context, Expr, Kernel, Let, Site, Statement, View
from tinyfuse.ops.binary import add_multipliers, mul_multiplier
from tinyfuse.ops.convolution import clamp_range


class _BinaryKernel(Kernel):
    headers = ("tinyfuse_elementwise.h",)
    by_row, rings = True, True

    def __init__(self, kind: str, suffix: str):
        self.kind = kind
        self.name = f"tinyfuse_{kind.lower()}{suffix}_s8"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"operand{i}", tensor.data.reshape(-1), "int8_t")
            for i, tensor in enumerate(op.inputs)
            if tensor.is_constant
        )

    def params(self, op: Op) -> Let:
        low, high = clamp_range(op)
        fields = {"a_zero_point": op.inputs[0].zero_point, "b_zero_point": op.inputs[1].zero_point}
        if self.kind == "ADD":
            (a, a_shift), (b, b_shift), out = add_multipliers(op)
            fields |= {"a_multiplier": a, "a_right": -a_shift, "b_multiplier": b, "b_right": -b_shift}
        else:
            fields |= {"a_multiplier": 0, "a_right": 0, "b_multiplier": 0, "b_right": 0}
            out = mul_multiplier(op)
        fields |= {"out_zero_point": op.output.zero_point, "out_multiplier": out[0], "out_shift": out[1]}
        return Let("tinyfuse_binary", "p", fields | {"act_min": low, "act_max": high})


class EqualShapes(_BinaryKernel):
    """Operands of the output's shape, in a flat loop that goes forward: the output may be one of them."""

    in_place = (0, 1)

    def __init__(self, kind: str):
        super().__init__(kind, "")

    def accepts(self, op: Op, context: Context) -> bool:
        return all(tensor.shape == op.output.shape for tensor in op.inputs)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        rows = op.output.shape[1] if site.row is not None else 1
        row_bytes = op.output.elements // rows

        def pointer(i: int, view: View | None) -> Expr:
            if view is not None:
                return view.pointer if site.row is None else row_pointer(view, site.row)
            constant = site.constant(f"operand{i}")
            return constant if site.row is None else f"{constant} + {site.row} * {row_bytes}"

        operands = tuple(pointer(i, view) for i, view in enumerate(site.inputs))
        return self.params(op), Call(self.name, ("&p", *operands, site.outputs[0].pointer, row_bytes))


class BroadcastBinary(_BinaryKernel):
    """Any shapes that broadcast, by strides. By rows, a run-time operand has the output's shape."""

    def __init__(self, kind: str):
        super().__init__(kind, "_broadcast")

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        extents = _padded(op.output)
        strides = [_strides(tensor, op.output) for tensor in op.inputs]
        pointers = []
        for i, view in enumerate(site.inputs):
            pointer = site.constant(f"operand{i}") if view is None else view.pointer
            if site.row is not None and view is not None:
                pointer = row_pointer(view, site.row)
            elif site.row is not None and strides[i][1]:
                pointer = f"{pointer} + {site.row} * {strides[i][1]}"
            pointers.append(pointer)
        if site.row is not None:
            extents[1] = 1
        nest = {
            "extent": _array(extents), "a_stride": _array(strides[0]), "b_stride": _array(strides[1])
        }  # fmt: skip
        return (
            self.params(op),
            Let("tinyfuse_broadcast", "nest", nest),
            Call(self.name, ("&p", "&nest", *pointers, site.outputs[0].pointer)),
        )


def _padded(tensor: Tensor) -> list[int]:
    """The shape with ones in front, rank 4."""
    return [1] * (4 - len(tensor.shape)) + list(tensor.shape)


def _strides(tensor: Tensor, output: Tensor) -> list[int]:
    """Elements to the next index of each of four dimensions; 0 where the operand is repeated."""
    shape, strides, step = _padded(tensor), [0] * 4, 1
    for axis in reversed(range(4)):
        strides[axis] = step if shape[axis] > 1 else 0
        step *= shape[axis]
    return strides


def _array(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
