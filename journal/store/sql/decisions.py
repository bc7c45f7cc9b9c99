"""Statements on operators' decisions. One statement per function; each takes the open transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from journal import codec
from journal.models import Decision, DecisionOutcome
from journal.store.sql.rows import read_row

if TYPE_CHECKING:
    from journal.store.transaction import Transaction


def find_decision(tx: Transaction, message_id: str) -> Decision | None:
    """The outcome of a decision message; None if it was never applied."""
    row = tx.one("SELECT * FROM agent_decision WHERE message_id = ?", (message_id,))
    return None if row is None else read_row(Decision, row)


def insert_decision(tx: Transaction, body: dict[str, Any], outcome: DecisionOutcome, detail: str = "") -> None:
    """Append a decision with what became of it; its message id makes it single-use."""
    output = body.get("output")
    tx.execute(
        "INSERT INTO agent_decision (message_id, task_id, step_index, kind, actor, reason, key, payload_sha256,"
        " dispatches, created_at, expires_at, applied_at, outcome, outcome_detail, output_json, reference, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            body["message_id"],
            str(body["task_id"]),
            body.get("step_index"),
            str(body["decision"]),
            str(body.get("actor", "")),
            str(body.get("reason", "")),
            body.get("key"),
            body.get("payload_sha256"),
            body.get("dispatches"),
            body.get("created_at") or tx.now,
            body.get("expires_at"),
            tx.now,
            outcome,
            detail,
            None if output is None else codec.dumps(output, what="output"),
            body.get("reference"),
            tx.revision(),
        ),
    )


def find_unused_approval(tx: Transaction, task_id: str, step_index: int) -> Decision | None:
    """The applied approval of this step that no attempt has used yet."""
    row = tx.one(
        "SELECT * FROM agent_decision WHERE task_id = ? AND step_index = ? AND outcome = 'applied'"
        " AND consumed_attempt IS NULL AND kind = 'replay'"
        " AND (expires_at IS NULL OR expires_at > ?) ORDER BY applied_at DESC LIMIT 1",
        (task_id, step_index, tx.now),
    )
    return None if row is None else read_row(Decision, row)


def expire_approvals(tx: Transaction, task_id: str, step_index: int) -> None:
    """Record on every approval of the step that expired unused that nothing was sent for it."""
    tx.execute(
        "UPDATE agent_decision SET outcome = 'expired', revision = ? WHERE task_id = ?"
        " AND step_index = ? AND outcome = 'applied' AND consumed_attempt IS NULL AND expires_at <= ?"
        " AND kind = 'replay'",
        (tx.revision(), task_id, step_index, tx.now),
    )


def supersede_approval(tx: Transaction, task_id: str, step_index: int, by: str) -> None:
    """End an approval that was not used yet: a later decision takes its place."""
    tx.execute(
        "UPDATE agent_decision SET outcome = 'superseded', outcome_detail = ?, revision = ? WHERE task_id = ?"
        " AND step_index = ? AND outcome = 'applied' AND consumed_attempt IS NULL"
        " AND kind = 'replay'",
        (by, tx.revision(), task_id, step_index),
    )


def consume_approval(tx: Transaction, message_id: str, attempt: int) -> bool:
    """Use an approval for one attempt; False when it was used before or has expired: then nothing may be sent."""
    done = tx.execute(
        "UPDATE agent_decision SET consumed_attempt = ?, revision = ? WHERE message_id = ?"
        " AND consumed_attempt IS NULL AND (expires_at IS NULL OR expires_at > ?)",
        (attempt, tx.revision(), message_id, tx.now),
    )
    return done.rowcount == 1


def return_approval(tx: Transaction, task_id: str, step_index: int, attempt: int) -> None:
    """Make an approval unused again whose attempt was cancelled before its call."""
    tx.execute(
        "UPDATE agent_decision SET consumed_attempt = NULL, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND consumed_attempt = ?",
        (tx.revision(), task_id, step_index, attempt),
    )
