"""Sends requests to a board, and checks its answers, which are not trusted."""

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

#: seconds: for the first answer, because opening the port may reset the board; until the greeting is repeated; for any
#: answer, besides the time on the line
GREETING, PATIENCE, REPLY = 10.0, 1.0, 2.0
#: attempts for requests that can be repeated
_TRIES = 3

_HELLO = struct.Struct("<BBHHHHIII32s32s")
_RESULT = struct.Struct("<iII")
_GROUP = struct.Struct("<II")

#: sources of cycle counts, by the number that a board sends
COUNTERS = ("none", "DWT", "SysTick", "the firmware's own")

RESET, FIRST, LAST = 1, 2, 4


@dataclass(frozen=True)
class Hello:
    """Description that a board sends of its module.

    counter   source of its cycle counts, one of COUNTERS
    chunk     bytes of the longest payload
    overhead  cycles of an empty group, already subtracted from each group's
    sha256    digest of the model file
    code      digest of the module's C
    """

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
    """Result of a run: NAME_run's return value, cycles since the inference began, and most cycles of a step; the last
    is None without `--step`."""

    status: int
    cycles: int
    longest_step: int | None


class Device:
    """A board at a serial line. Every method raises BoardFailed if the board answers wrongly or not at all."""

    def __init__(self, line: SerialLine, name: str, baud: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._line, self._name, self._baud, self._clock = line, name, baud, clock
        self._decoder, self._number, self._chunk = Decoder(), 0, LEAST_CHUNK

    def hello(self) -> Hello:
        """Asks for the board's description, repeatedly, because it may still be starting or waiting for a frame's
        rest."""
        deadline, asked = self._clock() + GREETING, 0
        while self._clock() < deadline:
            answer = self._try_request(Request.HELLO, b"", min(PATIENCE, deadline - self._clock()), pad=asked > 0)
            if isinstance(answer, bytes):
                return self._parse_hello(answer)
            asked += 1
        raise BoardFailed(f"{self._name} did not answer within {GREETING:g} s: {self._describe_silence()}")

    def write(self, index: int, data: bytes) -> None:
        """Stores the bytes of an input, or of the next row if the input is fed by rows."""
        step = self._chunk - 6
        for offset in range(0, len(data), step):
            self._ask(Request.WRITE, struct.pack("<HI", index, offset) + data[offset : offset + step], 0)

    def run(self, flags: int, timeout: float) -> Result:
        """Runs an inference, or a row of it, for at most `timeout` seconds."""
        answer = self._ask(Request.RUN, bytes([flags]), _RESULT.size, timeout)
        status, cycles, longest = _RESULT.unpack(answer)
        return Result(status, cycles, longest or None)

    def read(self, index: int, count: int) -> bytes:
        """Reads `count` bytes of output `index` from the board."""
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
                f"{self._name} speaks {spoken} of the protocol, and this tinyfuse version {VERSION}: generate the "
                "firmware's module again with `tinyfuse gen --board`"
            )
        if len(answer) != _HELLO.size:
            raise BoardFailed(
                f"{self._name} answered the first request with {len(answer)} bytes instead of {_HELLO.size}"
            )
        _, counter, chunk, inputs, outputs, groups, arena, state, overhead, sha256, code = _HELLO.unpack(answer)
        if counter >= len(COUNTERS) or not LEAST_CHUNK <= chunk <= MOST_CHUNK:
            raise BoardFailed(f"{self._name} reports an invalid counter {counter} or frame size {chunk}")
        self._chunk = self._decoder.longest = chunk
        return Hello(COUNTERS[counter], chunk, inputs, outputs, groups, arena, state, overhead, sha256.hex(), code)

    def _ask(self, request: Request, payload: bytes, expected: int, timeout: float = 0.0) -> bytes:
        """Payload of the answer, of `expected` bytes.

        A damaged request is repeated, and so is one without an answer unless it is a run, which may have happened.
        """
        # ten bits per byte, doubled
        patience = timeout + REPLY + 20 * (len(payload) + expected + 20) / self._baud
        failure = ""
        for attempt in range(_TRIES):
            answer = self._try_request(request, payload, patience, pad=attempt > 0)
            if isinstance(answer, bytes):
                if len(answer) != expected:
                    what = f"{self._name} answered {request.name.lower()}"
                    raise BoardFailed(f"{what} with {len(answer)} bytes instead of {expected}")
                return answer
            if answer is None and request is Request.RUN:
                raise BoardFailed(
                    f"{self._name} did not finish an inference within {patience:.3g} s: did it crash, for example with "
                    "a stack smaller than NAME_STACK_BYTES? (hint: --timeout allows more time)"
                )
            if answer in (Refusal.UNKNOWN, Refusal.OUTSIDE):
                raise BoardFailed(
                    f"{self._name} refused the request {request.name.lower()}, although its description of the "
                    "module allows it"
                )
            failure = f"no answer within {patience:.3g} s" if answer is None else "the request arrived damaged"
        raise BoardFailed(
            f"{self._name}: {failure}, {_TRIES} times in a row, to {request.name.lower()}: {self._describe_silence()}"
        )

    def _try_request(self, request: Request, payload: bytes, patience: float, pad: bool) -> bytes | Refusal | None:
        """Sends a request once; returns the answer's payload, the refusal, or None if nothing came in time."""
        self._number = (self._number + 1) % 256
        # a byte that begins no frame: QEMU 7.2's semihosting delivers a byte only when the next one has arrived
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
            if self._clock() >= deadline:  # also ends if the board never stops sending
                return None

    def _describe_silence(self) -> str:
        """Sentence that says what arrived instead of an answer."""
        seen = self._decoder
        if seen.damaged:
            return f"{seen.damaged} frames arrived damaged; does the firmware use --baud {self._baud}?"
        if seen.noise:
            return (
                f"{seen.noise} bytes arrived that are no answer, first {seen.sample!r}; does the firmware use --baud "
                f"{self._baud}, and does it print to the same port?"
            )
        return "nothing arrived; does the firmware call NAME_board_serve, and is this its port?"
