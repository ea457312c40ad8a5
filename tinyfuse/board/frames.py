"""Frames of the protocol of templates/board.c.j2, whose first comment describes them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

#: of the protocol
VERSION = 1
#: the payloads that a board may be able to take
LEAST_CHUNK, MOST_CHUNK = 128, 32768

_SYNC = b"TF"
_HEAD = struct.Struct("<2sBBH")
_CRC = struct.Struct("<I")


class Request(IntEnum):
    """What a board can be asked; an answer's type is ANSWER more."""

    HELLO = 1
    WRITE = 2
    RUN = 3
    READ = 4
    GROUPS = 5


ANSWER = 128
#: the type of the answer to what can't be carried out; its payload is a Refusal
FAILED = 255


class Refusal(IntEnum):
    """Why a request was not carried out."""

    DAMAGED = 1
    TOO_LONG = 2
    UNKNOWN = 3
    OUTSIDE = 4


@dataclass(frozen=True)
class Frame:
    """number: of the request, which its answer repeats."""

    type: int
    number: int
    payload: bytes


def encode_frame(frame: Frame) -> bytes:
    """The bytes on the line."""
    data = _HEAD.pack(_SYNC, frame.type, frame.number, len(frame.payload)) + frame.payload
    return data + _CRC.pack(zlib.crc32(data[len(_SYNC) :]))


def padding(chunk: int) -> bytes:
    """What ends a frame that a board still waits for the rest of, whatever it is, and begins none."""
    return bytes(_HEAD.size + chunk + _CRC.size)


class Decoder:
    """Finds whole frames in what comes in, however it is cut; anything else is passed over.

    longest  payload that a frame may have
    noise    bytes that were in no frame, `sample` the first of them
    damaged  frames whose checksum was wrong
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self.longest = LEAST_CHUNK
        self.noise, self.damaged, self.sample = 0, 0, b""

    def add(self, data: bytes) -> None:
        """Takes what came in."""
        self._waiting += data

    def next(self) -> Frame | None:
        """The next whole frame, None where there is none yet."""
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
                self._drop(1)  # its length may be what is wrong: a frame may begin inside
                continue
            frame = Frame(kind, number, bytes(self._waiting[_HEAD.size : end]))
            del self._waiting[: end + _CRC.size]
            return frame

    def skip_incomplete(self) -> None:
        """The frame that would be next does not come whole: one may begin inside it."""
        if self._waiting:
            self._drop(1)

    def _drop(self, count: int) -> None:
        self.noise += count
        self.sample = (self.sample + bytes(self._waiting[: min(count, 16)]))[:16]
        del self._waiting[:count]
