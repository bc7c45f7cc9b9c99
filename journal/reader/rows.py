"""Rows as models, by the fields of the model: a field names its column, and its type says how the cell is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from datetime import datetime
from functools import cache, partial
from types import NoneType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from journal.reader.untrusted_row import UntrustedRow

T = TypeVar("T")
# Columns of any length: lists never select them.
PAYLOADS: Final = (
    "prompt_hashes",
    "arguments_json",
    "output_json",
    "error_json",
    "drift_json",
    "input_json",
    "raw_usage",
)
# Fields that readers put together: no table has a column of their name.
_DERIVED: Final = ("odd", "decision", "replayable", "replayable_reason", "previewed", "derived", "steps", "pending")
# The whole numbers that stand for a missing one, where that is not 0.
_NO_NUMBER: Final = {"step_index": -1, "served_through": -1}
# The word that a strange word becomes: a verdict that is no verdict proves nothing.
_NO_WORD: Final = {"verdict": "unknown", "answer": "unknown", "state": "unknown", "kind": "other"}


def fetch_rows(connection: sqlite3.Connection, sql: str, parameters: tuple[object, ...] = ()) -> list[UntrustedRow]:
    """All rows of a query, each cell still raw."""
    cursor = connection.execute(sql, parameters)
    names = [column[0] for column in cursor.description]
    return [UntrustedRow(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def columns_of(model: Any, *more: str, of: str = "") -> str:
    """The columns of a model for a SELECT, without payloads; `of` is the table's alias."""
    names = dict.fromkeys((*(one.name for one in fields(model)), *more))
    return ", ".join(
        f"{of}.{name}" if of else name
        for name in names
        if name not in _DERIVED and (name in more or name not in PAYLOADS)
    )


def read_model(model: type[T], row: UntrustedRow) -> T:
    """The model of a row. A field with a default takes it for NULL; a needed cell that is NULL is odd."""
    values = {name: read(row) for name, read in _readers(model)}  # type: ignore[arg-type]  # a class is hashable
    if any(one.name == "odd" for one in fields(model)):  # type: ignore[arg-type]
        values["odd"] = row.odd
    return model(**values)


@cache
def _readers(model: Any) -> tuple[tuple[str, Callable[[UntrustedRow], Any]], ...]:
    hints = get_type_hints(model)
    read_here = (one for one in fields(model) if one.name in ("steps", "pending") or one.name not in _DERIVED)
    return tuple((one.name, _reader(one, hints[one.name])) for one in read_here)


def _reader(field: Field[Any], hint: Any) -> Callable[[UntrustedRow], Any]:
    parts = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
    words = tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))
    if words:
        read = partial(_read_word, words=words, is_open=str in parts)
    else:
        read = partial(_read_cell, kind=next(kind for kind in (datetime, bool, int, float, str) if kind in parts))
    default = None if field.default is MISSING else field.default
    return partial(read, name=field.name, needed=field.default is MISSING and NoneType not in parts, default=default)


def _read_cell(row: UntrustedRow, *, name: str, kind: type, needed: bool, default: Any) -> Any:
    if needed and kind is int:
        return row.needed_integer(name, _NO_NUMBER.get(name, 0))
    if needed:
        return row.needed_text(name)
    read = {datetime: row.time, bool: row.flag, int: row.integer, float: row.number, str: row.text}[kind]
    found = read(name)
    return default if found is None else found


def _read_word(
    row: UntrustedRow, *, name: str, words: tuple[str, ...], is_open: bool, needed: bool, default: Any
) -> Any:
    found = row.word(name, words) if is_open else row.choice(name, words, _NO_WORD.get(name))
    if found is None and needed:
        return row.needed_text(name, _NO_WORD.get(name, ""))
    return default if found is None else found
