"""Runs ExecuTorch programs on its Python operators, for oracle_worker.py; so it imports nothing of tinyfuse."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Inference = Callable[[list[np.ndarray]], list[np.ndarray]]

#: ScalarType -> dtype
_TORCH_DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 6: "float32", 11: "bool"}


def program_inference(model: bytes, tensors: tuple[int, ...] = ()) -> Inference:
    """Return the inference of a program by ExecuTorch's Python operators, one call after the other.

    Memory is planned as the program plans it. Operators of release 1.5 that don't compute what their kernels do are
    computed here (_LIKE_KERNELS). Inputs and outputs are arrays of the elements in the order of memory.

    tensors  values to return; empty for the program's outputs
    """
    import torch

    # the module of operators can't be imported before that of passes, which imports it
    importlib.import_module("executorch.backends.cortex_m.passes")
    importlib.import_module("executorch.backends.cortex_m.ops.operators")
    importlib.import_module("executorch.exir.passes.dim_order_ops_registry")
    serialize = importlib.import_module("executorch.exir._serialize._program")
    found = serialize.deserialize_pte_binary(model)
    torch.set_num_threads(1)
    program = _Program(torch, getattr(found, "program", found))
    return lambda inputs: program.infer(inputs, tensors)


class _Program:
    """The forward method of a deserialized program, with its memory. `torch` is the module of that name."""

    def __init__(self, torch: Any, program: Any) -> None:
        self._torch = torch
        # other methods tell quantizations of inputs and outputs
        plans = program.execution_plan
        self._plan = next((plan for plan in plans if plan.name == "forward"), plans[0])
        memory = [torch.zeros(size, dtype=torch.uint8) for size in self._plan.non_const_buffer_sizes]
        #: number of a value -> its tensor
        self._tensors = {
            number: self._tensor(entry.val, memory, program.constant_buffer)
            for number, entry in enumerate(self._plan.values)
            if type(entry.val).__name__ == "Tensor"
        }

    def infer(self, inputs: list[np.ndarray], tensors: tuple[int, ...]) -> list[np.ndarray]:
        for number, array in zip(self._plan.inputs, inputs, strict=True):
            elements = self._torch.from_numpy(np.ascontiguousarray(array).reshape(-1))
            _in_memory_order(self._tensors[number]).copy_(elements)
        for instruction in self._plan.chains[0].instructions:
            self._call(instruction.instr_args)
        return [_in_memory_order(self._tensors[number]).numpy().copy() for number in tensors or self._plan.outputs]

    def _dtype(self, scalar_type: int) -> Any:
        return getattr(self._torch, _TORCH_DTYPES[int(scalar_type)])

    def _tensor(self, value: Any, memory: list[Any], constants: Any) -> Any:
        """Return a view of planned memory, or a constant."""
        dtype = self._dtype(value.scalar_type)
        strides, step = [0] * len(value.sizes), 1
        for axis in reversed(list(value.dim_order)):
            strides[axis] = step
            step *= value.sizes[axis]
        if value.allocation_info is not None:
            place = value.allocation_info.memory_offset_high << 32 | value.allocation_info.memory_offset_low
            storage = memory[value.allocation_info.memory_id].untyped_storage()
            empty = self._torch.empty(0, dtype=dtype)
            return empty.set_(storage, place // dtype.itemsize, list(value.sizes), strides)
        data = bytearray(constants[value.data_buffer_idx].storage)
        flat = self._torch.frombuffer(data, dtype=dtype) if data else self._torch.empty(0, dtype=dtype)
        return flat.as_strided(list(value.sizes), strides)

    def _content(self, number: int) -> Any:
        """Return a value as Python's operators take it; None for other sorts of values."""
        value = self._plan.values[number].val
        kind = type(value).__name__
        if kind == "Tensor":
            return self._tensors[number]
        if kind in ("IntList", "TensorList"):
            return [self._content(item) for item in value.items]
        if kind == "DoubleList":
            return list(value.items)
        fields = {"Int": "int_val", "Bool": "bool_val", "Double": "double_val"}
        return getattr(value, fields[kind]) if kind in fields else None

    def _call(self, instruction: Any) -> None:
        """Compute one call's results."""
        operator = self._plan.operators[instruction.op_index]
        space, name = operator.name.split("::")
        packet = getattr(getattr(self._torch.ops, space), name)
        writing = getattr(packet, operator.overload)
        declared = [a for a in writing._schema.arguments if not a.is_out]
        arguments = self._arguments(declared, instruction.args)
        first = self._content(instruction.args[len(declared)])
        out = first[0] if isinstance(first, list) else first
        if name in _LIKE_KERNELS:
            out.copy_(self._torch.from_numpy(_LIKE_KERNELS[name](out.shape, *arguments)))
            return
        named = {a.name: value for a, value in zip(declared, arguments, strict=True) if a.kwarg_only}
        plain = [value for a, value in zip(declared, arguments, strict=True) if not a.kwarg_only]
        if space == "aten":  # PyTorch's operators allocate results of fixed shapes themselves
            outs = [a.name for a in writing._schema.arguments if a.is_out]
            results = [self._content(number) for number in instruction.args[len(declared) :][: len(outs)]]
            writing(*plain, **named, **dict(zip(outs, results, strict=True)))
            return
        overload = operator.overload.removesuffix("out").removesuffix("_") or "default"
        out.copy_(getattr(packet, overload)(*plain, **named))

    def _arguments(self, declared: list[Any], numbers: list[int]) -> list[Any]:
        """Return a call's arguments, of the values with these numbers, for the operator's declared ones."""
        arguments = [self._content(number) for number in numbers[: len(declared)]]
        return [
            self._dtype(value) if value is not None and (str(a.type) == "ScalarType" or a.name == "dtype") else value
            for a, value in zip(declared, arguments, strict=True)
        ]


