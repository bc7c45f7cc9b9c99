"""Statements on evidence: the providers' answers to status checks. Rows are only added."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from journal import clock, codec
from journal.codec import escaped
from journal.models import Answer, Evidence
from journal.store.sql.rows import read_row

if TYPE_CHECKING:
    from datetime import datetime

    from journal.store.transaction import Transaction

# `detail` is for people; a provider's long error page helps no reader and would be kept forever.
_DETAIL_CHARACTERS = 2000
_ANSWERS = get_args(Answer)


def append_evidence(
    tx: Transaction, evidence: Evidence, *, message_id: str | None = None, answered_at: datetime | None = None
) -> None:
    """Append one status answer; a message that was applied before adds nothing.

    `exists` is kept as unknown where the first dispatch was marked before it was `answered_at`: it may be our own
    effect that was found, or not.
    """
    asked_at = evidence.asked_at
    assert asked_at is not None
    if evidence.answer == "exists" and answered_at is not None and _is_overtaken(tx, evidence, answered_at):
        why = f"found while the first dispatch was under way: {evidence.detail}"
        evidence = replace(evidence, answer="unknown", detail=why, output_json=None)
    tx.execute(
        "INSERT OR IGNORE INTO agent_evidence (message_id, task_id, step_index, attempt, asked_at, asked_boottime,"
        " os_boot_id, answer, source, http_status, detail, output_json, in_flight, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            message_id,
            evidence.task_id,
            evidence.step_index,
            evidence.attempt,
            clock.text(asked_at),
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


def read_message(body: dict[str, Any], step_index: int) -> Evidence:
    """The answer a message carries. Raises KeyError, TypeError and ValueError for one that no column could hold."""
    status, boottime = body.get("http_status"), float(body["asked_boottime"])
    if body["answer"] not in _ANSWERS:
        raise ValueError(f"answer {body['answer']!r}")
    if not math.isfinite(boottime):
        raise ValueError(f"asked_boottime {boottime}")
    if status is not None and (isinstance(status, bool) or not isinstance(status, int)):
        raise TypeError(f"http_status {status!r}")
    output = body.get("output_json")
    return Evidence(
        task_id=body["task_id"],
        step_index=step_index,
        attempt=int(body["attempt"]),
        asked_at=clock.parse(body["asked_at"]),
        asked_boottime=boottime,
        os_boot_id=str(body["os_boot_id"]),
        answer=body["answer"],
        source=str(body.get("source", "worker")),
        http_status=status,
        detail=str(body.get("detail", "")),
        # As the journal would write it: what cannot be read back must not end a step.
        output_json=None if output is None else codec.dumps(codec.loads(output), what="output"),
        in_flight=bool(body.get("in_flight", False)),
    )


def _is_overtaken(tx: Transaction, evidence: Evidence, answered_at: datetime) -> bool:
    row = tx.one(
        "SELECT attempt, started_at FROM agent_step_attempt WHERE task_id = ? AND step_index = ?"
        " AND verdict IS NOT 'not_sent' ORDER BY attempt LIMIT 1",
        (evidence.task_id, evidence.step_index),
    )
    # Both are readings of one machine's clock. An answer from before the attempt says nothing about the attempt.
    return row is not None and row["attempt"] > evidence.attempt and row["started_at"] <= clock.text(answered_at)


def list_evidence(tx: Transaction, task_id: str, step_index: int) -> list[Evidence]:
    """All evidence about the step, oldest first."""
    found = tx.all(
        "SELECT * FROM agent_evidence WHERE task_id = ? AND step_index = ? ORDER BY id", (task_id, step_index)
    )
    return [read_row(Evidence, row) for row in found]
