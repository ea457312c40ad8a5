"""Kernels of BATCH_MATMUL and of ROWS_MATMUL, its form by rows: general ones (runtime_c/tinyfuse_batch_matmul*.h), and
those of int8 that convert each left vector to int16 once for all columns (runtime_c/tinyfuse_rows_matmul.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import reduced_multiplier, scale_bits
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import constant_operands, row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, ceil_div, product_counts, row_product_counts
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.matmul.matmul_scaling import matmul_factor, matmul_multiplier
from tinyfuse.ops.matmul.rows_matmul import RowsMatMul, matmul_shape


class BatchMatMulWhole(Kernel):
    """BATCH_MATMUL of any operands; either may be constant or stored transposed."""

    constants = of_operator(constant_operands)
    counts = of_calls(product_counts)

    def __init__(self, dtype: str, rounding: str = TWO_ROUNDINGS):
        self.dtype, self.rounding = dtype, rounding
        self.name = f"tinyfuse_batch_matmul{'_half_even' if rounding == FLOAT_HALF_EVEN else ''}_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_batch_matmul.h" if dtype == "int8" else f"tinyfuse_batch_matmul_{SUFFIX[dtype]}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype and rounds_by(op, self.rounding)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (left, right), stored = op.operands, op.attributes_as(BatchMatMul)
        (rows, columns), batches = op.output.shape[-2:], _padded(op.output.shape[:-2])
        left_row, left_depth = (1, rows) if stored.adj_x else (left.shape[-1], 1)
        depth = left.shape[-2 if stored.adj_x else -1]
        right_column, right_depth = (depth, 1) if stored.adj_y else (1, columns)
        fields = {
            "batches": c_array(batches), "rows": rows, "columns": columns, "depth": depth,
            "left_batch": c_array(batch_steps(left.shape)), "left_row": left_row, "left_depth": left_depth,
            "right_batch": c_array(batch_steps(right.shape)),
            "right_column": right_column, "right_depth": right_depth,
        } | scaling_fields(op)  # fmt: skip
        operands = operand_pointers(site)
        return Let("tinyfuse_batch_matmul", "p", fields), Call(self.name, ("&p", *operands, site.output.pointer))


class RowsMatMulRow(BatchMatMulWhole):
    """ROWS_MATMUL; a call computes one row, in which each head is a batch of one row."""

    by_row, whole, rings = True, False, True
    counts = of_calls(row_product_counts)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        e, right = matmul_shape(op), op.attributes_as(RowsMatMul)
        fields = {
            "batches": c_array([1, 1, e.heads]), "rows": 1, "columns": e.columns, "depth": e.depth,
            "left_batch": c_array([0, 0, e.depth]), "left_row": 0, "left_depth": 1,
            "right_batch": c_array([0, 0, right.right_head]),
            "right_column": right.right_column, "right_depth": right.right_depth,
        } | scaling_fields(op)  # fmt: skip
        operands = row_pointer(site.input(0), site.output_row), operand_pointers(site)[1]
        return Let("tinyfuse_batch_matmul", "p", fields), Call(self.name, ("&p", *operands, site.output.pointer))


def operand_pointers(site: CallSite) -> list[str]:
    """C pointers to both operands. All matrices of a ROWS_MATMUL are present, because a ring of them has every row."""
    return [site.constant(f"operand{i}") if access is None else access.pointer for i, access in enumerate(site.inputs)]


def scaling_fields(op: Op) -> dict[str, int]:
    """Fields of zero points and rescaling, with the left shift that TFLM has."""
    points = "left_zero_point", "right_zero_point", "out_zero_point"
    if op.input.dtype == "float32":
        return dict.fromkeys((*points, "multiplier", "shift"), 0)
    fields = {name: tensor.zero_point for name, tensor in zip(points, (*op.operands, op.output), strict=True)}
    if rounds_by(op, FLOAT_HALF_EVEN):
        return fields | {"multiplier": scale_bits(matmul_factor(op)), "shift": 0}
    multiplier, shift = matmul_multiplier(op)
    if op.input.dtype == "int16":  # tinyfuse_requantize_s64 takes the upper 16 bits
        return fields | {"multiplier": int(reduced_multiplier(multiplier)), "shift": 15 - shift}
    return fields | {"multiplier": multiplier, "shift": shift}


def _padded(batches: tuple[int, ...]) -> list[int]:
    """Batch dimensions with leading ones, three in all."""
    return [1] * (3 - len(batches)) + list(batches)


def batch_steps(shape: tuple[int, ...]) -> list[int]:
    """Number of elements from one index to the next, for each of the three batch dimensions; 0 if the operand is
    repeated along it."""
    step = shape[-1] * shape[-2]
    steps: list[int] = []
    for dim in reversed(_padded(shape[:-2])):
        steps.insert(0, step if dim > 1 else 0)
        step *= dim
    return steps


_HEADERS = ("tinyfuse_rows_matmul.h",)
_NAMES = {TWO_ROUNDINGS: "tinyfuse_rows_matmul_s8", FLOAT_HALF_EVEN: "tinyfuse_rows_matmul_half_even_s8"}


class WideRowsMatMul(RowsMatMulRow):
    """ROWS_MATMUL with left vectors converted in scratch, if one dimension of the right matrices is contiguous and
    requantization is exact."""

    def __init__(self, rounding: str = TWO_ROUNDINGS):
        super().__init__("int8", rounding)
        self.name, self.headers = _NAMES[rounding], _HEADERS

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and _right_row(op) is not None and _is_bounded(op, matmul_shape(op).depth)

    def scratch(self, op: Op, context: Context) -> int:
        return _scratch(matmul_shape(op).depth)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _path(_by_dots(op))

    def counts(self, op: Op, by_row: bool) -> Counts:
        e = matmul_shape(op)
        vectors = _vector_counts(e.rows * e.heads, e.columns, e.depth, _by_dots(op))
        return {**super().counts(op, by_row), **vectors}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        e, right_head = matmul_shape(op), op.attributes_as(RowsMatMul).right_head
        left, right = row_pointer(site.input(0), site.output_row), operand_pointers(site)[1]
        fields = {
            "heads": e.heads, "columns": e.columns, "depth": e.depth,
            "right_head": right_head, "right_row": _right_row(op),
        } | _scaling(op)  # fmt: skip
        args = ("&p", left, right, site.output.pointer, int(_by_dots(op)), site.scratch)
        return Let("tinyfuse_rows_matmul", "p", fields), Call(self.name, args)


class WideBatchMatMul(BatchMatMulWhole):
    """BATCH_MATMUL whose left operand is not stored transposed, row by row, as if each row had one head."""

    def __init__(self, rounding: str = TWO_ROUNDINGS):
        super().__init__("int8", rounding)
        self.name, self.headers = _NAMES[rounding], _HEADERS

    def accepts(self, op: Op, context: Context) -> bool:
        plain = super().accepts(op, context) and not op.attributes_as(BatchMatMul).adj_x
        return plain and _is_bounded(op, op.input.shape[-1])

    def scratch(self, op: Op, context: Context) -> int:
        return _scratch(op.input.shape[-1])

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _path(op.attributes_as(BatchMatMul).adj_y)

    def counts(self, op: Op, by_row: bool) -> Counts:
        found, columns, dots = product_counts(op, by_row), op.output.shape[-1], op.attributes_as(BatchMatMul).adj_y
        vectors = _vector_counts(op.output.elements // columns, columns, op.input.shape[-1], dots)
        return {**found, "calls": found["rows"], "matrices": found["rows"], **vectors}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        dots, (rows, columns), depth = op.attributes_as(BatchMatMul).adj_y, op.output.shape[-2:], op.input.shape[-1]
        fields = {
            "heads": 1, "columns": columns, "depth": depth, "right_head": 0, "right_row": depth if dots else columns,
        } | _scaling(op)  # fmt: skip
        left, right = (_Place(pointer) for pointer in operand_pointers(site))
        output, step = _Place(site.output.pointer), rows * columns
        left.move("row", depth)
        output.move("row", columns)
        loops = [("row", rows)]
        batches = op.output.shape[:-2]
        steps = zip(*(batch_steps(tensor.shape) for tensor in op.operands), strict=True)
        leading = list(zip(batches, list(steps)[3 - len(batches) :], strict=True))
        for number, (count, (left_step, right_step)) in reversed(list(enumerate(leading))):
            if count > 1:
                counter = f"batch{number}"
                left.move(counter, left_step)
                right.move(counter, right_step)
                output.move(counter, step)
                loops.append((counter, count))
            step *= count
        body: tuple[Statement, ...] = (
            Call(self.name, ("&p", left.pointer, right.pointer, output.pointer, int(dots), site.scratch)),
        )
        for counter, count in loops:
            body = (Loop(counter, count, body),)
        return Let("tinyfuse_rows_matmul", "p", fields), *body


class _Place:
    """C pointer into an operand, and the steps by which it advances in each loop."""

    def __init__(self, pointer: str):
        self.pointer = pointer

    def move(self, counter: str, step: int) -> None:
        """Adds `step` elements for each iteration of the loop over `counter`."""
        if step:
            self.pointer = f"{self.pointer} + {counter} * {step}"


def _path(dots: bool) -> str:
    """Name of the C's path: "dots" if the terms of a sum are contiguous, else "sums"."""
    return "dots" if dots else "sums"


