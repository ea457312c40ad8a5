"""Encodes and decodes frames of the protocol, which the first comment of templates/board.c.j2 describes."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

#: version of the protocol
VERSION = 1
#: limits of the payload size that a board may announce, in bytes
LEAST_CHUNK, MOST_CHUNK = 128, 32768

_SYNC = b"TF"
_HEAD = struct.Struct("<2sBBH")
_CRC = struct.Struct("<I")


class Request(IntEnum):
    """Type of a request; its answer's type is larger by ANSWER."""

    HELLO = 1
    WRITE = 2
    RUN = 3
    READ = 4
    GROUPS = 5


ANSWER = 128
#: type of the answer to a request that was not carried out; the payload is a Refusal
FAILED = 255


class Refusal(IntEnum):
    """Reason why a request was not carried out."""

    DAMAGED = 1
    TOO_LONG = 2
    UNKNOWN = 3
    OUTSIDE = 4


@dataclass(frozen=True)
class Frame:
    """A request or an answer; `number` is the request's, and is repeated in its answer."""

    type: int
    number: int
    payload: bytes


def encode_frame(frame: Frame) -> bytes:
    """Bytes of a frame on the line."""
    data = _HEAD.pack(_SYNC, frame.type, frame.number, len(frame.payload)) + frame.payload
    return data + _CRC.pack(zlib.crc32(data[len(_SYNC) :]))


def padding(chunk: int) -> bytes:
    """Bytes that complete any frame for which the board may be waiting, and begin none."""
    return bytes(_HEAD.size + chunk + _CRC.size)


class Decoder:
    """Finds complete frames in received bytes, however these are split, and skips everything else.

    longest  largest payload of a frame, in bytes
    noise    number of bytes outside frames, `sample` the first of them
    damaged  number of frames with a wrong checksum
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self.longest = LEAST_CHUNK
        self.noise, self.damaged, self.sample = 0, 0, b""

    def add(self, data: bytes) -> None:
        """Appends received bytes."""
        self._waiting += data

    def next(self) -> Frame | None:
        """Next complete frame; None if there is none yet."""
        while True:
            start = self._waiting.find(_SYNC)
            # the last byte may begin a frame
            self._drop(max(0, len(self._waiting) - 1) if start < 0 else start)
            if len(self._waiting) < _HEAD.size or start < 0:
                return None
            _, kind, number, length = _HEAD.unpack_from(self._waiting)
            end = _HEAD.size + length
            if length > self.longest:
                self._drop(1)
                continue
            if len(self._waiting) < end + _CRC.size:
                return None
            (crc,) = _CRC.unpack_from(self._waiting, end)
            if crc != zlib.crc32(self._waiting[len(_SYNC) : end]):
                self.damaged += 1
                self._drop(1)  # the length may be wrong, so a frame may begin inside
                continue
            frame = Frame(kind, number, bytes(self._waiting[_HEAD.size : end]))
            del self._waiting[: end + _CRC.size]
            return frame

    def skip_incomplete(self) -> None:
        """Skips the incomplete frame at the front, because another frame may begin inside it."""
        if self._waiting:
            self._drop(1)

    def _drop(self, count: int) -> None:
        self.noise += count
        self.sample = (self.sample + bytes(self._waiting[: min(count, 16)]))[:16]
        del self._waiting[:count]
