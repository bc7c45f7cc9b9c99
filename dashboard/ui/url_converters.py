"""Task ids and step indexes in URLs: each stored text has one address."""

from __future__ import annotations

import base64
import binascii
import hashlib

_EMPTY = "-"  # base64 never yields a single character, so this one is free
# In bytes, four times what the runtime allows in characters. A longer id can only be damage.
_LONGEST = 2100
_HIGHEST_INDEX = 2**63 - 1


def encode_task_id(task_id: str) -> str:
    """The URL form of a task id: unpadded urlsafe base64 of its bytes as stored.

    An id too long for an address gets one that leads nowhere, so that a list it stands in still opens.
    """
    raw = task_id.encode("utf-8", "surrogateescape")
    if len(raw) > _LONGEST:
        return "-" + hashlib.sha256(raw).hexdigest()  # base64 is never of 65 characters: `decode` refuses it
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=") or _EMPTY


def decode_task_id(value: str) -> str:
    """The task id a URL part stands for. Raises ValueError for anything `encode` would not have written."""
    if value == _EMPTY:
        return ""
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"Not a task's address: {value[:40]!r}") from error
    task_id = raw.decode("utf-8", "surrogateescape")
    if encode_task_id(task_id) != value:
        raise ValueError("Not the one address of its task")
    return task_id


class TaskIdConverter:
    """Path converter `<task:task_id>`; a malformed part is a 404."""

    regex = r"[A-Za-z0-9_-]{1,2800}"

    def to_python(self, value: str) -> str:
        return decode_task_id(value)

    def to_url(self, value: str) -> str:
        return encode_task_id(value)


class StepIndexConverter:
    """Path converter `<step:step_index>`: what SQLite can hold as an integer, nothing else."""

    regex = r"-?[0-9]{1,19}"

    def to_python(self, value: str) -> int:
        index = int(value)
        if not -_HIGHEST_INDEX - 1 <= index <= _HIGHEST_INDEX or str(index) != value:
            raise ValueError("Not a step index")
        return index

    def to_url(self, value: int) -> str:
        return str(value)
