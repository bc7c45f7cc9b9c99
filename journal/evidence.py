"""Statements on evidence: what providers said when they were asked. Append-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from journal import clock, rows
from journal.codec import escaped
from journal.models import Evidence

if TYPE_CHECKING:
    from journal.transaction import Transaction

# `detail` is for people; a provider's long error page helps nobody and would be kept for good.
_DETAIL_CHARACTERS = 2000


def add(tx: Transaction, evidence: Evidence, *, message_id: str | None = None) -> None:
    """Append one status answer; a message that was applied before adds nothing."""
    assert evidence.asked_at is not None
    tx.execute(
        "INSERT OR IGNORE INTO agent_evidence (message_id, task_id, step_index, attempt, asked_at, asked_boottime,"
        " os_boot_id, answer, source, http_status, detail, output_json, in_flight, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            message_id,
            evidence.task_id,
            evidence.step_index,
            evidence.attempt,
            clock.text(evidence.asked_at),
            evidence.asked_boottime,
            evidence.os_boot_id,
            evidence.answer,
            evidence.source,
            evidence.http_status,
            escaped(evidence.detail)[:_DETAIL_CHARACTERS],
            evidence.output_json,
            int(evidence.in_flight),
            tx.revision(),
        ),
    )


def of_step(tx: Transaction, task_id: str, step_index: int) -> list[Evidence]:
    """All evidence about the step, oldest first."""
    found = tx.all(
        "SELECT * FROM agent_evidence WHERE task_id = ? AND step_index = ? ORDER BY id", (task_id, step_index)
    )
    return [rows.evidence(row) for row in found]
