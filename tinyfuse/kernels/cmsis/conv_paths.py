"""Predicts which path of arm_convolve_wrapper_s8 a call takes, the scratch that it needs, and where its result is
wrong.

The rules follow the sources of CMSIS-NN 4.0, 4.1, 5.0, 6.0 and 7.0. tests/emulated/test_cmsis_scratch.py compares the
scratch with the library's own getters, tests/emulated/test_cmsis_nn.py the results with the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import MAX_DIM, rows_of_calls
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry

#: mark of a tap that reads the zero point instead of an input column
_PADDING = -1


class ConvCall(NamedTuple):
    """The dimensions that one call passes: an image, or one output row with its window as the image.

    kernel_c is a filter's channels: in_c / groups, or 1 for a depthwise convolution.
    """

    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    kernel_h: int
    kernel_w: int
    kernel_c: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    pad_h: int
    pad_w: int

    @property
    def undilated(self) -> bool:
        return self.dilation_h == self.dilation_w == 1

    @property
    def fits(self) -> bool:
        """True if every image dimension fits into CMSIS-NN's integer variables."""
        return max(self.in_h, self.in_w, self.in_c, self.out_h, self.out_w, self.out_c) <= MAX_DIM

    @property
    def filter_fits(self) -> bool:
        """True if the number of weights of one filter fits into CMSIS-NN's integer variables."""
        return self.kernel_h * self.kernel_w * self.kernel_c <= 2 * MAX_DIM


@lru_cache(maxsize=512)
def whole_call(op: Op) -> ConvCall:
    """Return the call for the whole output of a CONV_2D or DEPTHWISE_CONV_2D."""
    g = geometry(op)
    return ConvCall(
        g.in_h, g.in_w, g.in_c, g.out_h, g.out_w, g.out_c, g.kernel_h, g.kernel_w,
        op.operand(1).shape[3] if not FAMILIES[op.kind].depthwise else 1, g.stride_h, g.stride_w,
        # one tap has no dilation; saying so lets CMSIS-NN take its fast paths
        g.dilation_h if g.kernel_h > 1 else 1, g.dilation_w if g.kernel_w > 1 else 1,
        g.pad_top, g.pad_left,
    )  # fmt: skip


@lru_cache(maxsize=2048)
def all_calls(op: Op, at_once: int = 1) -> tuple[ConvCall, ...]:
    """Return the call for the whole output, and every different call for `at_once` rows."""
    whole = whole_call(op)
    calls = sorted(rows_of_calls(geometry(op).window, whole.out_h, whole.in_h, at_once))
    return whole, *(_rows_call(whole, at_once, *call) for call in calls)


@lru_cache(maxsize=2048)
def all_exact(exact: Callable[[ConvCall, Context], bool], op: Op, at_once: int, context: Context) -> bool:
    """Return whether `exact` holds for all calls that compute the operator, whole or `at_once` rows at a time."""
    return all(exact(call, context) for call in all_calls(op, at_once))


@lru_cache(maxsize=2048)
def middle_call(op: Op, by_row: bool, at_once: int = 1) -> ConvCall:
    """Return the call for the whole output, or by rows the call for rows in the middle of the image."""
    whole, window = whole_call(op), geometry(op).window
    rows = window.kernel + (at_once - 1) * window.stride if at_once > 1 else whole.kernel_h
    return _rows_call(whole, at_once, rows, 0, at_once) if by_row else whole


def _rows_call(whole: ConvCall, at_once: int, rows: int, pad_top: int, out_rows: int) -> ConvCall:
    """Return the call for rows; with one row its vertical stride does not matter, and 1 allows the fast path."""
    stride = 1 if at_once == 1 else whole.stride_h
    return whole._replace(in_h=rows, out_h=out_rows, stride_h=stride, pad_h=pad_top)


def convolve_path(call: ConvCall, context: Context) -> str:
    """Return the path that a call takes: "1x1 fast", "1x1", "1xn" or "general"."""
    version = context.cmsis_nn
    whole_filters = call.in_c == call.kernel_c or version < (6, 0)
    pointwise = (call.pad_h, call.pad_w, call.kernel_h, call.kernel_w) == (0, 0, 1, 1)
    if pointwise and call.undilated and whole_filters:
        return "1x1 fast" if call.stride_h == call.stride_w == 1 else "1x1"
    if call.in_h == 1 and call.kernel_h == 1 and call.dilation_w == 1 and whole_filters:
        if version == (4, 0):
            return "1xn" if call.out_w % 4 == 0 else "general"
        return "1xn" if call.stride_w * call.in_c % 4 == 0 else "general"
    return "general"