def _vector_counts(rows: int, columns: int, depth: int, dots: bool) -> Counts:
    """Counts of Helium's loops for `rows` vectors. "eights" are groups of 8 terms of a sum, "blocks" are 16 columns."""
    fours = rows * (columns // 4)
    if dots:
        return {
            "four_eights": fours * (depth // 8),
            "four_tails": fours * (depth % 8 > 0),
            "single_eights": rows * (columns % 4) * ceil_div(depth, 8),
        }
    blocks, fours = rows * (columns // 16), rows * (columns % 16 // 4)
    return {
        "blocks": blocks, "block_macs": blocks * depth, "block_fours": fours, "block_four_macs": fours * depth,
    }  # fmt: skip


def _scratch(depth: int) -> int:
    """Bytes of a vector converted to int16, padded to eight elements."""
    return 2 * (-(-depth // 8) * 8)


def _scaling(op: Op) -> dict[str, int]:
    """Fields of zero points and rescaling, with a right shift."""
    fields = scaling_fields(op)
    return fields | {"shift": -fields["shift"]}


def _by_dots(op: Op) -> bool:
    """Tells whether the terms of a sum are contiguous in the right operand; otherwise the columns are."""
    return op.attributes_as(RowsMatMul).right_depth == 1


def _right_row(op: Op) -> int | None:
    """Number of elements of the right operand from one contiguous row to the next; None if no dimension is
    contiguous."""
    steps = op.attributes_as(RowsMatMul)
    if steps.right_depth == 1:
        return steps.right_column
    return steps.right_depth if steps.right_column == 1 else None


def _is_bounded(op: Op, depth: int) -> bool:
    """Tells whether no sum overflows and, with two roundings, tinyfuse_requantize_bounded is exact
    (kernels/requantize/two_roundings.py), for any operands."""
    left, right = (128 + abs(tensor.zero_point) for tensor in op.operands)
    if rounds_by(op, FLOAT_HALF_EVEN):
        return depth * left * right < 2**31
    multiplier, shift = matmul_multiplier(op)
    term = abs(2 * op.output.zero_point + 1) << max(-shift - 1, 0)
    return multiplier > 0 and -31 <= shift <= -1 and depth * left * right + term < 2**31
