"""Scratch bytes of each C function that takes scratch, from a call's arguments, as its header comment in runtime_c/
defines them. scratch.py looks functions up in SCRATCH."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: a struct's fields by name, and a call's arguments by the names of the C function's parameters
Fields = Mapping[str, Any]
Arguments = Mapping[str, Any]

#: arguments of the functions whose blocks are two pixels of int16 inputs
_TWO_PIXELS = {"block_pixels": 2, "form": "TINYFUSE_WIDE"}


def round_up_4(count: int) -> int:
    """Rounds `count` up to a multiple of 4."""
    return (count + 3) // 4 * 4


def _winograd_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 145 * in_c."""
    return int(145 * p["in_c"])


def _winograd_1d_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 25 * in_c."""
    return int(25 * p["in_c"])


def _input_bytes(form: object) -> int:
    """Bytes of one input in a column: 1 in the BYTES forms, else 2 (tinyfuse_matmul.h)."""
    return 1 if "BYTES" in str(form) else 2


def _packed_conv_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + block_pixels * depth inputs + depth if in_c is no multiple of 4.

    depth is kernel_h * kernel_w * in_c, rounded up to a multiple of 4.
    """
    depth = round_up_4(p["kernel_h"] * p["kernel_w"] * p["in_c"])
    block = args["block_pixels"] * depth * _input_bytes(args["form"])
    return int(p["kernel_h"] * POINTER_BYTES + block + (depth if p["in_c"] % 4 else 0))


