"""Statements that find intents that are not settled. One per function; each takes the open transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journal.store.transaction import Transaction


def list_unresolved(tx: Transaction, *, task_id: str | None = None, limit: int = 100_000) -> list[tuple[str, int]]:
    """(task, step) of pending mutating steps of unfinished tasks, oldest first."""
    found = tx.all(
        "SELECT s.task_id, s.step_index FROM agent_step_journal s JOIN agent_task t ON t.task_id = s.task_id"
        " WHERE s.status = 'pending' AND s.effect = 'mutating' AND (? IS NULL OR s.task_id = ?)"
        " AND t.status NOT IN ('cancelled', 'completed', 'failed')"
        " ORDER BY s.created_at, s.task_id, s.step_index LIMIT ?",
        (task_id, task_id, limit),
    )
    return [(row["task_id"], row["step_index"]) for row in found]


def list_unresolved_below(tx: Transaction, task_id: str) -> list[tuple[str, int]]:
    """(task, step) of the pending mutating steps of an unfinished task and its branches, oldest first."""
    found = tx.all(
        "WITH RECURSIVE tree (task_id) AS (SELECT ? UNION SELECT t.task_id FROM agent_task t"
        " JOIN tree ON t.parent_id = tree.task_id) SELECT s.task_id, s.step_index FROM agent_step_journal s"
        " JOIN tree ON tree.task_id = s.task_id JOIN agent_task a ON a.task_id = s.task_id"
        " WHERE s.status = 'pending' AND s.effect = 'mutating'"
        " AND a.status NOT IN ('cancelled', 'completed', 'failed')"
        " ORDER BY s.created_at, s.task_id, s.step_index",
        (task_id,),
    )
    return [(row["task_id"], row["step_index"]) for row in found]


def list_due(tx: Transaction) -> list[tuple[str, str | None, str]]:
    """(root task, its handler, when) of the unfinished tasks that have an intent whose time has come, the latest.

    What only the clock holds has no time of its own: its root has one.
    """
    found = tx.all(
        "WITH RECURSIVE up (at, task_id, parent_id, handler, status, looked_at) AS (SELECT s.next_attempt_at,"
        " t.task_id, t.parent_id, t.handler, t.status, t.next_attempt_at"
        " FROM agent_step_journal s JOIN agent_task t ON t.task_id = s.task_id"
        " WHERE s.status = 'pending' AND s.effect = 'mutating'"
        " AND (s.next_attempt_at <= ? OR (s.next_attempt_at IS NULL AND s.hold_reason = 'clock_suspect'))"
        " UNION ALL SELECT up.at, t.task_id, t.parent_id, t.handler, t.status, t.next_attempt_at"
        " FROM up JOIN agent_task t ON t.task_id = up.parent_id)"
        " SELECT task_id, handler, max(coalesce(at, looked_at)) AS at FROM up WHERE parent_id IS NULL"
        " AND status IN ('queued', 'running', 'waiting') AND coalesce(at, looked_at) <= ? GROUP BY task_id",
        (tx.now, tx.now),
    )
    return [(row["task_id"], row["handler"], row["at"]) for row in found]


def has_older_intent(tx: Transaction, task_id: str) -> bool:
    """Whether the task has a pending mutating step that an older boot began: then no model may be called."""
    return (
        tx.one(
            "SELECT 1 FROM agent_step_journal WHERE task_id = ? AND status = 'pending' AND effect = 'mutating'"
            " AND boot < ? LIMIT 1",
            (task_id, tx.boot),
        )
        is not None
    )
