"""Files that commands are given beside a model."""

from __future__ import annotations

from pathlib import Path

from tinyfuse.errors import UsageError


def text_of(name: str, what: str, most: int, told: str = "") -> str:
    """The text of the file `name`, which is to be `what`. UsageError, `told` before the reason, where it can't be read,
    is no text, or has more than `most` bytes."""
    try:
        if Path(name).stat().st_size > most:
            raise UsageError(f"{name}: too large for {what} of tinyfuse")
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"can't read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: {told}it is not UTF-8") from error
