"""Keyset pages: items and an opaque cursor to the next ones."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from journal.errors import UsageError

T = TypeVar("T")
_INTEGER_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list and where the list goes on. `next_cursor` None: this was the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


def make_cursor(*parts: int | str) -> str:
    """An opaque, URL-safe place in a list."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def parse_cursor(text: str, *shape: type) -> tuple[int | str, ...]:
    """The parts that a cursor of this shape holds. Raises UsageError for any other text."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if [type(part) for part in parts] != list(shape):
            raise ValueError(text)
        if any(isinstance(part, int) and not -_INTEGER_LIMIT <= part < _INTEGER_LIMIT for part in parts):
            raise ValueError(text)
        for part in parts:
            str(part).encode()
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise UsageError("This place in the list does not exist.", hint="Begin at its first page.") from None
    return tuple(parts)
