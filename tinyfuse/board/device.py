"""What a board can be asked, and what is made of its answers: they come from outside, and are believed in nothing."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from tinyfuse.board.frames import (
    ANSWER,
    FAILED,
    LEAST_CHUNK,
    MOST_CHUNK,
    VERSION,
    Decoder,
    Frame,
    Refusal,
    Request,
    encode_frame,
    padding,
)
from tinyfuse.board.port import SerialLine
from tinyfuse.errors import BoardFailed

#: seconds that a board may take to answer the first time, as one that is reset by opening its port takes to begin; how
#: long it has before it is asked again; and what another answer may take beside the time on the line
GREETING, PATIENCE, REPLY = 10.0, 1.0, 2.0
#: how often what can be asked again is asked
_TRIES = 3

_HELLO = struct.Struct("<BBHHHHIII32s32s")
_RESULT = struct.Struct("<iII")
_GROUP = struct.Struct("<II")

#: by the number that a board gives: what counts its cycles
COUNTERS = ("none", "DWT", "SysTick", "the firmware's own")

RESET, FIRST, LAST = 1, 2, 4


@dataclass(frozen=True)
class Hello:
    """What a board says of itself. counter: of COUNTERS; chunk: bytes of the longest payload; overhead: cycles of an
    empty group, which no group's have; sha256, code: digests of the model file and of the module's C."""

    counter: str
    chunk: int
    inputs: int
    outputs: int
    groups: int
    arena_bytes: int
    state_bytes: int
    overhead: int
    sha256: str
    code: bytes


@dataclass(frozen=True)
class Result:
    """status: of NAME_run; cycles: since the inference began; longest_step: of them, None without `--step`."""

    status: int
    cycles: int
    longest_step: int | None


class Device:
    """A board behind a line. Every method raises BoardFailed where it answers nothing, or something else."""

    def __init__(self, line: SerialLine, name: str, baud: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._line, self._name, self._baud, self._clock = line, name, baud, clock
        self._decoder, self._number, self._chunk = Decoder(), 0, LEAST_CHUNK

    def hello(self) -> Hello:
        """Asks who is there, again and again: a board may still begin, or wait for the rest of another frame."""
        deadline, asked = self._clock() + GREETING, 0
        while self._clock() < deadline:
            answer = self._try_request(Request.HELLO, b"", min(PATIENCE, deadline - self._clock()), pad=asked > 0)
            if isinstance(answer, bytes):
                return self._parse_hello(answer)
            asked += 1
        raise BoardFailed(f"{self._name} did not answer within {GREETING:g} s: {self._describe_silence()}")

    def write(self, index: int, data: bytes) -> None:
        """Stores an input's bytes, or of one that is brought row by row the next row's."""
        step = self._chunk - 6
        for offset in range(0, len(data), step):
            self._ask(Request.WRITE, struct.pack("<HI", index, offset) + data[offset : offset + step], 0)

    def run(self, flags: int, timeout: float) -> Result:
        """Runs an inference, or a row of it; `timeout`: seconds that it may take."""
        answer = self._ask(Request.RUN, bytes([flags]), _RESULT.size, timeout)
        status, cycles, longest = _RESULT.unpack(answer)
        return Result(status, cycles, longest or None)

    def read(self, index: int, count: int) -> bytes:
        """The bytes of an output."""
        parts = []
        for offset in range(0, count, self._chunk):
            part = min(self._chunk, count - offset)
            parts.append(self._ask(Request.READ, struct.pack("<HIH", index, offset, part), part))
        return b"".join(parts)

    def groups(self, count: int) -> list[tuple[int, int]]:
        """(cycles, calls) of each group in the last inference."""
        step, found = self._chunk // _GROUP.size, bytearray()
        for first in range(0, count, step):
            part = min(step, count - first)
            found += self._ask(Request.GROUPS, struct.pack("<HH", first, part), _GROUP.size * part)
        return [(cycles, calls) for cycles, calls in _GROUP.iter_unpack(found)]

    def _parse_hello(self, answer: bytes) -> Hello:
        if answer[:1] != bytes([VERSION]):
            spoken = f"version {answer[0]}" if answer else "no version"
            raise BoardFailed(
                f"{self._name} speaks {spoken} of the protocol, this tinyfuse version {VERSION}: generate the "
                "firmware's module anew with `tinyfuse gen --board`"
            )
        if len(answer) != _HELLO.size:
            raise BoardFailed(f"{self._name} says of itself {len(answer)} bytes, where {_HELLO.size} belong")
        _, counter, chunk, inputs, outputs, groups, arena, state, overhead, sha256, code = _HELLO.unpack(answer)
        if counter >= len(COUNTERS) or not LEAST_CHUNK <= chunk <= MOST_CHUNK:
            raise BoardFailed(f"{self._name} has a counter {counter} and frames of {chunk} bytes: there are none such")
        self._chunk = self._decoder.longest = chunk
        return Hello(COUNTERS[counter], chunk, inputs, outputs, groups, arena, state, overhead, sha256.hex(), code)

    def _ask(self, request: Request, payload: bytes, expected: int, timeout: float = 0.0) -> bytes:
        """The answer's payload, of `expected` bytes. What was damaged on its way is asked again, and so is what got no
        answer, but a run: nobody knows whether it ran."""
        # ten bits a byte, and twice that
        patience = timeout + REPLY + 20 * (len(payload) + expected + 20) / self._baud
        failure = ""
        for attempt in range(_TRIES):
            answer = self._try_request(request, payload, patience, pad=attempt > 0)
            if isinstance(answer, bytes):
                if len(answer) != expected:
                    what = f"{self._name} answered {request.name.lower()}"
                    raise BoardFailed(f"{what} with {len(answer)} bytes, where {expected} belong")
                return answer
            if answer is None and request is Request.RUN:
                raise BoardFailed(
                    f"{self._name} ended no inference within {patience:.3g} s: does it crash, say for a stack of less "
                    "than NAME_STACK_BYTES? (hint: --timeout allows more)"
                )
            if answer in (Refusal.UNKNOWN, Refusal.OUTSIDE):
                raise BoardFailed(f"{self._name} refused {request.name.lower()}: the firmware is not what it says")
            failure = f"no answer within {patience:.3g} s" if answer is None else "what was sent arrived damaged"
        raise BoardFailed(
            f"{self._name}: {failure}, {_TRIES} times in a row, to {request.name.lower()}: {self._describe_silence()}"
        )

    def _try_request(self, request: Request, payload: bytes, patience: float, pad: bool) -> bytes | Refusal | None:
        """One try: the payload of the answer, why there is none, or None where nothing came in time."""
        self._number = (self._number + 1) % 256
        # the byte behind it is none of a frame: QEMU 7.2's semihosting hands a byte over when the next one is there
        frame = encode_frame(Frame(request, self._number, payload)) + b"\0"
        self._line.write(padding(self._chunk) + frame if pad else frame)
        deadline = self._clock() + patience
        while True:
            found = self._decoder.next()
            if found is None:
                if self._clock() >= deadline:
                    self._decoder.skip_incomplete()
                    return None
                self._decoder.add(self._line.read())
            elif found.type == FAILED and request is not Request.HELLO:
                if found.payload[:1] and found.payload[0] in (Refusal.DAMAGED, Refusal.TOO_LONG):
                    return Refusal.DAMAGED
                if found.number == self._number:
                    return Refusal.OUTSIDE
            elif found.type == request + ANSWER and found.number == self._number:
                return found.payload
            if self._clock() >= deadline:  # a board that never ceases to talk
                return None

    def _describe_silence(self) -> str:
        """What came in place of an answer."""
        seen = self._decoder
        if seen.damaged:
            return f"{seen.damaged} frames came damaged; is --baud {self._baud} the firmware's?"
        if seen.noise:
            return (
                f"{seen.noise} bytes came that are no answer, first {seen.sample!r}; is --baud {self._baud} the "
                "firmware's, and does it print to the same port?"
            )
        return "nothing came at all; does the firmware call NAME_board_serve, and is this its port?"
