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
    if row.odd and "odd" in model.__dataclass_fields__:  # type: ignore[attr-defined]
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
    name, needed = field.name, field.default is MISSING and NoneType not in parts
    default = None if field.default is MISSING else field.default
    if words and str in parts:
        read = partial(UntrustedRow.word, name=name, words=words)
    elif words:
        read = partial(UntrustedRow.choice, name=name, words=words, other=_NO_WORD.get(name))
    else:
        read = partial(_CELLS[next(kind for kind in _CELLS if kind in parts)], name=name)
    if needed and int in parts:
        return partial(UntrustedRow.needed_integer, name=name, default=_NO_NUMBER.get(name, 0))
    if needed:
        otherwise = partial(UntrustedRow.needed_text, name=name, default=_NO_WORD.get(name, "") if words else "")
        return lambda row: otherwise(row) if (cell := read(row)) is None else cell
    if default is None:
        return read
    return lambda row: default if (cell := read(row)) is None else cell


_CELLS: Final[dict[type, Callable[..., Any]]] = {
    datetime: UntrustedRow.time,
    bool: UntrustedRow.flag,
    int: UntrustedRow.integer,
    float: UntrustedRow.number,
    str: UntrustedRow.text,
}
