"""Rows of our own schema as models, for the writer. (Readers of strange files convert cell by cell: `reader`.)"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from journal import clock

T = TypeVar("T")


def read_row(model: type[T], row: sqlite3.Row) -> T:
    """The model of a row: every column that is named like a field, with times parsed; the other columns are left."""
    columns = _conversions(model, tuple(row.keys()))  # type: ignore[arg-type]  # a class is hashable
    return model(**{name: convert(row[name]) for name, convert in columns})


@cache
def _conversions(model: Any, columns: tuple[str, ...]) -> list[tuple[str, Callable[[Any], Any]]]:
    hints = get_type_hints(model)
    # The type of the field says how SQLite's text and integers are read.
    return [(one.name, _conversion(hints[one.name])) for one in fields(model) if one.name in columns]


def _conversion(hint: Any) -> Callable[[Any], Any]:
    if hint is bool:
        return bool
    return _time if datetime in get_args(hint) else _same


def _time(text: str | None) -> datetime | None:
    return None if text is None else clock.parse(text)


def _same(value: Any) -> Any:
    return value
