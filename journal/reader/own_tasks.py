"""Tasks of our own journals, the processes that ran them, and how much there is of everything."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime
from typing import Final

from journal.models import Boot, Run, TaskRow
from journal.reader import payloads, rows
from journal.reader.dialects import STEP_TABLE
from journal.reader.pages import Page, cursor, place

# A count past this is shown as "10,000+": counting further would read the whole table.
COUNT_CAP: Final = 10_000
# The highest index is found in one step down the key. A step refused before it was written leaves its index unused.
_STEPS: Final = f"(SELECT max(step_index) + 1 FROM {STEP_TABLE} WHERE {STEP_TABLE}.task_id = t.task_id) AS steps"
_TASK: Final = ", ".join(f"t.{column}" for column in rows.TASK.split(", "))
_COUNTED: Final = {
    "tasks": "agent_task",
    "unfinished": "agent_task WHERE status IN ('queued', 'running', 'waiting')",
    "steps": STEP_TABLE,
    "pending": f"{STEP_TABLE} WHERE status = 'pending'",
    "attempts": "agent_step_attempt",
    "model_calls": "agent_model_call",
    "decisions": "agent_decision",
    "boots": "agent_boot",
}


def page(
    connection: sqlite3.Connection, *, after: str | None, limit: int, status: str | None, text: str | None
) -> Page[TaskRow]:
    """One page of tasks, newest first. A task keeps its place while it runs."""
    wheres, values = ["1"], list[object]()
    if after is not None:
        wheres.append("t.rowid < ?")
        values.extend(place(after, int))
    if status is not None:
        wheres.append("t.status = ?")
        values.append(status)
    if text is not None:
        wheres.append("(instr(lower(t.task_id), lower(?)) OR instr(lower(coalesce(t.handler, '')), lower(?)))")
        values.extend((text, text))
    found = rows.fetch(
        connection,
        f"SELECT t.rowid AS number, {_STEPS}, {_TASK} FROM agent_task AS t WHERE {' AND '.join(wheres)} "
        "ORDER BY t.rowid DESC LIMIT ?",
        (*values, limit + 1),
    )
    more = len(found) > limit
    tasks = with_pending(connection, [rows.task(cells) for cells in found[:limit]])
    return Page(tuple(tasks), cursor(found[limit - 1].integer("number") or 0) if more else None)


def task(connection: sqlite3.Connection, task_id: str, *, cap: int | None) -> TaskRow | None:
    """One task with its error and, where `cap` says how much of each, its input and output."""
    found = rows.fetch(
        connection, f"SELECT t.rowid AS number, {_STEPS}, {_TASK} FROM agent_task AS t WHERE t.task_id = ?", (task_id,)
    )
    if not found:
        return None
    cells = found[0]
    rowid = cells.integer("number")
    read: dict[str, payloads.Payload] = {}
    if cap is not None:
        references = "SELECT input_ref, output_ref FROM agent_task WHERE rowid = ?"
        bodies = connection.execute(references, (rowid,)).fetchone()
        for column, sha256 in zip(("input_json", "output_json"), bodies, strict=True):
            read[column] = (
                payloads.body(connection, sha256, cap=cap)
                if isinstance(sha256, str)
                else payloads.cell(connection, "agent_task", column, rowid, cap=cap)
            )
    error_cap = payloads.CAP if cap is None else cap
    read["error_json"] = payloads.cell(connection, "agent_task", "error_json", rowid, cap=error_cap)
    built = with_pending(connection, [rows.task(cells)])[0]
    return replace(
        built,
        input_json=read.get("input_json", payloads.NOTHING).text,
        output_json=read.get("output_json", payloads.NOTHING).text,
        error_json=read["error_json"].text,
        odd=(*built.odd, *(column for column, payload in read.items() if payload.odd)),
        previewed=tuple(column for column, payload in read.items() if payload.previewed),
    )


def children(connection: sqlite3.Connection, task_id: str, *, limit: int) -> list[TaskRow]:
    """The branches of a task, oldest first."""
    found = rows.fetch(
        connection,
        f"SELECT {_STEPS}, {_TASK} FROM agent_task AS t WHERE t.parent_id = ? ORDER BY t.rowid LIMIT ?",
        (task_id, limit),
    )
    return with_pending(connection, [rows.task(cells) for cells in found])


def with_pending(connection: sqlite3.Connection, tasks: list[TaskRow]) -> list[TaskRow]:
    """The tasks with how many of their steps are pending."""
    if not tasks:
        return tasks
    counted = dict(
        connection.execute(f"SELECT task_id, count(*) FROM {STEP_TABLE} WHERE status = 'pending' GROUP BY task_id")
    )
    return [replace(task, pending=counted.get(task.task_id, 0)) for task in tasks]


def runs(connection: sqlite3.Connection, task_id: str, *, limit: int) -> list[Run]:
    """The newest openings of a task, oldest of them first."""
    found = rows.fetch(
        connection,
        f"SELECT {rows.RUN} FROM agent_task_run WHERE task_id = ? ORDER BY run DESC LIMIT ?",
        (task_id, limit),
    )
    return [rows.run(cells) for cells in reversed(found)]


def boots(connection: sqlite3.Connection, *, limit: int) -> list[Boot]:
    """The newest takings of the writer's lock, oldest of them first."""
    found = rows.fetch(connection, f"SELECT {rows.BOOT} FROM agent_boot ORDER BY boot DESC LIMIT ?", (limit,))
    return [rows.boot(cells) for cells in reversed(found)]


def next_due(connection: sqlite3.Connection) -> datetime | None:
    """The earliest time at which something of an unfinished task is due; reads what is unfinished, nothing else.

    A branch runs with its root: only its steps have times of their own.
    """
    unfinished = "t.status IN ('queued', 'running', 'waiting')"
    found = rows.fetch(
        connection,
        "SELECT min(due) AS due FROM ("
        f"SELECT t.next_attempt_at AS due FROM agent_task AS t WHERE {unfinished} AND t.status = 'waiting'"
        " AND t.parent_id IS NULL"
        f" UNION ALL SELECT s.next_attempt_at FROM {STEP_TABLE} AS s"
        f" CROSS JOIN agent_task AS t ON t.task_id = s.task_id WHERE s.status = 'pending' AND {unfinished})",
    )
    return found[0].time("due")


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How many rows there are of each thing; COUNT_CAP + 1 stands for more than COUNT_CAP."""
    return {
        name: int(
            connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT {COUNT_CAP + 1})").fetchone()[0]
        )
        for name, source in _COUNTED.items()
    }
