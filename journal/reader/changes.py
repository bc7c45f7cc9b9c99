"""The rows that changed since a revision, for indexes that follow a journal."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, TypeVar

from journal.models import Attempt, Boot, Decision, Evidence, ModelCall, Run, Step, TaskRow
from journal.reader.dialects import STEP_TABLE
from journal.reader.rows import columns_of, fetch_rows, read_model
from journal.reader.untrusted_row import UntrustedRow

T = TypeVar("T")
_MODELS: Final[dict[str, type]] = {
    "agent_task": TaskRow,
    STEP_TABLE: Step,
    "agent_step_attempt": Attempt,
    "agent_task_run": Run,
    "agent_boot": Boot,
    "agent_decision": Decision,
    "agent_evidence": Evidence,
    "agent_model_call": ModelCall,
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


def read_changes(connection: sqlite3.Connection, revision: int, *, limit: int) -> Changes:
    """Up to `limit` rows of each table past `revision`; rows of one revision are never torn apart."""
    read: dict[str, list[UntrustedRow]] = {}
    horizon: int | None = None
    for table, model in _MODELS.items():
        found, end = _tail(connection, table, columns_of(model, "revision"), revision, limit)
        read[table] = found
        if end is not None and (horizon is None or end < horizon):
            horizon = end
    highest = max((_revision(found[-1]) for found in read.values() if found), default=revision)
    if horizon is not None:
        highest = min(highest, horizon)

    def models(table: str, model: type[T]) -> tuple[T, ...]:
        return tuple(read_model(model, row) for row in read[table] if _revision(row) <= highest)

    return Changes(
        tasks=models("agent_task", TaskRow),
        steps=models(STEP_TABLE, Step),
        attempts=models("agent_step_attempt", Attempt),
        runs=models("agent_task_run", Run),
        boots=models("agent_boot", Boot),
        decisions=models("agent_decision", Decision),
        evidence=models("agent_evidence", Evidence),
        model_calls=models("agent_model_call", ModelCall),
        highest_revision=highest,
        more=horizon is not None,
    )


def _tail(
    connection: sqlite3.Connection, table: str, columns: str, revision: int, limit: int
) -> tuple[list[UntrustedRow], int | None]:
    """The table's rows past a revision, and the revision up to which they are complete; None: to the end."""
    select = f"SELECT {columns} FROM {table} WHERE revision"
    found = fetch_rows(connection, f"{select} > ? ORDER BY revision LIMIT ?", (revision, limit + 1))
    if len(found) <= limit:
        return found, None
    torn = _revision(found[-1])
    whole = [row for row in found if _revision(row) < torn]
    if whole:
        return whole, _revision(whole[-1])
    # More rows share one revision than fit: take all of them, or the tail would never get past.
    return fetch_rows(connection, f"{select} = ?", (torn,)), torn


def _revision(row: UntrustedRow) -> int:
    return row.integer("revision") or 0
