"""What changed since a revision: the tail that fleet indexes follow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from journal.models import Attempt, Boot, Decision, Evidence, ModelCall, Run, Step, TaskRow
from journal.reader import history, rows
from journal.reader.cells import Cells
from journal.reader.dialects import STEP_TABLE

T = TypeVar("T")
_SOURCES: Final = {
    "agent_task": rows.TASK,
    STEP_TABLE: rows.STEP,
    "agent_step_attempt": history.ATTEMPT,
    "agent_task_run": rows.RUN,
    "agent_boot": rows.BOOT,
    "agent_decision": history.DECISION,
    "agent_evidence": history.EVIDENCE,
    "agent_model_call": history.MODEL_CALL,
}


@dataclass(frozen=True, slots=True)
class Changes:
    """Every row whose revision lies in (since, highest_revision], each table by revision, without payloads.

    `more`: the journal has newer ones; ask again since `highest_revision`. A task's `steps` and `pending` are None.
    """

    tasks: tuple[TaskRow, ...] = ()
    steps: tuple[Step, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    runs: tuple[Run, ...] = ()
    boots: tuple[Boot, ...] = ()
    decisions: tuple[Decision, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    highest_revision: int = 0
    more: bool = False


def since(connection: sqlite3.Connection, revision: int, *, limit: int) -> Changes:
    """Up to `limit` rows of each table past `revision`; rows of one revision are never torn apart."""
    read: dict[str, list[Cells]] = {}
    horizon: int | None = None
    for table, columns in _SOURCES.items():
        found, end = _tail(connection, table, columns, revision, limit)
        read[table] = found
        if end is not None and (horizon is None or end < horizon):
            horizon = end
    highest = max((_revision(found[-1]) for found in read.values() if found), default=revision)
    if horizon is not None:
        highest = min(highest, horizon)

    def models(table: str, build: Callable[[Cells], T]) -> tuple[T, ...]:
        return tuple(build(cells) for cells in read[table] if _revision(cells) <= highest)

    return Changes(
        tasks=models("agent_task", rows.task),
        steps=models(STEP_TABLE, rows.step),
        attempts=models("agent_step_attempt", history.attempt),
        runs=models("agent_task_run", rows.run),
        boots=models("agent_boot", rows.boot),
        decisions=models("agent_decision", history.decision),
        evidence=models("agent_evidence", history.evidence),
        model_calls=models("agent_model_call", history.model_call),
        highest_revision=highest,
        more=horizon is not None,
    )


def _tail(
    connection: sqlite3.Connection, table: str, columns: str, revision: int, limit: int
) -> tuple[list[Cells], int | None]:
    """The table's rows past a revision, and the revision up to which they are complete; None: to the end."""
    select = f"SELECT {columns} FROM {table} WHERE revision"
    found = rows.fetch(connection, f"{select} > ? ORDER BY revision LIMIT ?", (revision, limit + 1))
    if len(found) <= limit:
        return found, None
    torn = _revision(found[-1])
    whole = [cells for cells in found if _revision(cells) < torn]
    if whole:
        return whole, _revision(whole[-1])
    # More rows share one revision than fit: take all of them, or the tail would never get past.
    return rows.fetch(connection, f"{select} = ?", (torn,)), torn


def _revision(cells: Cells) -> int:
    return cells.integer("revision") or 0
