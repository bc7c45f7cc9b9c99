"""Statements on the runs of a task: each opening of it, how far the journal served it and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journal.store.transaction import Transaction


def begin(tx: Transaction, task_id: str) -> int:
    """Open the next run of the task, in this boot; returns its number."""
    row = tx.one("SELECT coalesce(max(run), 0) + 1 AS run FROM agent_task_run WHERE task_id = ?", (task_id,))
    assert row is not None
    tx.execute(
        "INSERT INTO agent_task_run (task_id, run, boot, started_at, revision) VALUES (?, ?, ?, ?, ?)",
        (task_id, row["run"], tx.boot, tx.now, tx.revision()),
    )
    return int(row["run"])


def note_served(tx: Transaction, task_id: str, run: int, served_through: int) -> None:
    """Record up to which step this run was served from the journal."""
    tx.execute(
        "UPDATE agent_task_run SET served_through = ?, revision = ?"
        " WHERE task_id = ? AND run = ? AND served_through < ?",
        (served_through, tx.revision(), task_id, run, served_through),
    )


def end(tx: Transaction, task_id: str, run: int, ended: str) -> None:
    """Record how this run of the task ended."""
    tx.execute(
        "UPDATE agent_task_run SET ended_at = ?, ended = ?, revision = ? WHERE task_id = ? AND run = ?",
        (tx.now, ended, tx.revision(), task_id, run),
    )
