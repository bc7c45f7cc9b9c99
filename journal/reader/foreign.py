"""Journals of other makers: steps by their dialect, tasks put together from steps.

Such a table promises nothing: keys may be NULL or of another type, and several rows may share one. A row is found again
under what its key is shown as.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

from journal.models import Step, TaskRow
from journal.reader import payloads
from journal.reader.dialects import STEP_TABLE, Dialect
from journal.reader.native import COUNT_CAP
from journal.reader.paging import Page, make_cursor, parse_cursor
from journal.reader.rows import fetch_rows, read_model
from journal.reader.untrusted_row import UntrustedRow, parse_time

# Grouping reads the whole table: beyond this many tasks only the newest by the table's own order are shown.
TASK_LIMIT = 10_000
# Rows whose index is not a number stand before the first step; a table full of them shows this many.
_ODD_LIMIT = 100
# In bytes. Longer ids fit in no address; they are cut and told apart by a hash.
_LONGEST_ID = 1000
_ID_SHOWN = 100
# So many different cells may be shown as one id.
_MOST_ALIKE = 1000
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def _select(dialect: Dialect) -> str:
    return (
        f"SELECT {dialect.task_id} AS task_id, {dialect.step_index} AS step_index, {dialect.tool_name} AS tool_name, "
        f"{dialect.status} AS status, {dialect.idempotency_key} AS idempotency_key, {dialect.args_hash} AS args_hash, "
        f"{dialect.created_at} AS created_at, {dialect.updated_at} AS updated_at FROM {STEP_TABLE}"
    )


def _same_task(connection: sqlite3.Connection, dialect: Dialect, task_id: str) -> tuple[str, tuple[str, ...]]:
    """The condition, and its values, for the rows that are shown under this task id."""
    column = dialect.task_id
    # A task without an id is shown under the empty one.
    exact = f"({column} = ? OR {column} IS NULL)" if task_id == "" else f"{column} = ?"
    if connection.execute(f"SELECT 1 FROM {STEP_TABLE} WHERE {exact} LIMIT 1", (task_id,)).fetchone():
        return exact, (task_id,)
    # An id that is not sound text differs from its shown form, so all ids are searched.
    cell = f"typeof({column}) || hex({column})"
    different = fetch_rows(connection, f"SELECT DISTINCT {column} AS task_id, {cell} AS cell FROM {STEP_TABLE}")
    alike = tuple(row.needed_text("cell") for row in different if _task_id(row) == task_id)[:_MOST_ALIKE]
    return f"{cell} IN ({', '.join('?' * len(alike))})", alike


def _task_id(row: UntrustedRow) -> str:
    text = row.needed_text("task_id")
    raw = text.encode()
    if len(raw) <= _LONGEST_ID:
        return text
    row.mark("task_id")
    return f"{text[:_ID_SHOWN]}… ({hashlib.sha256(raw).hexdigest()[:16]})"


def _at(dialect: Dialect, index: int) -> str:
    """The condition for one index; rows whose index is not a whole number are shown as -1."""
    column = dialect.step_index
    if index != -1:
        return f"{column} = ?"
    return f"({column} = ? OR typeof({column}) NOT IN ('integer', 'real') OR {column} <> CAST({column} AS INTEGER))"


def locate_step(
    connection: sqlite3.Connection, dialect: Dialect, task_id: str, index: int
) -> tuple[str, tuple[object, ...]]:
    """The condition, and its values, for the row that is shown as this step."""
    same, ids = _same_task(connection, dialect, task_id)
    # The first of several in the order of the list.
    return f"{same} AND {_at(dialect, index)} ORDER BY {dialect.step_index} LIMIT 1", (*ids, index)


def _step(row: UntrustedRow, dialect: Dialect) -> Step:
    task_id = _task_id(row)
    built = read_model(Step, row)
    # Another maker's words for a status are not odd, only unknown to us.
    odd = tuple(name for name in built.odd if name != "status" or not built.status)
    return replace(built, task_id=task_id, replayable=dialect.replayable, replayable_reason=dialect.reason, odd=odd)


def list_steps(
    connection: sqlite3.Connection, dialect: Dialect, task_id: str, *, after: int, limit: int, cap: int | None = None
) -> list[Step]:
    """Steps past `after` by index; the first page begins with the rows whose index is negative or not a whole number.

    With their payloads where `cap` says how much of each; a row without a whole key has none.
    """
    (same, ids), index = _same_task(connection, dialect, task_id), dialect.step_index
    found: list[UntrustedRow] = []
    if after < 0:
        odd = f"(typeof({index}) <> 'integer' OR {index} < 0)"
        found = fetch_rows(
            connection, f"{_select(dialect)} WHERE {same} AND {odd} ORDER BY {index} LIMIT ?", (*ids, _ODD_LIMIT)
        )
    found += fetch_rows(
        connection,
        f"{_select(dialect)} WHERE {same} AND typeof({index}) = 'integer' AND {index} > ? ORDER BY {index} LIMIT ?",
        (*ids, max(after, -1), limit),
    )
    listed = [_step(row, dialect) for row in found]
    if cap is None:
        return listed
    return [
        one if "step_index" in one.odd else find_step(connection, dialect, task_id, one.step_index, cap=cap) or one
        for one in listed
    ]


def find_step(connection: sqlite3.Connection, dialect: Dialect, task_id: str, index: int, *, cap: int) -> Step | None:
    """One step with its payload."""
    where, key = locate_step(connection, dialect, task_id, index)
    found = fetch_rows(connection, f"{_select(dialect)} WHERE {where}", key)
    if not found:
        return None
    arguments = _payload(connection, dialect.arguments_json, where, key, cap)
    output = _payload(connection, dialect.output_json, where, key, cap)
    named = (("arguments_json", arguments), ("output_json", output))
    built = _step(found[0], dialect)
    return replace(
        built,
        arguments_json=arguments.text,
        output_json=output.text,
        arguments_bytes=arguments.size,
        output_bytes=output.size,
        odd=(*built.odd, *(name for name, payload in named if payload.odd)),
        previewed=tuple(name for name, payload in named if payload.previewed),
    )


def _payload(
    connection: sqlite3.Connection, column: str, where: str, key: tuple[object, ...], cap: int
) -> payloads.Payload:
    if column == "NULL":
        return payloads.NOTHING
    try:
        row = connection.execute(f"SELECT rowid FROM {STEP_TABLE} WHERE {where}", key).fetchone()
    except sqlite3.OperationalError:  # WITHOUT ROWID
        row = None
    if row is None or not isinstance(row[0], int):
        return payloads.read_plain(connection, column, STEP_TABLE, where, key)
    return payloads.read_cell(connection, STEP_TABLE, column, row[0], cap=cap)


def list_pending(connection: sqlite3.Connection, dialect: Dialect, *, limit: int) -> list[Step]:
    """Pending steps in the table's order."""
    found = fetch_rows(connection, f"{_select(dialect)} WHERE {dialect.status} = 'pending' LIMIT ?", (limit,))
    return [_step(row, dialect) for row in found]


