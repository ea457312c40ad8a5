"""C of operators that move elements, of any dtype."""

from __future__ import annotations

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.ir import Int64s
from tinyfuse.verify.executorch_c.declarations import NHWC, Declarations, Writer, loop, memory_places


def _transpose(c: Declarations, a: Arguments) -> list[str]:
    value, order = a.value("input"), a.integers("dims")
    rank = len(value.sizes)
    dims = [", ".join(map(str, (*sizes, *(1,) * (4 - rank)))) for sizes in (value.sizes, a.out.sizes)]
    orders = c.constant(f"order_{a.call.index}", np.array([*order, *range(rank, 4)]), "uint32_t")
    return [
        f"const cmsis_nn_dims in = {{{dims[0]}}}, out = {{{dims[1]}}};",
        f"const cmsis_nn_transpose_params settings = {{{rank}, {orders}}};",
        c.checked_call("arm_transpose_s8", c.pointer(value), c.pointer(a.out), "&in", "&out", "&settings"),
    ]


def _pad(c: Declarations, a: Arguments) -> list[str]:
    value = a.value("input")
    sizes = value.sizes
    # as ExecuTorch decides
    image = len(sizes) == 4 and (sizes[1] == 1 or sizes[2] * sizes[3] == 1 or value.dim_order == NHWC)
    dims = [sizes[d] for d in NHWC] if image else [*(1,) * (4 - len(sizes)), *sizes]
    texts = [
        f"{name} = {{{', '.join(map(str, numbers))}}}"
        for name, numbers in (("in", dims), ("before", a.integers("pre_pad")), ("behind", a.integers("post_pad")))
    ]
    return [
        f"const cmsis_nn_dims {', '.join(texts)};",
        c.checked_call("arm_pad_s8", c.pointer(value), c.pointer(a.out), str(a.integer("pad_value")), "&in",
                       "&before", "&behind"),
    ]  # fmt: skip


def _gather(c: Declarations, a: Arguments, places: Int64s) -> list[str]:
    """Write a loop that copies an element of the input's memory to each element of the result.

    places  those elements, [sizes of the result]
    """
    flat = places.reshape(a.out.sizes).transpose(a.out.dim_order)
    at = c.index(a, flat, "input")
    return loop(a.out.elements, f"{c.pointer(a.out)}[i] = {c.pointer(a.value('input'))}[{at}];")


def _copy_memory(c: Declarations, a: Arguments) -> list[str]:
    return [f"memmove({c.pointer(a.out)}, {c.pointer(a.value('input'))}, {a.out.bytes});"]


def _change_dim_order(c: Declarations, a: Arguments) -> list[str]:
    return _gather(c, a, memory_places(a.value("input")))


def _permute(c: Declarations, a: Arguments) -> list[str]:
    return _gather(c, a, memory_places(a.value("input")).transpose(a.integers("dims")))


def _slice(c: Declarations, a: Arguments) -> list[str]:
    places, axis = memory_places(a.value("input")), a.integer("dim")
    if a.has("index"):
        return _gather(c, a, places.take([a.integer("index")], axis))
    bounds = slice(a.optional_integer("start"), a.optional_integer("end"), a.integer("step"))
    return _gather(c, a, np.moveaxis(np.moveaxis(places, axis, 0)[bounds], 0, axis))


def _upsample(c: Declarations, a: Arguments) -> list[str]:
    places = memory_places(a.value("input"))
    factors = a.optional_numbers("scale_factors", 2)
    for axis in (2, 3):
        before, behind = places.shape[axis], a.out.sizes[axis]
        step = np.float32(before / behind if factors is None else 1 / factors[axis - 2])
        taken = np.minimum(np.floor(np.arange(behind, dtype=np.float32) * step), before - 1).astype(int)
        places = places.take(taken, axis)
    return _gather(c, a, places)


def _join(c: Declarations, a: Arguments) -> list[str]:
    places, at, lines = np.moveaxis(memory_places(a.out), a.integer("dim"), 0), 0, []
    for number, value in enumerate(a.values("tensors")):
        count = value.sizes[a.integer("dim")]
        logical = np.moveaxis(places[at : at + count], 0, a.integer("dim"))
        to = c.index(a, logical.transpose(value.dim_order), f"{number}")
        lines += loop(value.elements, f"{c.pointer(a.out)}[{to}] = {c.pointer(value)}[i];")
        at += count
    return lines


WRITERS: dict[str, Writer] = {
    "cortex_m::transpose.out": _transpose,
    "cortex_m::pad.out": _pad,
    "aten::permute_copy.out": _permute,
    "aten::view_copy.out": _copy_memory,
    "aten::cat.out": _join,
    "dim_order_ops::_to_dim_order_copy.out": _change_dim_order,
    "dim_order_ops::_clone_dim_order.out": _change_dim_order,
    "aten::unsqueeze_copy.out": _copy_memory,
    "aten::squeeze_copy.dim_out": _copy_memory,
    "aten::squeeze_copy.dims_out": _copy_memory,
    "aten::slice_copy.Tensor_out": _slice,
    "aten::select_copy.int_out": _slice,
    "aten::upsample_nearest2d.vec_out": _upsample,
}