def _in_memory_order(tensor: Any) -> Any:
    """Return a flat view of all elements in the order of memory."""
    return tensor.as_strided([tensor.numel()], [1])


def _average(shape: Any, data: Any, kernel: Any, stride: Any, padding: Any, *_unread: Any) -> np.ndarray:
    """Compute arm_avgpool_s8 of int8 [N, C, H, W]: halves are rounded away from zero, and padding is not counted."""
    values = data.numpy().astype(np.int64)
    result = np.zeros(tuple(shape), np.int8)
    for row, column in np.ndindex(*result.shape[2:]):
        top, left = row * stride[0] - padding[0], column * stride[1] - padding[1]
        window = values[:, :, max(top, 0) : top + kernel[0], max(left, 0) : left + kernel[1]]
        total, count = window.sum(axis=(2, 3)), window.shape[2] * window.shape[3]
        result[:, :, row, column] = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return result


def _average_nhwc(shape: Any, data: Any, *window: Any) -> np.ndarray:
    """Compute the average pooling of int8 [N, H, W, C] as arm_avgpool_s8 does."""
    planes = _average([shape[0], shape[3], *shape[1:3]], data.permute(0, 3, 1, 2), *window)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _divided(shape: Any, data: Any, point: int, other: Any, other_point: int, out_point: int,
             scale: float) -> np.ndarray:  # fmt: skip
    """Compute what ExecuTorch's quantized_div computes, int8; halves are rounded away from zero."""
    above, below = (t.numpy().astype(np.float32) - np.float32(z) for t, z in ((data, point), (other, other_point)))
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(below != 0, above / below, np.float32(0))
    products = (quotients * np.float32(scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(products) + 0.5), products) + out_point
    return np.broadcast_to(np.clip(rounded, -128, 127).astype(np.int8), tuple(shape)).copy()


def _mean(shape: Any, data: Any, dims: Any, *_unread: Any) -> np.ndarray:
    """Compute ExecuTorch's portable kernel of mean, float32: a sum in the order of memory, divided by the count."""
    values = data.numpy()
    axes = sorted(dim % values.ndim for dim in dims)
    terms = np.moveaxis(values, axes, range(len(axes))).reshape(
        -1, *(s for i, s in enumerate(values.shape) if i not in axes)
    )
    return np.asarray(_sum(terms) / np.float32(len(terms)), np.float32).reshape(tuple(shape))


def _sum(terms: np.ndarray) -> np.ndarray:
    """Return the sum of float32 [terms, ...], added one after the other."""
    total = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        total = total + term
    return total


def _layer_norm(shape: Any, data: Any, dims: Any, weight: Any, bias: Any, eps: float) -> np.ndarray:
    """Compute ExecuTorch's portable kernel of native_layer_norm, float32, with sums in the order of memory.

    The variance is the mean of squares less the square of the mean.
    """
    count = int(np.prod(dims))
    rows = data.numpy().reshape(-1, count)
    mean, squares = (_sum(terms.T) / np.float32(count) for terms in (rows, rows * rows))
    deviation = np.sqrt(squares - mean * mean + np.float32(eps))
    result = (rows - mean[:, None]) / deviation[:, None]
    result = result if weight is None else result * weight.numpy().reshape(-1)
    result = result if bias is None else result + bias.numpy().reshape(-1)
    return np.asarray(result, np.float32).reshape(tuple(shape))


#: operators whose Python doesn't compute what their kernel does -> a function that does
_LIKE_KERNELS: dict[str, Callable[..., np.ndarray]] = {"quantized_avg_pool2d": _average,
    "quantized_avg_pool2d_nhwc": _average_nhwc, "quantized_div": _divided, "mean": _mean,
    "native_layer_norm": _layer_norm}  # fmt: skip