def list_every_step(connection: sqlite3.Connection, dialect: Dialect, *, limit: int) -> list[Step]:
    """Steps by key, up to `limit`."""
    order = f"{dialect.task_id}, {dialect.step_index}"
    return [
        _step(row, dialect) for row in fetch_rows(connection, f"{_select(dialect)} ORDER BY {order} LIMIT ?", (limit,))
    ]


def read_stored_bytes(
    connection: sqlite3.Connection, dialect: Dialect, task_id: str, index: int, name: payloads.Name
) -> bytes | None:
    """All bytes of one payload of a step."""
    column = {"arguments": dialect.arguments_json, "output": dialect.output_json, "body": "NULL"}[name]
    where, key = locate_step(connection, dialect, task_id, index)
    return payloads.read_whole(connection, f"SELECT CAST({column} AS BLOB) FROM {STEP_TABLE} WHERE {where}", key, name)


def derive_tasks(connection: sqlite3.Connection, dialect: Dialect, *, task_id: str | None = None) -> list[TaskRow]:
    """All tasks, or one, put together from their steps; newest first.

    `status` is `running` while a step is pending, `failed` where one failed, else `completed`: the table does
    not say whether another step was to come.
    """
    newest = f"max(coalesce({dialect.updated_at}, {dialect.created_at}))"
    same, ids = ("1", ()) if task_id is None else _same_task(connection, dialect, task_id)
    found = fetch_rows(
        connection,
        f"SELECT {dialect.task_id} AS task_id, count(*) AS steps, sum({dialect.status} = 'pending') AS pending, "
        f"min({dialect.created_at}) AS created_at, {newest} AS updated_at, "
        f"sum({dialect.status} = 'failed') AS failed "
        f"FROM {STEP_TABLE} WHERE {same} GROUP BY {dialect.task_id} ORDER BY {newest} DESC LIMIT ?",
        (*ids, TASK_LIMIT),
    )
    return sorted((_task(row) for row in found), key=_order, reverse=True)


def list_tasks(
    connection: sqlite3.Connection,
    dialect: Dialect,
    *,
    after: str | None,
    limit: int,
    status: str | None,
    text: str | None,
) -> Page[TaskRow]:
    """One page of tasks, newest first."""
    wanted = [
        task
        for task in derive_tasks(connection, dialect)
        if (status is None or task.status == status) and (text is None or text.lower() in task.task_id.lower())
    ]
    if after is not None:
        when, task_id = parse_cursor(after, str, str)
        seen = (parse_time(when) or _EARLIEST, task_id)
        wanted = [task for task in wanted if _order(task) < seen]
    if len(wanted) <= limit:
        return Page(tuple(wanted))
    last = _order(wanted[limit - 1])
    return Page(tuple(wanted[:limit]), make_cursor(last[0].isoformat(), last[1]))


def _order(task: TaskRow) -> tuple[datetime, str]:
    return (task.updated_at or task.created_at or _EARLIEST, task.task_id)


def _task(row: UntrustedRow) -> TaskRow:
    pending_steps = row.integer("pending") or 0
    status = "running" if pending_steps else "failed" if row.integer("failed") else "completed"
    return TaskRow(
        task_id=_task_id(row),
        status=status,
        created_at=row.time("created_at"),
        updated_at=row.time("updated_at"),
        steps=row.integer("steps"),
        pending=pending_steps,
        odd=row.odd,
        derived=True,
    )


def count_rows(connection: sqlite3.Connection, dialect: Dialect) -> dict[str, int]:
    """How many tasks, steps and pending steps there are, capped like those of our own journals."""
    sources = {
        "tasks": f"SELECT DISTINCT {dialect.task_id} FROM {STEP_TABLE}",
        "steps": f"SELECT 1 FROM {STEP_TABLE}",
        "pending": f"SELECT 1 FROM {STEP_TABLE} WHERE {dialect.status} = 'pending'",
    }
    return {
        name: int(connection.execute(f"SELECT count(*) FROM ({source} LIMIT {COUNT_CAP + 1})").fetchone()[0])
        for name, source in sources.items()
    }