def _packed_conv_w16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + 2 * block_pixels * depth + depth if in_c is no multiple of 4.

    depth is kernel_h * kernel_w * in_c, rounded up to a multiple of 4.
    """
    return _packed_conv_bytes(p, {**args, "form": "TINYFUSE_WIDE"})


def _bytes_conv_w16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: those of _packed_conv_bytes + 16 * block_pixels for each 512 of depth, or part of 512.

    depth is kernel_h * kernel_w * in_c, rounded up to a multiple of 4.
    """
    depth = int(round_up_4(p["kernel_h"] * p["kernel_w"] * p["in_c"]))
    return _packed_conv_bytes(p, args) + 16 * int(args["block_pixels"]) * -(-depth // 512)


def _window_bytes(p: Fields, args: Arguments) -> int:
    """Bytes of one int8 window: kernel_h * kernel_w * in_c."""
    return int(p["kernel_h"] * p["kernel_w"] * p["in_c"])


def _int16_weights_conv_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: those of _packed_conv_bytes for two pixels of int16 inputs."""
    return _packed_conv_bytes(p, _TWO_PIXELS)


def _paired_conv_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + 8 * depth (two pixels, 4 bytes an input) + depth if in_c is no multiple of 4.

    depth is kernel_h * kernel_w * in_c, rounded up to a multiple of 4.
    """
    depth = round_up_4(p["kernel_h"] * p["kernel_w"] * p["in_c"])
    return int(p["kernel_h"] * POINTER_BYTES + 8 * depth + (depth if p["in_c"] % 4 else 0))


def _pointwise_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: block * in_c inputs of 1 or 2 bytes."""
    return int(p["block"] * p["in_c"] * _input_bytes(args["form"]))


def _few_channels_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * block * in_c."""
    return int(2 * p["block"] * p["in_c"])


def _dense_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: in_c inputs of 1 or 2 bytes, in_c rounded up to a multiple of 4."""
    return round_up_4(p["in_c"]) * _input_bytes(args["form"])


def _packed_conv_s16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + 2 * depth * (block_pixels, plus 1 if in_c is no multiple of 4 or groups > 1).

    depth is kernel_h * kernel_w * in_c / groups, rounded up to a multiple of 4.
    """
    depth = round_up_4(p["kernel_h"] * p["kernel_w"] * p["in_c"] // p["groups"])
    return int(
        p["kernel_h"] * POINTER_BYTES
        + 2 * depth * (args["block_pixels"] + (1 if p["in_c"] % 4 or p["groups"] > 1 else 0))
    )


def _rows_matmul_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * depth, with depth rounded up to a multiple of 8."""
    return int((p["depth"] + 7) // 8 * 8 * 2)


def _dense_s16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * min(batches, 3) * in_c, with in_c rounded up to a multiple of 4."""
    return int(2 * min(p["batches"], 3) * round_up_4(p["in_c"]))


def _dense_int16_weights_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * in_c, in_c rounded up to a multiple of 8."""
    return int((p["in_c"] + 7) // 8 * 8 * 2)


def _taps_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * ceil(taps / 2) pointers + in_c if any window reaches into the padding."""
    pairs = (p["kernel_h"] * p["kernel_w"] + 1) // 2
    padded = _leaves(p, "h", "top") or _leaves(p, "w", "left")
    return int(2 * pairs * POINTER_BYTES + (p["in_c"] if padded else 0))


def _taps_s16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * ceil(taps / 2) pointers + 2 * in_c if any window reaches into the padding."""
    padded = _leaves(p, "h", "top") or _leaves(p, "w", "left")
    return _taps_bytes(p, args) + (int(p["in_c"]) if padded else 0)


def _taps_f32_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 2 * ceil(taps / 2) pointers + 4 * in_c if any window reaches into the padding."""
    padded = _leaves(p, "h", "top") or _leaves(p, "w", "left")
    return _taps_bytes(p, args) + (3 * int(p["in_c"]) if padded else 0)


def _depthwise_3x3_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: a tinyfuse_quad + 24 per column + in_w * in_c if any window reaches above or below the image.

    There are (out_w - 1) * stride_w + 3 columns.
    """
    columns = (p["out_w"] - 1) * p["stride_w"] + 3
    return int(QUAD_BYTES + 12 * 2 * columns + (p["in_w"] * p["in_c"] if _leaves(p, "h", "top") else 0))


def _stationary_depthwise_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 56 per two columns + in_w * in_c if any window reaches above or below the image.

    There are (out_w - 1) * stride_w + 3 columns.
    """
    columns = (p["out_w"] - 1) * p["stride_w"] + 3
    return int((columns + 1) // 2 * 56 + (p["in_w"] * p["in_c"] if _leaves(p, "h", "top") else 0))


def _paired_depthwise_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: two pointers per word, words rounded up to even + 4 * (words + 1), rounded up to even + in_c if
    any window reaches outside the image.

    There are ((ceil(out_w / 2) - 1) * stride_w + kernel_w) * kernel_h words.
    """
    words = (((p["out_w"] + 1) // 2 - 1) * p["stride_w"] + p["kernel_w"]) * p["kernel_h"]
    outside = _leaves(p, "h", "top") or _leaves(p, "w", "left")
    return 2 * POINTER_BYTES * _even(words) + 4 * _even(words + 1) + (int(p["in_c"]) if outside else 0)


def _depthwise_3x3_s16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 16 per column + 2 * in_w * in_c if any window reaches above or below the image.

    There are (out_w - 1) * stride_w + 3 columns.
    """
    columns = (p["out_w"] - 1) * p["stride_w"] + 3
    return int(16 * columns + (2 * p["in_w"] * p["in_c"] if _leaves(p, "h", "top") else 0))


def _strips_bytes(p: Fields, channels: int, depth: int) -> int:
    """Bytes of one strip of palettized weights: strip * depth looked-up weights, plus 3 * strip with several strips."""
    strip = int(p["strip"])
    return strip * depth + (3 * strip if strip < channels else 0)


def _conv_palettized_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: those of _packed_conv_bytes + strip * depth + 3 * strip if there are several strips.

    depth is kernel_h * kernel_w * in_c, rounded up to a multiple of 4.
    """
    depth = round_up_4(p["kernel_h"] * p["kernel_w"] * p["in_c"])
    return _packed_conv_bytes(p, args) + _strips_bytes(p, p["out_c"], depth)


def _pointwise_palettized_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: those of _pointwise_bytes + strip * in_c + 3 * strip if there are several strips."""
    return _pointwise_bytes(p, args) + _strips_bytes(p, p["out_c"], p["in_c"])


def _dense_palettized_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 4 * depth + depth inputs of 1 or 2 bytes if in_c is no multiple of 4.

    depth is in_c, rounded up to a multiple of 4.
    """
    depth = round_up_4(p["in_c"])
    return 4 * depth + (depth * _input_bytes(args["form"]) if p["in_c"] % 4 else 0)


def _even(taps: int) -> int:
    return taps + taps % 2


def _conv_2x4_mve_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + 2 * kernel_h * kernel_w * in_c."""
    return int(p["kernel_h"] * POINTER_BYTES + 2 * p["kernel_h"] * p["kernel_w"] * p["in_c"])


def _outside(p: Fields, pixels: int) -> tuple[int, bool]:
    """Counts the most of `pixels` adjacent windows with columns in the padding; tells whether any has rows there."""
    left, outputs = p["pad_left"], p["out_w"]
    if isinstance(left, str):  # rows of one column: a call makes an even number of all of them
        left, outputs, p = int(left.partition(" ")[0]), p["out_h"], {**p, "out_h": 1}
    starts = [x * p["stride_w"] - left for x in range(outputs)]
    outside = [not 0 <= start <= p["in_w"] - p["kernel_w"] for start in starts]
    return max(sum(outside[x : x + pixels]) for x in range(0, outputs, pixels)), _leaves(p, "h", "top")


def _conv_4x2_columns_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 6 pointers * kernel_h * ceil(kernel_w / 3) * in_c / 16 + CONV_4X2_MVE_BYTES + 16."""
    iterations = p["kernel_h"] * ((p["kernel_w"] + 2) // 3) * (p["in_c"] // 16)
    return int(6 * iterations * POINTER_BYTES + CONV_4X2_MVE_BYTES + 16)


def _conv_4x2_chunks_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 12 pointers per three pieces + CONV_4X2_MVE_BYTES + kernel rows copied because of padding.

    There are kernel_h * ceil(kernel_w * in_c / 16) pieces. Copied are kernel_h rows for each of four adjacent windows
    with columns in the padding, and one more if any window has rows there.
    """
    run = p["kernel_w"] * p["in_c"]
    iterations = (p["kernel_h"] * ((run + 15) // 16) + 2) // 3
    windows, pads_rows = _outside(p, 4)
    return int(12 * iterations * POINTER_BYTES + CONV_4X2_MVE_BYTES + (windows * p["kernel_h"] + pads_rows) * run)


def _1d_mve_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: a pointer per pixel read, pixels rounded up to 4 + 64 per four outputs, outputs rounded up to 8 +
    192 + in_c if windows reach into the padding."""
    pixels = p["out_w"] - 1 + p["kernel_w"]
    padding = p["in_c"] if p["pad_left"] > 0 or pixels - p["pad_left"] > p["in_w"] else 0
    return int(round_up_4(pixels) * POINTER_BYTES + ((p["out_w"] + 7) // 8 * 2 + 3) * 64 + padding)


def _1d_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 16 * (3 * blocks + taps // 2) + 16 * (4 + 2 * steps) if there are several blocks.

    A block is four outputs, and steps are taps // 2 + 1. Two pixels that blocks read share a record of 16 bytes; each
    block has two more for its outputs, and the last term holds the weights of four channels.
    """
    blocks, steps = (p["out_n"] + 3) // 4, p["taps"] // 2 + 1
    return int((3 * blocks + steps - 1) * 16 + (16 * (4 + 2 * steps) if blocks > 1 else 0))


def _stationary_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 8 * (out_w + 1) for sums, and 16 * (out_w + 2) for each kernel row and each 16 input channels."""
    passes = p["kernel_h"] * ((p["in_c"] + 15) // 16)
    return int((1 + p["out_w"]) * 8 + passes * (p["out_w"] + 2) * 16)


def _columns_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: header + planes * (plane header + 4 * channels per pass * columns that 8 outputs read)."""
    planes, columns = min(p["stride_w"], p["kernel_w"]), min(8, p["out_w"]) + (p["kernel_w"] - 1) // p["stride_w"]
    at_once = {"TINYFUSE_INTERLEAVED_CHANNELS": 16, "TINYFUSE_INTERLEAVED_FEWER": 8}[args["at_once"]]
    return int(INTERLEAVED_BYTES + planes * (INTERLEAVED_PLANE_BYTES + 4 * at_once * columns))


def _conv_mve_s16_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: kernel_h pointers + 4 * kernel_h * kernel_w * in_c (two int16 windows), inputs rounded up to 8."""
    inputs = (p["kernel_h"] * p["kernel_w"] * p["in_c"] + 7) // 8 * 8
    return int(p["kernel_h"] * POINTER_BYTES + 4 * inputs)


def _lstm_rows_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: offset + 4 * units * (inputs + units) weights of `item` bytes."""
    return int(args["offset"]) + 4 * int(p["item"]) * int(p["units"]) * (int(p["inputs"]) + int(p["units"]))


def _detection_bytes(p: Fields, args: Arguments) -> int:
    """Scratch bytes: 20 per box (a tinyfuse_box and a float) + 4 per detection with each_class."""
    return int(20 * p["boxes"] + (4 * p["most"] if p["each_class"] else 0))


def _leaves(p: Fields, axis: str, side: str) -> bool:
    """Tells whether any window of a tinyfuse_conv leaves the image along `axis` ("h" or "w")."""
    last = (p[f"out_{axis}"] - 1) * p[f"stride_{axis}"] + (p[f"kernel_{axis}"] - 1) * p[f"dilation_{axis}"]
    return bool(p[f"pad_{side}"] > 0 or last - p[f"pad_{side}"] >= p[f"in_{axis}"])


#: bytes that scratch counts, on 64-bit hosts too (TINYFUSE_WITH_POINTERS), for: a pointer, a tinyfuse_quad, a
#: tinyfuse_interleaved_job without planes, one of its planes, a tinyfuse_mve_run with a pointer +
#: tinyfuse_conv_4x2_mve_end
POINTER_BYTES, QUAD_BYTES, INTERLEAVED_BYTES, INTERLEAVED_PLANE_BYTES, CONV_4X2_MVE_BYTES = 4, 156, 60, 32, 44

SCRATCH: Mapping[str, Callable[[Fields, Arguments], int]] = {
    "tinyfuse_conv_packed_row_s8": _packed_conv_bytes,
    "tinyfuse_conv_packed_lut_row_s8": _packed_conv_bytes,
    "tinyfuse_conv_row_s4": _packed_conv_bytes,
    "tinyfuse_winograd_rows_s8": _winograd_bytes,
    "tinyfuse_winograd_along_row_s8": _winograd_1d_bytes,
    "tinyfuse_pointwise_s8": _pointwise_bytes,
    "tinyfuse_pointwise_lut_s8": _pointwise_bytes,
    "tinyfuse_pointwise_2x4_buffered_mve_s8": lambda p, args: int(2 * p["depth"]),
    "tinyfuse_pointwise_s4": _pointwise_bytes,
    "tinyfuse_conv_int16_weights_row_s8": _int16_weights_conv_bytes,
    "tinyfuse_conv_paired_row_s8": _paired_conv_bytes,
    "tinyfuse_pointwise_paired_s8": lambda p, args: int(4 * p["block"] * p["in_c"]),
    "tinyfuse_depthwise_paired_row_s8": _paired_depthwise_bytes,
    "tinyfuse_dense_paired_s8": lambda p, args: 4 * round_up_4(p["in_c"]),
    "tinyfuse_pointwise_4x2_s8": _pointwise_bytes,
    "tinyfuse_conv_4x2_row_s8": _packed_conv_bytes,
    "tinyfuse_pointwise_few_channels_s8": _few_channels_bytes,
    "tinyfuse_pointwise_int16_weights_s8": _few_channels_bytes,
    "tinyfuse_dense_wide_s8": _dense_bytes,
    "tinyfuse_dense_five_outputs_s8": lambda p, args: int(p["in_c"] + 4 * -(-p["in_c"] // 44)),
    "tinyfuse_conv_packed_row_s16": _packed_conv_s16_bytes,
    "tinyfuse_dense_s16": _dense_s16_bytes,
    "tinyfuse_dense_int16_weights_s8": _dense_int16_weights_bytes,
    "tinyfuse_dense_s4": _dense_int16_weights_bytes,
    "tinyfuse_rows_matmul_s8": _rows_matmul_bytes,
    "tinyfuse_softmax_s8": lambda p, args: int(4 * p["depth"]),
    "tinyfuse_softmax_s8_s16": lambda p, args: int(4 * p["depth"]),
    "tinyfuse_depthwise_packed_row_s8": _taps_bytes,
    "tinyfuse_depthwise_packed_row_s16": _taps_s16_bytes,
    "tinyfuse_depthwise_packed_row_f32": _taps_f32_bytes,
    "tinyfuse_depthwise_mve_row_s8": _taps_bytes,
    "tinyfuse_depthwise_3x3_row_s8": _depthwise_3x3_bytes,
    "tinyfuse_depthwise_weight_stationary_row_s8": _stationary_depthwise_bytes,
    "tinyfuse_depthwise_3x3_row_s16": _depthwise_3x3_s16_bytes,
    "tinyfuse_depthwise_mve_row_s16": _taps_s16_bytes,
    "tinyfuse_conv_mve_row_s16": _conv_mve_s16_bytes,
    "tinyfuse_conv_2x4_mve_row_s8": _conv_2x4_mve_bytes,
    "tinyfuse_conv_mve_row_s4": _conv_2x4_mve_bytes,
    "tinyfuse_conv_4x2_columns_mve_row_s8": _conv_4x2_columns_bytes,
    "tinyfuse_conv_4x2_chunks_mve_row_s8": _conv_4x2_chunks_bytes,
    "tinyfuse_conv_weight_stationary_mve_row_s8": _stationary_bytes,
    "tinyfuse_depthwise_1d_mve_s8": _1d_mve_bytes,
    "tinyfuse_depthwise_1d_s8": _1d_bytes,
    "tinyfuse_depthwise_interleaved_mve_row_s8": _columns_bytes,
    "tinyfuse_conv_palettized_row_s8": _conv_palettized_bytes,
    "tinyfuse_conv_palettized_rows_s8": _conv_palettized_bytes,
    "tinyfuse_pointwise_palettized_s8": _pointwise_palettized_bytes,
    "tinyfuse_dense_palettized_s8": _dense_palettized_bytes,
    "tinyfuse_conv_packed_row_w16": _packed_conv_w16_bytes,
    "tinyfuse_conv_bytes_row_w16": _bytes_conv_w16_bytes,
    "tinyfuse_conv_dots_row_w16": _window_bytes,
    "tinyfuse_depthwise_row_w16": _taps_bytes,
    "tinyfuse_depthwise_packed_row_w16": _taps_bytes,
    "tinyfuse_detection": _detection_bytes,
    # biases, then weights
    "tinyfuse_lstm_rows": _lstm_rows_bytes,
    "tinyfuse_svdf_offsets": lambda p, args: 4 * int(args["filters"]),
    "tinyfuse_biased_s8": lambda p, args: 12 * int(args["count"]),
    **{f"tinyfuse_biased_s16_s{bits}": lambda p, args: 16 * int(args["count"]) for bits in (16, 32, 64)},
}
