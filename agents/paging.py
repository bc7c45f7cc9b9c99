"""Keyset pages of our own tables: a cursor names the last row seen, never a number of rows."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from journal import clock

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A page of items; `next_cursor` None means this is the last one."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


def cursor(at: datetime, row_id: int) -> str:
    """The opaque text that stands for a row in a list ordered by time and row id."""
    return base64.urlsafe_b64encode(json.dumps([clock.text(at), row_id]).encode()).decode().rstrip("=")


def parse_cursor(text: str) -> tuple[datetime, int] | None:
    """The row a cursor stands for; None for the empty text. Raises ValueError for any other text."""
    if not text:
        return None
    try:
        at, row_id = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        moment = clock.parse(at)
    except (binascii.Error, ValueError, TypeError, UnicodeError) as error:
        raise ValueError(f"Not a cursor: {text[:40]!r}. Start again from the first page.") from error
    if not isinstance(row_id, int) or not 0 <= row_id < 2**63:
        raise ValueError(f"Not a cursor: {text[:40]!r}. Start again from the first page.")
    return moment, row_id