def convolve_scratch(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_convolve_wrapper_s8 must have."""
    path, version = convolve_path(call, context), context.cmsis_nn
    if path.startswith("1x1"):
        return 0
    if path == "1xn" and context.target.mve:
        if version < (6, 0):
            return 0
        left, middle, right = _one_row_parts(call)
        if left + middle + right == call.out_w:
            pad = call.pad_w
            pad_right = right if _odd_padding(call) else pad
            return call.in_c * max(call.kernel_w + pad, call.kernel_w - 1 + pad_right)
    return general_scratch(call, context)


def general_scratch(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_convolve_s8 must have: im2col of a block of pixels."""
    columns, version = call.in_c * call.kernel_h * call.kernel_w, context.cmsis_nn
    if not context.target.mve:
        return 4 * (round_up(columns, 4) if version >= (5, 0) else columns)
    return 4 * round_up(columns, 16 if version >= (6, 0) else 8)


def convolve_exact(call: ConvCall, context: Context) -> bool:
    """Return whether CMSIS-NN's result equals that of TensorFlow Lite Micro's reference."""
    if call.kernel_c != call.in_c and context.cmsis_nn < (6, 0):
        return False  # versions before 6.0 do not support groups
    if not (call.fits and call.filter_fits):
        return False
    path = convolve_path(call, context)
    if path == "1x1 fast":  # takes the output's dimensions from the input's
        return (call.in_h, call.in_w) == (call.out_h, call.out_w)
    if path == "1x1":  # reads past the input where there is padding below or at the right
        inside_h = (call.out_h - 1) * call.stride_h < call.in_h
        return inside_h and (call.out_w - 1) * call.stride_w < call.in_w
    if path == "1xn" and context.target.mve:  # computes a single output row, and assumes no padding above it
        return (call.out_h, call.pad_h) == (1, 0) and _one_row_exact(call, context.cmsis_nn)
    return True


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple of `multiple` that is at least `value`."""
    return -(-value // multiple) * multiple


# --- the path for one row on MVE -------------------------------------------------------------


def _odd_padding(call: ConvCall) -> int:
    """Return the remainder of the total padding by 2 as C computes it, with the padding's sign."""
    total = (call.out_w - 1) * call.stride_w + call.kernel_w - call.in_w
    return total % 2 if total >= 0 else -(-total % 2)


def _one_row_parts(call: ConvCall) -> tuple[int, int, int]:
    """Return the numbers of outputs in the three parts into which CMSIS-NN 4.1 and later divide a row: with padding on
    the left, without padding, with padding on the right."""
    odd, pad, stride = _odd_padding(call), call.pad_w, call.stride_w
    # C's division truncates; a dividend is below 0 only where the stride is 1
    right = max(1, (pad + odd + stride - 1) // stride) if pad + odd != 0 else 0
    left = max(1, (pad + stride - 1) // stride) if pad != 0 else 0
    return left, max(call.out_w - left - right, 0), right


def _one_row_exact(call: ConvCall, version: tuple[int, int]) -> bool:
    """Return whether every output of the one-row path reads the columns of its window."""
    true = [_true_taps(call, x) for x in range(call.out_w)]
    if version == (4, 0):
        # four outputs at a time; each leaves out the taps before the first and after the last column
        return all(any(tap != _PADDING for tap in taps) for taps in true)
    total = (call.out_w - 1) * call.stride_w + call.kernel_w - call.in_w
    if 2 * call.pad_w + _odd_padding(call) != total:
        return False  # CMSIS-NN returns an error
    left, middle, right = _one_row_parts(call)
    if left + middle + right != call.out_w:
        return version >= (6, 0)  # takes the general path; earlier versions return an error
    if version < (6, 0):
        return _skipped_taps_exact(true, left, middle)
    return _copied_taps_exact(call, true, left, middle)


def _true_taps(call: ConvCall, x: int) -> list[int]:
    start = x * call.stride_w - call.pad_w
    taps = range(start, start + call.kernel_w)
    return [tap if 0 <= tap < call.in_w else _PADDING for tap in taps]


def _skipped_taps_exact(true: list[list[int]], left: int, middle: int) -> bool:
    """Return whether outputs are exact in CMSIS-NN 4.1 and 5.0, which skip taps.

    They skip taps before the first column for `left` outputs, none for `middle`, and taps after the last column for
    the rest. `true` are the taps of each output.
    """
    begin, inner, end = true[:left], true[left : left + middle], true[left + middle :]
    padded_left = all(taps[0] == _PADDING != taps[-1] for taps in begin)
    return padded_left and all(_PADDING not in taps for taps in inner) and all(taps[0] != _PADDING for taps in end)


def _copied_taps_exact(call: ConvCall, true: list[list[int]], left: int, middle: int) -> bool:
    """Return whether outputs are exact in CMSIS-NN 6.0 and 7.0, which read padded copies of both ends of a row."""
    k, pad, stride = call.kernel_w, call.pad_w, call.stride_w
    right = call.out_w - left - middle
    start = stride * (left + middle) - pad
    pad_right = right if _odd_padding(call) else pad
    begin = [_PADDING] * pad + list(range(k))
    end = list(range(start, start + k - 1)) + [_PADDING] * pad_right
    taps = [begin[stride * i : stride * i + k] for i in range(left)]
    taps += [list(range(x * stride - pad, x * stride - pad + k)) for x in range(left, left + middle)]
    taps += [end[stride * i : stride * i + k] for i in range(right)]
    return taps == true
