"""Statements on starts: how often a pending step was begun, counted before what may kill the process, and how often a
task's code was broken off while its process went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from journal.store.transaction import Transaction

# How a run ends that SystemExit or a cancellation leaves while its process goes on.
BROKEN_OFF: Final = "broken_off"


def restart(tx: Transaction, task_id: str, step_index: int) -> bool:
    """Count one more start of a read-only or model step, in this boot; False when it is pending no more."""
    done = tx.execute(
        "UPDATE agent_step_journal SET starts = starts + 1, boot = ?, hold_reason = NULL, hold_detail = NULL,"
        " updated_at = ?, revision = ? WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.boot, tx.now, tx.revision(), task_id, step_index),
    )
    return done.rowcount == 1


def count(tx: Transaction, task_id: str, step_index: int) -> None:
    """Count one more start of the agent's own code for a pending step."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = starts + 1, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def uncount(tx: Transaction, task_id: str, step_index: int) -> None:
    """Take a start back: the step was interrupted, it did not kill its process."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = max(starts - 1, 0), updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def reset(tx: Transaction, task_id: str, step_index: int) -> None:
    """Let a quarantined step start afresh."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = 0, updated_at = ?, revision = ? WHERE task_id = ? AND step_index = ?"
        " AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def breaks(tx: Transaction, task_id: str) -> int:
    """How many of the task's newest runs were broken off, one after the other; killed ones are passed over."""
    row = tx.one(
        "SELECT count(*) AS n FROM agent_task_run WHERE task_id = ? AND ended = ? AND run >"
        " (SELECT coalesce(max(run), 0) FROM agent_task_run WHERE task_id = ? AND ended <> ?)",
        (task_id, BROKEN_OFF, task_id, BROKEN_OFF),
    )
    return 0 if row is None else int(row["n"])
