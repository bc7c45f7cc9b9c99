"""Keyset pages of our own tables, as frozen values. A cursor names the last row seen, never a number of rows."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from django.db.models import Model, QuerySet

from journal import clock
from journal.reader.paging import Page

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)
Line = TypeVar("Line", bound="DataclassInstance")


class RowPlace(NamedTuple):
    """A row's place in a list ordered by rank, time and row id; a list without ranks has rank 0 alone."""

    at: datetime
    row_id: int
    rank: int = 0


def cut_page(
    rows: QuerySet[Row],
    limit: int,
    *,
    place: Callable[[Any], RowPlace],
    lines: Callable[[Sequence[Row]], Iterable[Item]],
) -> Page[Item]:
    """The first `limit` of these rows as what `lines` makes of them, with the cursor of the next page."""
    found = list(rows[: limit + 1])
    more = make_cursor(*place(found[limit - 1])) if len(found) > limit else None
    return Page(tuple(lines(found[:limit])), more)


def line_of(kind: type[Line], row: Model, **given: Any) -> Line:
    """The frozen value of a row: a field that is not given has the row's attribute of the same name."""
    names = (field.name for field in fields(kind))
    return kind(**{name: given[name] if name in given else getattr(row, name) for name in names})


def make_cursor(at: datetime, row_id: int, rank: int = 0) -> str:
    """The opaque text that stands for a row's place."""
    return base64.urlsafe_b64encode(json.dumps([clock.text(at), row_id, rank]).encode()).decode().rstrip("=")


def parse_cursor(text: str) -> RowPlace | None:
    """The place a cursor stands for; None for the empty text. Raises ValueError for any other text."""
    if not text:
        return None
    try:
        at, *numbers = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        row_id, rank = numbers
        moment = clock.parse(at)
    except (binascii.Error, ValueError, TypeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"Not a cursor: {text[:40]!r}. Start again from the first page.") from error
    if not all(isinstance(number, int) and 0 <= number < 2**63 for number in numbers):
        raise ValueError(f"Not a cursor: {text[:40]!r}. Start again from the first page.")
    return RowPlace(moment, row_id, rank)
