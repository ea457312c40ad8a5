"""Serial line by pyserial: a port's name, or a URL of pyserial such as socket://localhost:4444."""

from __future__ import annotations

from typing import Any, Protocol

from tinyfuse.errors import BoardFailed, UsageError
from tinyfuse.toolchain.extras import import_package

#: seconds that one read may wait
_LOOK = 0.05


class SerialLine(Protocol):
    """Bytes in both directions. Methods raise BoardFailed if the line breaks."""

    def write(self, data: bytes) -> None:
        """Sends all bytes."""

    def read(self) -> bytes:
        """Received bytes; empty if none arrive for a moment."""

    def close(self) -> None:
        """Releases the port."""


class SerialPort:
    """Port of this machine, opened exclusively."""

    def __init__(self, serial: Any, name: str, error: type[Exception]) -> None:
        self._serial, self._name, self._error = serial, name, error

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except (self._error, OSError) as error:
            raise BoardFailed(
                f"{self._name} accepts no more bytes: {_reason(error)}; is the board still plugged in?"
            ) from None

    def read(self) -> bytes:
        try:
            # everything that is there, or the first byte to arrive
            return bytes(self._serial.read(max(1, min(self._serial.in_waiting, 1 << 16))))
        except (self._error, OSError) as error:
            raise BoardFailed(
                f"{self._name} cannot be read any more: {_reason(error)}; is the board still plugged in?"
            ) from None

    def close(self) -> None:
        self._serial.close()


def open_port(name: str, baud: int) -> SerialPort:
    """Opens the line of that name. ToolMissing without pyserial; UsageError, with the existing ports, if it cannot be
    opened."""
    serial = import_package("serial")
    try:
        opened = serial.serial_for_url(name, baudrate=baud, timeout=_LOOK, write_timeout=10, exclusive=True)
    except (serial.SerialException, OSError, ValueError, NotImplementedError) as error:
        raise UsageError(f"can't open --port {name}: {_reason(error)}; {_ports()}") from None
    return SerialPort(opened, name, serial.SerialException)


def _ports() -> str:
    """Words that list the machine's ports."""
    comports = import_package("serial.tools.list_ports").comports
    found = [f"{port.device} ({port.description})" for port in comports()]
    return f"there are {', '.join(found)}" if found else "this machine has no serial port"


def _reason(error: Exception) -> str:
    """Message of the operating system or pyserial, on one line."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split())
