"""A payload's bytes as they are stored: whole or not at all, and no text made of them on the way."""

from __future__ import annotations

import sqlite3
from typing import Final, Literal

from journal.errors import JournalUnreadable
from journal.reader import foreign
from journal.reader.dialects import STEP_TABLE, Dialect

Name = Literal["arguments", "output", "body"]

# In bytes: as long as an output may be. The body of a request has no limit of its own.
MOST: Final = 64 * 1024 * 1024

_BODY: Final = (
    "SELECT CAST(body AS BLOB) FROM agent_request WHERE task_id = ? AND step_index = ? "
    "ORDER BY key_generation DESC LIMIT 1"
)
_LONG_ONES_APART: Final = (
    f"SELECT CAST(CASE WHEN {{0}}_ref IS NULL THEN {{0}}_json ELSE body END AS BLOB) FROM {STEP_TABLE} "
    "LEFT JOIN agent_body ON sha256 = {0}_ref WHERE task_id = ? AND step_index = ?"
)


def own(connection: sqlite3.Connection, task_id: str, index: int, name: Name) -> bytes | None:
    """One payload of a step of ours, or its frozen request's body; None where there is none."""
    sql = _BODY if name == "body" else _LONG_ONES_APART.format(name)
    return _whole(connection, sql, (task_id, index), name)


def of_others(connection: sqlite3.Connection, dialect: Dialect, task_id: str, index: int, name: Name) -> bytes | None:
    """One payload of a foreign step."""
    column = {"arguments": dialect.arguments_json, "output": dialect.output_json, "body": "NULL"}[name]
    where, key = foreign.place_of(connection, dialect, task_id, index)
    return _whole(connection, f"SELECT CAST({column} AS BLOB) FROM {STEP_TABLE} WHERE {where}", key, name)


def _whole(connection: sqlite3.Connection, sql: str, key: tuple[object, ...], name: Name) -> bytes | None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST)
    try:
        row = connection.execute(sql, key).fetchone()
    except sqlite3.DataError:
        raise JournalUnreadable(
            f"The step's {name}: longer than {MOST:,} bytes, the most that is handed out at once.",
            kind="too_big",
            hint="Copy the journal with VACUUM INTO and read the cell there.",
        ) from None
    value = row[0] if row else None
    return value if isinstance(value, bytes) else None
