"""Statements on attempts. One statement per function; each takes the open transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from journal import clock
from journal.codec import escaped
from journal.models import Attempt
from journal.store.sql.rows import read_row

if TYPE_CHECKING:
    from datetime import datetime

    from journal.store.transaction import Transaction

# `detail` is for people; a provider's long error page helps no reader and would be kept forever.
_DETAIL_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Mark:
    """A `dispatching` mark: what the sender must know to send, and to check that it still may."""

    task_id: str
    step_index: int
    attempt: int
    boot: int
    boottime: float
    redispatch: bool


def mark_dispatch(
    tx: Transaction, task_id: str, step_index: int, *, generation: int, decision_id: str | None = None
) -> Mark:
    """Write the `dispatching` mark. Once it is synced, a kill at any later point means: outcome unknown."""
    row = tx.one(
        "SELECT coalesce(max(attempt), 0) + 1 AS n, coalesce(sum(verdict IS NOT 'not_sent'), 0) AS sent"
        " FROM agent_step_attempt WHERE task_id = ? AND step_index = ?",
        (task_id, step_index),
    )
    assert row is not None
    moment = clock.moment()
    number = int(row["n"])
    tx.execute(
        "INSERT INTO agent_step_attempt (task_id, step_index, attempt, key_generation, boot, started_at,"
        " started_boottime, os_boot_id, decision_id, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            task_id,
            step_index,
            number,
            generation,
            tx.boot,
            clock.text(moment.wall),
            moment.boot,
            moment.os_boot_id,
            decision_id,
            tx.revision(),
        ),
    )
    tx.execute(
        "UPDATE agent_step_journal SET boot = ?, next_attempt_at = NULL, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ?",
        (tx.boot, tx.now, tx.revision(), task_id, step_index),
    )
    return Mark(task_id, step_index, number, tx.boot, moment.boot, int(row["sent"]) > 0)


def note_sending(tx: Transaction, mark: Mark) -> None:
    """Record that the first byte of the attempt's request comes next."""
    tx.execute(
        "UPDATE agent_step_attempt SET sent_at = ?, revision = ? WHERE task_id = ? AND step_index = ? AND attempt = ?",
        (tx.now, tx.revision(), mark.task_id, mark.step_index, mark.attempt),
    )


def settle_attempt(
    tx: Transaction,
    mark: Mark,
    *,
    verdict: str,
    kind: str,
    http_status: int | None,
    detail: str,
    retry_after_at: datetime | None,
    output_json: str | None,
) -> bool:
    """Give an attempt its verdict; an attempt has one verdict, the first. False when it had one already."""
    done = tx.execute(
        "UPDATE agent_step_attempt SET ended_at = ?, verdict = ?, kind = ?, http_status = ?, detail = ?,"
        " retry_after_at = ?, output_json = ?, duration = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND attempt = ? AND verdict IS NULL",
        (
            tx.now,
            verdict,
            kind,
            http_status,
            escaped(detail)[:_DETAIL_CHARACTERS],
            None if retry_after_at is None else clock.text(retry_after_at),
            output_json,
            max(0.0, clock.boot_seconds() - mark.boottime),
            tx.revision(),
            mark.task_id,
            mark.step_index,
            mark.attempt,
        ),
    )
    return done.rowcount == 1


def settle_unknown_as_no_effect(tx: Transaction, task_id: str, step_index: int, detail: str) -> None:
    """Settle every attempt with unknown outcome as an operator's `mark_not_applied` says."""
    tx.execute(
        "UPDATE agent_step_attempt SET verdict = 'no_effect', kind = 'settled', detail = ?,"
        " ended_at = coalesce(ended_at, ?), revision = ?"
        " WHERE task_id = ? AND step_index = ? AND (verdict IS NULL OR verdict IN ('unknown', 'in_progress'))",
        (detail, tx.now, tx.revision(), task_id, step_index),
    )


def list_attempts(tx: Transaction, task_id: str, step_index: int) -> list[Attempt]:
    """All attempts of the step, oldest first."""
    found = tx.all(
        "SELECT * FROM agent_step_attempt WHERE task_id = ? AND step_index = ? ORDER BY attempt", (task_id, step_index)
    )
    return [read_row(Attempt, row) for row in found]


def count_dispatches(tx: Transaction, task_id: str, step_index: int) -> int:
    """The number of attempts that may have left this machine. A decision is bound to it."""
    row = tx.one(
        "SELECT count(*) AS n FROM agent_step_attempt WHERE task_id = ? AND step_index = ?"
        " AND verdict IS NOT 'not_sent'",
        (task_id, step_index),
    )
    assert row is not None
    return int(row["n"])


def is_in_flight(tx: Transaction, task_id: str, step_index: int) -> bool:
    """Whether an attempt of this boot has no outcome yet: it is being sent now, and no person may decide it."""
    return (
        tx.one(
            "SELECT 1 FROM agent_step_attempt WHERE task_id = ? AND step_index = ? AND verdict IS NULL AND boot = ?",
            (task_id, step_index, tx.boot),
        )
        is not None
    )
